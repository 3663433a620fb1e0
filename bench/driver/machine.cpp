#include "driver/machine.hpp"

#include "cli/launch.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace tonari::bench::driver {

namespace {

namespace fs = std::filesystem;

constexpr double busy_max = 0.05;    // of all processors, before the run
constexpr double stolen_max = 0.01;  // of all processors, during the run

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

/// Returns how the kernel mitigates each vulnerability of the processor, without the ones that it does not have.
nlohmann::ordered_json mitigations() {
  auto all = nlohmann::ordered_json::object();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/cpu/vulnerabilities", ignored)) {
    const auto text = first_line(entry.path());
    if (text != "Not affected") all[entry.path().filename()] = text;
  }
  return all;
}

std::size_t numa_nodes() {
  std::size_t count = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/node", ignored)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("node") && name.size() > 4) ++count;
  }
  return std::max<std::size_t>(count, 1);
}

/// Returns the policy by which the kernel chooses the processor's frequency; empty if it does not choose it.
std::string governor() { return first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"); }

bool is_virtual() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("flags")) return (line + " ").find(" hypervisor ") != line.npos;
  }
  return false;
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
                                 {"numa_nodes", numa_nodes()},
                                 {"virtual", is_virtual()},
                                 {"governor", governor()},
                                 {"kernel", fmt::format("{} {}", system.sysname, system.release)},
                                 {"mitigations", mitigations()},
                                 {"transparent_huge_pages", first_line("/sys/kernel/mm/transparent_hugepage/enabled")},
                                 {"compiler", __VERSION__},
                                 {"tonari", TONARI_VERSION},
                                 {"date", date()}};
#ifdef TONARI_COMMIT
  machine["tonari_commit"] = TONARI_COMMIT;
#endif
  return machine;
}

ProcessorTime ProcessorTime::now() {
  std::ifstream file("/proc/stat");
  std::string name;
  std::array<std::uint64_t, 8> ticks{};  // user, nice, system, idle, iowait, irq, softirq, steal
  file >> name;
  for (auto& tick : ticks) file >> tick;
  ProcessorTime time{0, ticks[3] + ticks[4], ticks[7]};
  for (const auto tick : ticks) time.all += tick;
  return time;
}

ProcessorTime ProcessorTime::since(const ProcessorTime& earlier) const {
  return {all - earlier.all, idle - earlier.idle, stolen - earlier.stolen};
}

std::vector<std::string> unfit_before() {
  std::vector<std::string> reasons;
  const auto begin = ProcessorTime::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto time = ProcessorTime::now().since(begin);
  const double busy = time.all == 0 ? 0 : 1 - static_cast<double>(time.idle) / static_cast<double>(time.all);
  if (busy > busy_max) {
    reasons.push_back(
        fmt::format("other programs use {:.0f} % of the processors; end them, or expect noise", busy * 100));
  }
  if (const auto policy = governor(); !policy.empty() && policy != "performance") {
    reasons.push_back(
        fmt::format("the processor's frequency changes (governor {}); `cpupower frequency-set -g performance` "
                    "keeps it",
                    policy));
  }
  return reasons;
}

std::vector<std::string> unfit_during(const ProcessorTime& run) {
  const double stolen = run.all == 0 ? 0 : static_cast<double>(run.stolen) / static_cast<double>(run.all);
  if (stolen <= stolen_max) return {};
  return {fmt::format("the hypervisor gave {:.1f} % of the processor time to others", stolen * 100)};
}

}  // namespace tonari::bench::driver
