#pragma once

#include "fabric/board.hpp"
#include "job/group.hpp"
#include "message/host_groups.hpp"

#include <tonari/message.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace tonari::message {

/// Communicators with more ranks use no boards, only messages.
inline constexpr int ranks_on_a_board_max = 64;

class MessageRuntime;

/// The numbers by which messages of one communicator are kept apart from all others. A communicator has six, from its
/// id on: messages from point to point carry the first one.
inline constexpr std::uint32_t ids_per_context = 6;
inline constexpr std::uint32_t collective_id_offset = 1;
/// Messages that make communicators of some of its ranks, and inter-communicators, see creation.hpp.
inline constexpr std::uint32_t creation_id_offset = 2;
inline constexpr std::uint32_t inter_creation_id_offset = 3;
/// Two for messages of fronts that must not meet the messages of programs.
inline constexpr std::uint32_t front_id_offset = 4;
inline constexpr std::uint32_t world_context_id = 0;
/// The largest id of a communicator. Above are ids that no communicator has.
inline constexpr std::uint32_t context_id_max = 0xffffffc0;
/// Parent of communicators that are made from a group alone, see create_context().
inline constexpr std::uint32_t no_parent_id = 0xffffffe0;

/// The state of a communicator on one rank.
///
/// An *inter-communicator* has two sides, groups without a common rank. Ranks of sends, receives and envelopes name
/// ranks of the other side. rank(), size(), hosts() and the collectives of Communicator are about the own side. Sends
/// and receives of a Schedule name *members*: first the ranks of the own side, then the ranks of the other. The ranks
/// of both sides start all collectives in the same order, whether a collective exchanges data between the sides or not.
class Context : public std::enable_shared_from_this<Context> {
 public:
  /// `places`: the board of each of its ranks, in order; empty if the communicator uses no boards.
  Context(MessageRuntime& runtime, Group group, std::uint32_t id, std::span<const fabric::BoardPlace> places);
  /// Makes an inter-communicator with the sides `group`, to which this rank belongs, and `remote`.
  Context(MessageRuntime& runtime, Group group, Group remote, std::uint32_t id);
  /// For collectives among ranks that have no communicator yet. Their messages carry `collective_id`; their tags are
  /// `tag` and the numbers after it.
  struct Provisional {
    std::uint32_t collective_id;
    int tag;
  };
  Context(MessageRuntime& runtime, Group group, Provisional provisional);
  ~Context();

  /// True if these ranks may use boards: all are on this host, and there are not too many.
  static bool may_meet(const MessageRuntime& runtime, std::span<const JobRank> ranks) noexcept;

  [[nodiscard]] MessageRuntime& runtime() const noexcept { return runtime_; }
  /// The ranks of its own side; all ranks, unless it is an inter-communicator.
  [[nodiscard]] const Group& group() const noexcept { return group_; }
  /// The ranks that sends, receives and envelopes name.
  [[nodiscard]] const Group& peers() const noexcept { return *peers_; }
  [[nodiscard]] bool is_inter() const noexcept { return remote_.has_value(); }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return group_.size(); }
  /// Returns the job rank of a member.
  [[nodiscard]] int job_rank_of(int member) const noexcept {
    return member < size() ? job::rank_at(group_, member) : job::rank_at(*peers_, member - size());
  }
  /// Whether the rank of the job is a member.
  [[nodiscard]] bool has(int job_rank) const noexcept {
    return job::position_in(group_, job_rank) >= 0 || (is_inter() && job::position_in(*peers_, job_rank) >= 0);
  }
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] std::uint32_t collective_id() const noexcept { return id_ + collective_id_offset; }
  /// Returns the tag of the next collective. It is the same on all ranks, because all start collectives in the same
  /// order.
  std::uint32_t next_collective() noexcept { return sequence_.fetch_add(1, std::memory_order_relaxed) & tag_mask_; }
  /// Returns the tag of a collective that ranks prepare in the same order, but may start in any order. Other
  /// collectives never have it.
  std::uint32_t next_persistent() noexcept {
    return persistent_tags | (persistent_sequence_.fetch_add(1, std::memory_order_relaxed) & tag_mask_);
  }
  /// The boards for collectives through shared memory; null if it uses none.
  [[nodiscard]] fabric::Board* board() const noexcept { return board_.get(); }
  /// Returns the tag of the messages that complete the collective of this round of the boards. Other collectives never
  /// have it.
  [[nodiscard]] std::uint32_t tag_of_round(std::uint32_t round) const noexcept {
    return round_tags | (round & tag_mask_);
  }
  /// Whether the kernel has refused a copy between two ranks in a collective on these boards, as far as this rank
  /// knows. Then it lends its buffers to no other rank.
  [[nodiscard]] bool has_seen_denial() const noexcept { return has_seen_denial_.load(std::memory_order_relaxed); }
  void note_denial() noexcept { has_seen_denial_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] const HostGroups& hosts() const noexcept { return hosts_; }
  /// The own side, for recording a collective. Must not outlive the context.
  operator Members() const noexcept { return {hosts_, rank_}; }

 private:
  MessageRuntime& runtime_;
  Group group_;
  std::optional<Group> remote_;  // the other side
  const Group* peers_;           // the other side or, without one, group_
  int rank_;
  HostGroups hosts_;
  std::uint32_t id_;
  static constexpr std::uint32_t round_tags = 0x20000000;
  static constexpr std::uint32_t persistent_tags = 0x40000000;
  std::uint32_t tag_mask_ = 0x1fffffff;     // of collectives that have neither kind of tag
  std::atomic<std::uint32_t> sequence_{0};  // relaxed: the user's order of collectives already orders the numbers
  std::atomic<std::uint32_t> persistent_sequence_{0};  // the same
  fabric::BoardPlace place_;
  std::unique_ptr<fabric::Board> board_;
  std::atomic<bool> has_seen_denial_{false};  // relaxed: each rank shows in each round what it knows
};

/// The runtime's access to a Communicator.
struct Communicators {
  static Communicator of(std::shared_ptr<Context> context) noexcept { return Communicator(std::move(context)); }
  /// Returns a communicator that must end before `context` does.
  static Communicator borrow(Context& context) noexcept {
    return Communicator(std::shared_ptr<Context>(std::shared_ptr<Context>{}, &context));
  }
  static const std::shared_ptr<Context>& context(const Communicator& communicator) noexcept {
    return communicator.context_;
  }
};

}  // namespace tonari::message
