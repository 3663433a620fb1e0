#include "mpi/environment/hardware.hpp"

#include "functions.hpp"

#include <sched.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

// On which hardware this process may run, by Linux's files about processors.
namespace tonari::mpi {

namespace {

namespace fs = std::filesystem;
const fs::path processors = "/sys/devices/system/cpu";

std::optional<int> read_number(const fs::path& file) {
  int number = 0;
  if (std::ifstream(file) >> number) return number;
  return std::nullopt;
}

std::vector<int> allowed_processors() {
  std::vector<int> allowed;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return allowed;
  for (int each = 0; each < CPU_SETSIZE; ++each) {
    if (CPU_ISSET(static_cast<std::size_t>(each), &set)) allowed.push_back(each);
  }
  return allowed;
}

fs::path folder_of(int processor) { return processors / ("cpu" + std::to_string(processor)); }

std::optional<int> package_of(int processor) {
  return read_number(folder_of(processor) / "topology" / "physical_package_id");
}

// A processor's folder has a link nodeN to its memory.
std::optional<int> memory_of(int processor) {
  std::error_code error;
  for (const auto& each : fs::directory_iterator(folder_of(processor), error)) {
    const std::string name = each.path().filename();
    if (name.starts_with("node") && name.find_first_not_of("0123456789", 4) == std::string::npos) {
      return std::atoi(name.c_str() + 4);
    }
  }
  return std::nullopt;
}

// The files of cores and caches are lists such as 4-7,12. Their first number names the group that shares something.
std::optional<int> last_cache_of(int processor) {
  return read_number(folder_of(processor) / "cache" / "index3" / "shared_cpu_list");
}
std::optional<int> core_of(int processor) {
  return read_number(folder_of(processor) / "topology" / "thread_siblings_list");
}
std::optional<int> itself(int processor) { return processor; }
std::optional<int> machine(int) { return 0; }

struct Kind {
  const char* name;
  std::optional<int> (*place_of)(int processor);
};
constexpr Kind kinds[] = {{"hwloc://Machine", machine},    {"hwloc://Package", package_of},
                          {"hwloc://NUMANode", memory_of}, {"hwloc://L3Cache", last_cache_of},
                          {"hwloc://Core", core_of},       {"hwloc://PU", itself}};

}  // namespace

std::vector<HardwareKind> hardware_kinds() {
  const std::vector<int> allowed = allowed_processors();
  std::vector<HardwareKind> known;
  for (const Kind& kind : kinds) {
    std::set<int> places;
    bool is_known = !allowed.empty();
    for (const int processor : allowed) {
      const std::optional<int> place = kind.place_of(processor);
      is_known = is_known && place.has_value();
      if (place) places.insert(*place);
      if (places.size() > 1) break;
    }
    if (is_known) known.push_back({kind.name, places.size() == 1 ? *places.begin() : -1});
  }
  return known;
}

// A value says whether this process is bound to one of the kind.
void get_hw_resource_info(MPI_Info* hw_info) {
  auto* const made = new Info;
  made->hints = {{"mpi_shared_memory", "true"}};
  for (const HardwareKind& kind : hardware_kinds())
    made->hints.emplace_back(kind.name, kind.place >= 0 ? "true" : "false");
  *hw_info = made;
}

}  // namespace tonari::mpi
