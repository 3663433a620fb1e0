#pragma once

#include <nlohmann/json.hpp>

namespace tonari::bench::driver {

/// What a measurement depends on: processor, caches, memory, kernel, compiler, our version, and the date.
nlohmann::ordered_json machine_as_json();

}  // namespace tonari::bench::driver
