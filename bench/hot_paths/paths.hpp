#pragma once

#include "hot_paths/mark.hpp"
#include "hot_paths/turns.hpp"

#include <tonari/tonari.hpp>

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tonari::bench::hot_paths {

/// The arguments of a path, and what it has measured.
struct Bench {
  Job& job;
  Communicator& world;
  Turns& turns;
  int rounds;
  std::string path{};                   // its name
  std::vector<std::string> measured{};  // the parts that this rank has measured, in order
  std::vector<std::string> maps{};  // for each path the memory that ranks share, since it is not mapped at one place

  /// Runs `work` as a part of the path to be measured.
  template <class Work>
  void measure(std::string_view part, Work&& work) {
    if (measured.empty() || !measured.back().starts_with(path + ":")) note_maps();
    measured.push_back(path + ":" + std::string(part));
    mark_begin(measured.back().c_str());
    hot_path([](void* argument) { (*static_cast<std::remove_reference_t<Work>*>(argument))(); }, &work);
    mark_end();
  }
  void note_maps();
};

/// One path. Both ranks go through it Bench::rounds times.
struct Path {
  std::string_view name;
  void (*run)(Bench& bench);
};

/// Paths within a host. The ranks take turns, so that no measured part waits, except the one that enters a barrier
/// first.
std::span<const Path> local_paths() noexcept;
/// Paths between hosts, and page faults: threads and processes wait for each other.
std::span<const Path> waiting_paths() noexcept;

inline void require(Status status) {
  if (status != Status::ok) throw std::runtime_error(std::string(explain(status)));
}

}  // namespace tonari::bench::hot_paths
