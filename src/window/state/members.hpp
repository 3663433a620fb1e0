#pragma once

#include "fabric/engine.hpp"
#include "job/group.hpp"
#include "window/remote/rdma_keys.hpp"
#include "window/state/layout.hpp"

#include <tonari/window.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tonari::window {

class WindowRuntime;

/// A remote rank's description of its part.
struct RemotePart {
  std::uint64_t bytes = 0;
  std::uint32_t locks = 0;
  std::uint32_t notifications = 0;
  Rights rights = Rights::none;  // of this rank in that part
  bool in_program = false;
};

struct RemoteMember : RemotePart {
  std::atomic<PartState> state{PartState::absent};  // as far as its heads have arrived; the target checks again anyway
  std::atomic<bool> counts_on_us{false};            // it must be told when this rank's part is freed
  PartKey key;
};

/// The members of a window: the ranks that take part, by their position in the group, and where they are.
///
/// Threads: any, except for construction.
class Members {
 public:
  Members(WindowRuntime& runtime, Group group, const Layout& layout);
  Members(Members&&) = delete;

  [[nodiscard]] const Group& group() const noexcept { return group_; }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(group_.size()); }
  /// Returns this rank's position.
  [[nodiscard]] std::size_t self() const noexcept { return self_; }
  [[nodiscard]] int rank_of(std::size_t member) const noexcept {
    return job::rank_at(group_, static_cast<int>(member));
  }

  /// Returns the members of this host. The first is its leader.
  [[nodiscard]] std::span<const std::size_t> here() const noexcept { return here_; }
  [[nodiscard]] bool is_leader() const noexcept { return here_.front() == self_; }
  /// Returns the ranks of all hosts' leaders, in the order of the group.
  [[nodiscard]] const std::vector<int>& leaders() const noexcept { return leaders_; }
  /// Returns true if the window has ranks of other hosts.
  [[nodiscard]] bool spans_hosts() const noexcept { return remote_ != nullptr; }
  /// Returns what is known of a remote member. Only if spans_hosts().
  [[nodiscard]] RemoteMember& remote(std::size_t member) const noexcept { return remote_[member]; }
  /// Returns that of rank `rank`, or null if it is no remote member.
  [[nodiscard]] RemoteMember* find_remote(int rank) const noexcept;

  /// Returns true if a member has died, has left, or has freed its part.
  [[nodiscard]] bool is_gone(std::size_t member) const noexcept;
  /// Returns the number of members that have died.
  [[nodiscard]] std::size_t count_dead() const noexcept;
  /// Wakes the members that sleep, after this rank has published something.
  void wake_others() const noexcept;

 private:
  WindowRuntime& runtime_;
  fabric::Engine& engine_;
  const Layout& layout_;
  const Group group_;
  const std::size_t self_;
  std::vector<std::size_t> here_;
  std::vector<int> leaders_;
  std::unique_ptr<RemoteMember[]> remote_;  // by member; null: all members are on this host
};

}  // namespace tonari::window
