#pragma once

#include "fabric/board.hpp"
#include "message/host_groups.hpp"

#include <tonari/job.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

namespace tonari::message {

/// A communicator of more ranks meets by messages alone.
inline constexpr int ranks_on_a_board_max = 64;

class MessageRuntime;

/// What a communicator is made of. Its id separates its messages from all others': point-to-point ones carry `id`,
/// those of collectives `id + 1`.
class Context {
 public:
  /// `places`: where each of its ranks, in order, meets the others; empty when they do not.
  Context(MessageRuntime& runtime, Group group, std::uint32_t id, std::span<const fabric::BoardPlace> places);
  ~Context();

  /// Where these ranks may meet: all on this host, and not too many.
  static bool may_meet(const MessageRuntime& runtime, std::span<const JobRank> ranks) noexcept;

  [[nodiscard]] MessageRuntime& runtime() const noexcept { return runtime_; }
  [[nodiscard]] const Group& group() const noexcept { return group_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return group_.size(); }
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] std::uint32_t collective_id() const noexcept { return id_ + 1; }
  /// The tag of the next collective: the same on all ranks, since all start collectives in the same order.
  std::uint32_t next_collective() noexcept { return sequence_.fetch_add(1, std::memory_order_relaxed) & 0x7fffffff; }
  /// Where its ranks meet for collectives through shared memory; null when they do not.
  [[nodiscard]] fabric::Board* board() const noexcept { return board_.get(); }
  [[nodiscard]] const HostGroups& hosts() const noexcept { return hosts_; }

 private:
  MessageRuntime& runtime_;
  Group group_;
  int rank_;
  HostGroups hosts_;
  std::uint32_t id_;
  std::atomic<std::uint32_t> sequence_{0};  // relaxed: a number, ordered by the user's own order of collectives
  fabric::BoardPlace place_;
  std::unique_ptr<fabric::Board> board_;
};

}  // namespace tonari::message
