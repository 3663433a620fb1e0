#pragma once

#include "base/file_descriptor.hpp"
#include "job/arena.hpp"
#include "job/neighbour.hpp"

#include <memory>
#include <thread>
#include <vector>

namespace tonari::job {

/// Records the deaths of the other ranks of this host in the arena, where no `tonari run` does. Every rank watches
/// every other one, so that nobody is missed who watches; whoever is first records.
///
/// Owns:    a thread, from construction to destruction, that sleeps until a process ends; a descriptor a neighbour.
/// Threads: its own; construction and destruction happen once each.
class ProcessWatch {
 public:
  ProcessWatch(std::shared_ptr<Arena> arena, std::vector<Neighbour> neighbours);
  ProcessWatch(ProcessWatch&&) = delete;
  ~ProcessWatch();

 private:
  void watch() noexcept;
  void record(const Neighbour& ended) noexcept;

  std::shared_ptr<Arena> arena_;
  std::vector<Neighbour> neighbours_;
  FileDescriptor stop_;
  std::thread thread_;
};

}  // namespace tonari::job
