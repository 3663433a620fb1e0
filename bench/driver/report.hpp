#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace tonari::bench::driver {

/// Throws SetupError unless a file can be made at `path`. Called before a long run, so that its results are not lost.
void check_writable(const std::string& path);

/// Writes `bytes` to `path`, completely or not at all: into a file beside it, which is then renamed. Devices and pipes
/// are written directly. Throws SetupError, which ends with `remedy`.
void write_whole(const std::string& path, std::string_view bytes, std::string_view remedy);

/// Writes `report` to `path`, as write_whole() does. Throws SetupError.
void write_report(const std::string& path, const nlohmann::ordered_json& report);

}  // namespace tonari::bench::driver
