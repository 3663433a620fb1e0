#include "job/memory.hpp"

#include "job/control_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <string_view>

namespace tonari::job {

namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

std::uint64_t system_bytes() {
  std::ifstream file{"/proc/meminfo"};
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view name = "MemAvailable:";
    if (line.starts_with(name)) return std::stoull(line.substr(name.size())) * 1024;
  }
  return unlimited;
}

}  // namespace

// Takes the limits of groups, not the difference to their current use: the use includes cache, which the kernel frees
// on demand.
std::uint64_t available_memory_bytes() {
  return std::min(system_bytes(), control_group_memory_limit().value_or(unlimited));
}

bool control_group_limits_memory() { return control_group_memory_limit().value_or(unlimited) < system_bytes(); }

std::string available_memory_text() {
  const std::string bytes = memory_text(available_memory_bytes());
  return control_group_limits_memory() ? fmt::format("the control group of this process may use no more than {}", bytes)
                                       : fmt::format("this host has only {} available", bytes);
}

std::string memory_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 7> units{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return value < 10 && unit > 0 ? fmt::format("{:.1f} {}", value, units[unit])
                                : fmt::format("{:.0f} {}", value, units[unit]);
}

}  // namespace tonari::job
