#pragma once

#include "job/arena.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tonari::job {

/// Returns the process ids, in order, of every `tonari run` that is reachable from here, including other users'.
std::vector<pid_t> running_jobs();

/// Observes a running job from outside, for `tonari status`. Maps its rank blocks read-only, so an observer cannot
/// disturb the job.
class Observer {
 public:
  /// Connects to the job of `process`, which is a `tonari run` or one of its ranks. Throws SetupError with the reason
  /// if it cannot.
  explicit Observer(pid_t process);

  [[nodiscard]] pid_t starter() const noexcept { return starter_; }
  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(header().ranks); }
  [[nodiscard]] const ArenaHeader& header() const noexcept;
  [[nodiscard]] const RankBlock& block(int rank) const noexcept;

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* start) const noexcept;
  };

  void map(const FileDescriptor& memory, std::size_t ranks);

  pid_t starter_ = 0;
  std::unique_ptr<std::byte, Unmap> blocks_;
};

}  // namespace tonari::job
