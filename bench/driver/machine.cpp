#include "driver/machine.hpp"

#include "cli/launch.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <fstream>
#include <string>

namespace tonari::bench::driver {

namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Returns the processor's name from /proc/cpuinfo; on Arm, where it has none, its part number.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string part;
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (colon == line.npos) continue;
    if (line.starts_with("model name")) return line.substr(colon + 2);
    if (line.starts_with("CPU part")) part = line.substr(colon + 2);
  }
  return part.empty() ? "unknown" : "part " + part;
}

nlohmann::ordered_json caches() {
  auto list = nlohmann::ordered_json::array();
  for (int index = 0; index < 8; ++index) {
    const auto folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    const auto size = first_line(folder + "size");
    if (size.empty()) break;
    list.push_back({{"level", std::stoi(first_line(folder + "level"))},
                    {"type", first_line(folder + "type")},
                    {"size", size},
                    {"shared_with", first_line(folder + "shared_cpu_list")}});
  }
  return list;
}

std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace

nlohmann::ordered_json machine_as_json() {
  utsname system{};
  ::uname(&system);
  const auto memory =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  nlohmann::ordered_json machine{{"processor", processor_name()},
                                 {"architecture", system.machine},
                                 {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
                                 {"usable_cores", cli::usable_cores()},
                                 {"caches", caches()},
                                 {"memory_bytes", memory},
                                 {"kernel", fmt::format("{} {}", system.sysname, system.release)},
                                 {"transparent_huge_pages", first_line("/sys/kernel/mm/transparent_hugepage/enabled")},
                                 {"compiler", __VERSION__},
                                 {"tonari", TONARI_VERSION},
                                 {"date", date()}};
#ifdef TONARI_COMMIT
  machine["tonari_commit"] = TONARI_COMMIT;
#endif
  return machine;
}

}  // namespace tonari::bench::driver
