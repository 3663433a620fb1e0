#pragma once

#include "fabric/board.hpp"
#include "fabric/engine.hpp"
#include "job/group.hpp"
#include "message/context.hpp"

#include <tonari/message.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::message {

class Schedule;

/// Returns the stretch of all values that one of `members` combines. Stretches are in the order of members and have
/// equal numbers of elements, or one more.
inline std::span<std::byte> stretch_of(std::span<std::byte> values, std::size_t element_bytes, std::size_t member,
                                       std::size_t members) noexcept {
  const std::size_t count = values.size() / element_bytes;
  const std::size_t first = count / members * member + std::min(member, count % members);
  const std::size_t elements = count / members + (member < count % members ? 1 : 0);
  return values.subspan(first * element_bytes, elements * element_bytes);
}

/// A collective through shared memory, executed by one rank on the boards of its communicator (fabric/board.hpp). A
/// rank's data are
///
///   in its line      up to 48 bytes
///   in its block     up to 64 KiB; up to 32 KiB in a communicator of two ranks
///   in its program   if longer: the line holds the address, and the ranks that need the data copy them from there
///
/// Operands are combined in the order of ranks, whatever the length. Each rank combines all of them; if they are long,
/// each rank combines one stretch and then gives it to the others.
///
/// The kernel may refuse the copies between programs, at any time and to some ranks only. Then the collective is
/// completed by messages, see needs_messages().
///
/// Threads: its owning thread; ready() may be called by another thread while the owning thread sleeps.
class SharedCollective final : public fabric::Watched {
 public:
  /// The context must have a board. Making a collective takes the next round, so all ranks must make the same
  /// collectives in the same order.
  static SharedCollective barrier(Context& context) noexcept;
  static SharedCollective broadcast(Context& context, std::span<std::byte> bytes, int root) noexcept;
  /// `own`: this rank's operands, as many as `result` has; may be the result's memory.
  static SharedCollective all_reduce(Context& context, const std::byte* own, std::span<std::byte> result,
                                     detail::Reduction reduction) noexcept;
  /// A collective that this rank called with invalid arguments. The other ranks may have begun it and must not wait
  /// forever.
  static SharedCollective refused(Context& context) noexcept;

  /// Advances as far as possible.
  fabric::Step step() noexcept { return (this->*phase_)(); }
  [[nodiscard]] bool ready() const noexcept override;
  [[nodiscard]] Status status() const noexcept { return status_; }
  /// Returns the job rank that it waits for.
  [[nodiscard]] int awaited() const noexcept { return job::rank_at(context_->group(), static_cast<int>(next_)); }
  /// Ends the collective early, unless other ranks may still use this rank's buffer.
  void give_up() noexcept;

  /// Whether all copies that were possible are over, and messages must do the rest: step() has returned done, and the
  /// kernel has refused copies. The other ranks know that, as far as they take part in the messages.
  [[nodiscard]] bool needs_messages() const noexcept { return needs_messages_; }
  /// Records these messages, in the last round and new ones, and ends the collective on the boards. The status of the
  /// schedule is that of the collective. Throws std::bad_alloc, after it has ended the collective.
  void write_messages(Schedule& schedule);
  [[nodiscard]] Context& context() const noexcept { return *context_; }

 private:
  using Phase = fabric::Step (SharedCollective::*)() noexcept;
  using Side = fabric::Board::Side;
  enum class Awaited : std::uint8_t { nothing, room, entry, exit, ended };
  /// The payload of a line whose data are in the program: addresses there.
  struct Lent {
    std::uint64_t result;
    std::uint64_t own;
    std::uint64_t by_messages;  // not 0 if this rank has seen that the kernel refuses copies
  };

