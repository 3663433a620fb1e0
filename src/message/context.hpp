#pragma once

#include "fabric/board.hpp"
#include "message/host_groups.hpp"

#include <tonari/job.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

namespace tonari::message {

/// Communicators with more ranks use no boards, only messages.
inline constexpr int ranks_on_a_board_max = 64;

class MessageRuntime;

/// The state of a communicator on one rank. Its id separates its messages from messages of other communicators:
/// point-to-point messages carry `id`, messages of collectives `id + 1`.
class Context {
 public:
  /// `places`: the board of each of its ranks, in order; empty if the communicator uses no boards.
  Context(MessageRuntime& runtime, Group group, std::uint32_t id, std::span<const fabric::BoardPlace> places);
  ~Context();

  /// True if these ranks may use boards: all are on this host, and there are not too many.
  static bool may_meet(const MessageRuntime& runtime, std::span<const JobRank> ranks) noexcept;

  [[nodiscard]] MessageRuntime& runtime() const noexcept { return runtime_; }
  [[nodiscard]] const Group& group() const noexcept { return group_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return group_.size(); }
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] std::uint32_t collective_id() const noexcept { return id_ + 1; }
  /// Returns the tag of the next collective. It is the same on all ranks, because all start collectives in the same
  /// order.
  std::uint32_t next_collective() noexcept { return sequence_.fetch_add(1, std::memory_order_relaxed) & 0x7fffffff; }
  /// The boards for collectives through shared memory; null if it uses none.
  [[nodiscard]] fabric::Board* board() const noexcept { return board_.get(); }
  [[nodiscard]] const HostGroups& hosts() const noexcept { return hosts_; }

 private:
  MessageRuntime& runtime_;
  Group group_;
  int rank_;
  HostGroups hosts_;
  std::uint32_t id_;
  std::atomic<std::uint32_t> sequence_{0};  // relaxed: the user's order of collectives already orders the numbers
  fabric::BoardPlace place_;
  std::unique_ptr<fabric::Board> board_;
};

}  // namespace tonari::message
