#pragma once

#include "job/arena.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tonari::job {

/// Process ids of every `tonari run` that can be asked from here, other users' included, in order.
std::vector<pid_t> running_jobs();

/// Looks at a running job from outside, for `tonari status`: maps its rank blocks for reading alone, so that whatever
/// happens here the job does not notice.
class Observer {
 public:
  /// Of the job of this process, which is a `tonari run` or one of its ranks. Throws SetupError that says why not.
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
