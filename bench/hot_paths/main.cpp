// Question: how many instructions, locks, atomic operations, system calls, allocations and shared cache lines does each
//           hot path need?
// Method:   two ranks go through the paths. scripts/hot-paths runs this program under callgrind, lackey and strace,
// which
//           count. Within a host the ranks take turns, so that no measured part waits.
// Output:   lines for the script: the measured parts in order, the threads, the place of the marked word, and where the
//           memory is mapped that ranks share. Usage: hot_paths ROUNDS FILE NAME...; hot_paths list. FILE is a new file
//           through which the ranks take turns.

#include "hot_paths/paths.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

std::atomic<unsigned> hot_path_word{0};

[[gnu::noinline]] void hot_path(void (*work)(void*), void* argument) {
  hot_path_word.store(1, std::memory_order_relaxed);
  work(argument);
  hot_path_word.store(0, std::memory_order_relaxed);
}

namespace tonari::bench::hot_paths {

void Bench::note_maps() {
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    if (line.find("/memfd:") != line.npos) maps.push_back(path + " " + line);
  }
}

namespace {

void print(const Bench& bench) {
  const int rank = bench.turns.rank();
  std::ostringstream all;
  all << "process " << rank << ' ' << ::getpid() << '\n';
  all << "word " << rank << ' ' << reinterpret_cast<std::uintptr_t>(&hot_path_word) << '\n';
  for (const std::string& each : bench.measured) all << "measured " << rank << ' ' << each << '\n';
  for (const std::string& each : bench.maps) all << "map " << rank << ' ' << each << '\n';
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    all << "thread " << rank << ' ' << each.path().filename().string() << '\n';
  }
  std::cout << all.str() << std::flush;
}

void run(Bench& bench, const std::string& name) {
  for (const auto paths : {local_paths(), waiting_paths()}) {
    const auto path = std::ranges::find(paths, name, &Path::name);
    if (path == paths.end()) continue;
    bench.path = name;
    path->run(bench);
    return;
  }
  throw std::runtime_error("no path " + name);
}

int list() {
  for (const Path& path : local_paths()) std::cout << "local " << path.name << "\n";
  for (const Path& path : waiting_paths()) std::cout << "waiting " << path.name << "\n";
  return 0;
}

int run_all(int rounds, const std::string& file, std::span<char*> names) {
  Job job;
  if (job.size() != 2) throw std::runtime_error("start it as two ranks");
  Communicator world(job);
  Turns turns(file, job.rank().value());
  Bench bench{job, world, turns, rounds};
  for (const char* name : names) run(bench, name);
  print(bench);
  return 0;
}

}  // namespace
}  // namespace tonari::bench::hot_paths

int main(int argc, char** argv) {
  using namespace tonari::bench::hot_paths;
  try {
    const std::span arguments(argv + 1, argv + argc);
    if (arguments.size() == 1 && std::string(arguments[0]) == "list") return list();
    if (arguments.size() < 3) throw std::runtime_error("usage: hot_paths ROUNDS FILE NAME...");
    return run_all(std::atoi(arguments[0]), arguments[1], arguments.subspan(2));
  } catch (const std::exception& error) {
    std::cerr << "hot_paths: " << error.what() << "\n";
    return 1;
  }
}
