#include "cli/info.hpp"
#include "cli/topology.hpp"
#include "job/identity.hpp"
#include "job/memory.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string_view>

namespace tonari::cli {

namespace {

std::string processor_model() {
  std::ifstream file{"/proc/cpuinfo"};
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "unknown";  // aarch64 has only numbers there
}

std::string counted(int count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string cores_text(hwloc_topology* topology) {
  const auto number = [&](hwloc_obj_type_t type) { return ::hwloc_get_nbobjs_by_type(topology, type); };
  return fmt::format("{}, {}, {}, {}", counted(number(HWLOC_OBJ_CORE), "core"),
                     counted(number(HWLOC_OBJ_PU), "hardware thread"), counted(number(HWLOC_OBJ_PACKAGE), "socket"),
                     counted(number(HWLOC_OBJ_NUMANODE), "NUMA node"));
}

std::string caches_text(hwloc_topology* topology) {
  constexpr std::array<std::pair<hwloc_obj_type_t, std::string_view>, 3> levels{
      {{HWLOC_OBJ_L1CACHE, "L1"}, {HWLOC_OBJ_L2CACHE, "L2"}, {HWLOC_OBJ_L3CACHE, "L3"}}};
  std::string text;
  for (const auto& [type, name] : levels) {
    const int number = ::hwloc_get_nbobjs_by_type(topology, type);
    if (number <= 0) continue;
    const auto bytes = ::hwloc_get_obj_by_type(topology, type, 0)->attr->cache.size;
    text += fmt::format("{}{} {} x {}", text.empty() ? "" : ", ", name, number, job::memory_text(bytes));
  }
  return text.empty() ? "unknown" : text;
}

std::string kernel_text() {
  utsname names{};
  ::uname(&names);
  return fmt::format("{} {} ({})", names.sysname, names.release, names.machine);
}

// If the topology cannot be read, returns the reason: the other lines are needed most then.
std::pair<std::string, std::string> cores_and_caches() {
  try {
    const Topology topology = load_topology(false);
    return {cores_text(topology.get()), caches_text(topology.get())};
  } catch (const SetupError& error) {
    return {fmt::format("unknown: {}", error.what()), "unknown"};
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> describe_machine() {
  const auto [cores, caches] = cores_and_caches();
  const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto memory_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * page_bytes;
  return {{"host", job::this_host_name()},
          {"processor", processor_model()},
          {"cores", cores},
          {"caches", caches},
          {"memory", fmt::format("{}, {} available{}", job::memory_text(memory_bytes),
                                 job::memory_text(job::available_memory_bytes()),
                                 job::control_group_limits_memory() ? ": the limit of this control group" : "")},
          {"page", job::memory_text(page_bytes)},
          {"kernel", kernel_text()}};
}

}  // namespace tonari::cli
