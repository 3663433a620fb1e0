#pragma once

#include <nlohmann/json.hpp>

namespace tonari::bench::driver {

/// Describes the machine: processor, caches, memory, kernel, compiler, version of tonari, and date.
nlohmann::ordered_json machine_as_json();

}  // namespace tonari::bench::driver
