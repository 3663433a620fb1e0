#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace tonari::bench::driver {

/// Throws SetupError unless a file can be made at `path`: asked before a long run, so that it is not for nothing.
void check_writable(const std::string& path);

/// Writes `report` to `path`, whole or not at all: into a file beside it that then takes its name. What is no regular
/// file (a device, a pipe) is written to as it is. Throws SetupError.
void write_report(const std::string& path, const nlohmann::ordered_json& report);

}  // namespace tonari::bench::driver