  SharedCollective(Context& context, std::span<std::byte> bytes, Phase first) noexcept
      : context_(&context),
        board_(context.board()),
        round_(board_->begin()),
        phase_(first),
        bytes_(bytes),
        own_(bytes.data()) {}

  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(context_->size()); }
  [[nodiscard]] std::size_t self() const noexcept { return static_cast<std::size_t>(context_->rank()); }
  [[nodiscard]] fabric::Engine& engine() const noexcept;
  [[nodiscard]] std::size_t board_bytes_max() const noexcept;
  [[nodiscard]] bool in_program() const noexcept { return bytes_.size() > board_bytes_max(); }
  [[nodiscard]] bool has_room() const noexcept;
  [[nodiscard]] std::span<std::byte> stretch(std::size_t member) const noexcept {
    return stretch_of(bytes_, reduction_.element_bytes, member, size());
  }

  // Phases
  fabric::Step enter_and_meet() noexcept;
  fabric::Step meet() noexcept;
  fabric::Step enter_as_root() noexcept;
  fabric::Step await_readers() noexcept;
  fabric::Step read_from_root() noexcept;
  fabric::Step refuse() noexcept;
  fabric::Step copy_from_root() noexcept;
  fabric::Step leave() noexcept;
  fabric::Step ask_root() noexcept;
  fabric::Step go_on_by_messages() noexcept;
  fabric::Step over() noexcept { return fabric::Step::done; }

  // Parts of the phases
  [[nodiscard]] bool may_enter() noexcept;
  void show_entry() noexcept;
  fabric::Step show_exit(Status status) noexcept;
  [[nodiscard]] bool is_gone(std::size_t member) const noexcept;
  [[nodiscard]] bool has_lost_one() const noexcept;
  fabric::Step wait_for(Awaited what) noexcept;
  fabric::Step finish(Status status) noexcept;
  void wake_others() noexcept;
  void wake(std::size_t member) noexcept;
  [[nodiscard]] bool are_all_there() noexcept;
  fabric::Step miss_entry() noexcept;
  bool withdraw() noexcept;
  fabric::Step go_on_together() noexcept;
  fabric::Step halve_broadcast() noexcept;
  void combine_on_boards(std::span<std::byte> values) const noexcept;
  fabric::Step combine_all() noexcept;
  fabric::Step combine_stretch_on_boards() noexcept;
  fabric::Step combine_stretch_in_programs() noexcept;
  Status combine_pieces(std::span<std::byte> stretch, std::uint64_t offset) noexcept;
  void take_stretches() noexcept;
  [[nodiscard]] const std::byte* on_board(std::size_t member) const noexcept;
  [[nodiscard]] Lent lent_by(std::size_t member) const noexcept;
  [[nodiscard]] bool wants_messages() const noexcept;
  Status read(std::size_t member, std::uint64_t from, std::span<std::byte> into) const noexcept;
  Status write(std::size_t member, std::uint64_t to, std::span<const std::byte> from) const noexcept;

  // The messages after a refusal
  void write_broadcast_messages(Schedule& schedule) const;
  void write_reduction_messages(Schedule& schedule) const;
  void write_combination(Schedule& schedule, std::span<std::byte> rest) const;
  [[nodiscard]] bool is_denied(std::size_t member) const noexcept;
  [[nodiscard]] std::span<std::byte> not_combined_by(std::size_t member) const noexcept;

  Context* context_;
  fabric::Board* board_;
  std::uint32_t round_;
  Phase phase_;
  std::span<std::byte> bytes_;
  const std::byte* own_;  // of an all-reduce: the operands. Otherwise as bytes_
  detail::Reduction reduction_{};
  std::size_t root_ = no_root;
  std::size_t next_ = 0;  // the first member that has not arrived yet
  Awaited awaited_ = Awaited::nothing;
  std::uint32_t lag_ = 0;      // number of rounds that the slowest member has not ended
  bool first_look_ = true;     // no member was missing so far
  bool agreed_ = true;         // all members show the same length
  bool lends_buffer_ = false;  // other ranks may read own_ and write bytes_
  bool is_denied_ = false;     // the kernel has refused a copy to some rank
  bool needs_messages_ = false;
  Status status_ = Status::ok;
  // Progress of a stretch that is combined in programs: its complete bytes. Behind them, rank 0 has combined the
  // operands of the first `begun_members_` ranks in `begun_bytes_`; the other ranks begin anew.
  std::uint64_t combined_bytes_ = 0;
  std::uint64_t begun_bytes_ = 0;
  std::size_t begun_members_ = 0;

  static constexpr std::size_t no_root = ~std::size_t{0};
};

}  // namespace tonari::message
