#include "job/out_of_memory.hpp"

#include "job/control_group.hpp"
#include "job/memory.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string_view>

namespace tonari::job {

std::string OutOfMemoryWatch::explanation_for(std::string_view process) {
  const auto limit = control_group_memory_limit();
  const std::string why = limit ? fmt::format("its control group may use no more than {}", memory_text(*limit))
                                : std::string("this host's memory is used up");
  return fmt::format("the kernel's out-of-memory killer ended {}, because {}", process, why);
}

// Counts kills for all reasons: the host's memory, or a control group's limit.
std::uint64_t OutOfMemoryWatch::kills() {
  std::ifstream file{"/proc/vmstat"};
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view name = "oom_kill ";
    if (line.starts_with(name)) return std::stoull(line.substr(name.size()));
  }
  return 0;
}

}  // namespace tonari::job
