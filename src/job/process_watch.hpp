#pragma once

#include "base/file_descriptor.hpp"
#include "job/arena.hpp"
#include "job/neighbour.hpp"

#include <memory>
#include <thread>
#include <vector>

namespace tonari::job {

/// Records the deaths of the other ranks of this host in the arena, in jobs without `tonari run`. Every rank watches
/// every other rank, so that no death is missed if a watching rank dies too. The first rank to notice records the
/// death.
///
/// Owns:    a thread, from construction to destruction, that sleeps until a process ends; one descriptor per neighbour.
/// Threads: its own thread; construction and destruction happen once each.
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
