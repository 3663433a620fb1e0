#include "message/host_collectives.hpp"

#include "job/group.hpp"
#include "message/message_runtime.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

namespace tonari::message {

using fabric::line_payload_max;
using fabric::Step;

namespace {

constexpr std::uint64_t refused_bytes =
    ~std::uint64_t{0};  // replaces the length if this rank called with invalid arguments
// Bytes of other programs' memory that are combined at a time: enough to pay for a system call, few enough for a cache.
constexpr std::size_t piece_bytes_max = 128 * 1024;
// Up to this size each rank combines all values; above, only a stretch, at the cost of a second wait for all ranks.
constexpr std::size_t combined_by_all_bytes_max = 16 * 1024;

}  // namespace

SharedCollective SharedCollective::barrier(Context& context) noexcept {
  return {context, {}, &SharedCollective::enter_and_meet};
}

SharedCollective SharedCollective::broadcast(Context& context, std::span<std::byte> bytes, int root) noexcept {
  SharedCollective made(context, bytes, &SharedCollective::read_from_root);
  made.root_ = static_cast<std::size_t>(root);
  if (made.in_program() && made.size() == 2) {
    made.phase_ = &SharedCollective::enter_and_meet;
  } else if (made.root_ == made.self()) {
    made.phase_ = &SharedCollective::enter_as_root;
  }
  return made;
}

SharedCollective SharedCollective::all_reduce(Context& context, const std::byte* own, std::span<std::byte> result,
                                              detail::Reduction reduction) noexcept {
  SharedCollective made(context, result, &SharedCollective::enter_and_meet);
  made.own_ = own;
  made.reduction_ = reduction;
  return made;
}

SharedCollective SharedCollective::refused(Context& context) noexcept {
  SharedCollective made(context, {}, &SharedCollective::refuse);
  return made;
}

fabric::Engine& SharedCollective::engine() const noexcept { return context_->runtime().engine(); }

bool SharedCollective::has_room() const noexcept { return board_->has_room(round_, in_program() ? 0 : bytes_.size()); }

// Two ranks can both copy directly at the same time, so the system calls pay off for shorter data.
std::size_t SharedCollective::board_bytes_max() const noexcept {
  return size() == 2 ? fabric::large_block_bytes / 2 : fabric::large_block_bytes;
}

bool SharedCollective::ready() const noexcept {
  switch (awaited_) {
    case Awaited::room: return has_room() || has_lost_one();
    case Awaited::entry:
      return board_->look(next_, round_, Side::entry) != nullptr || board_->has_ended(next_, round_) ||
             is_gone(next_) || has_lost_one();
    case Awaited::exit:
      return board_->look(next_, round_, Side::exit) != nullptr || board_->has_ended(next_, round_) || is_gone(next_);
    case Awaited::ended: return board_->has_ended(next_, round_) || is_gone(next_) || (lends_buffer_ && has_lost_one());
    case Awaited::nothing: break;
  }
  return true;
}

bool SharedCollective::is_gone(std::size_t member) const noexcept {
  return context_->runtime().is_gone(job::rank_at(context_->group(), static_cast<int>(member)));
}

// True if a rank of the communicator died. A rank that left has completed its part.
bool SharedCollective::has_lost_one() const noexcept { return context_->runtime().has_lost_one(*context_); }

Step SharedCollective::wait_for(Awaited what) noexcept {
  awaited_ = what;
  first_look_ = false;
  return what == Awaited::room ? Step::retry : Step::waiting;  // no rank is woken when there is room
}

Step SharedCollective::finish(Status status) noexcept {
  if (status_ == Status::ok) status_ = status;
  board_->end(round_);
  needs_messages_ = false;
  phase_ = &SharedCollective::over;
  awaited_ = Awaited::nothing;
  return Step::done;
}

void SharedCollective::give_up() noexcept {
  const bool may_end = phase_ == &SharedCollective::meet ? withdraw() : !lends_buffer_;
  if (may_end && (phase_ != &SharedCollective::over || needs_messages_)) (void)finish(Status::cancelled);
}

void SharedCollective::wake_others() noexcept {
  for (std::size_t member = 0; member < size(); ++member) {
    if (member != self()) wake(member);
  }
}

void SharedCollective::wake(std::size_t member) noexcept {
  engine().wake_if_asleep(job::rank_at(context_->group(), static_cast<int>(member)));
}

// Entry: this rank shows its line.

bool SharedCollective::may_enter() noexcept {
  if (has_room()) [[likely]]
    return true;
  if (has_lost_one()) (void)finish(Status::peer_gone);
  return false;
}

void SharedCollective::show_entry() noexcept {
  auto& line = board_->line(round_, Side::entry);
  line.bytes = status_ == Status::ok ? bytes_.size() : refused_bytes;
  if (in_program()) {
    const Lent lent{reinterpret_cast<std::uint64_t>(bytes_.data()), reinterpret_cast<std::uint64_t>(own_),
                    context_->has_seen_denial() ? std::uint64_t{1} : 0};
    std::memcpy(line.payload.data(), &lent, sizeof lent);
    lends_buffer_ = true;
  } else if (!bytes_.empty()) {
    std::memcpy(bytes_.size() <= line_payload_max ? line.payload.data() : board_->block(round_, bytes_.size()), own_,
                bytes_.size());
  }
  board_->show(round_, Side::entry);
  board_->expect(round_ + 1);
}

Step SharedCollective::enter_and_meet() noexcept {
  if (!may_enter()) return phase_ == &SharedCollective::over ? Step::done : wait_for(Awaited::room);
  show_entry();
  next_ = 0;
  first_look_ = true;
  phase_ = &SharedCollective::meet;
  return meet();
}

// Waits for the lines of all members. If members show their lines at the same time, one of them sees all lines at its
// first look. It wakes the members that sleep.
Step SharedCollective::meet() noexcept {
  do {
    for (; next_ < size(); ++next_) {
      const fabric::Board::Line* line = board_->look(next_, round_, Side::entry);  // its own line is there
      if (line == nullptr) return miss_entry();
      agreed_ = agreed_ && line->bytes == bytes_.size();
      lag_ = std::max(lag_, round_ - board_->ended_by(next_, *line));
    }
  } while (lends_buffer_ && !are_all_there());
  if (first_look_) wake_others();
  board_->note_all_ended(round_ - lag_);
  return go_on_together();
}

// A rank that lends its buffer may withdraw its line while another line is missing. So after each line was seen once,
// all must be checked together.
bool SharedCollective::are_all_there() noexcept {
  for (next_ = 0; next_ < size(); ++next_) {
    if (board_->look(next_, round_, Side::entry) == nullptr) return false;
  }
  return true;
}

// The member may be dead or have left, or it may have ended without a line: it gave up, or learned of a death before
// this rank. Or a rank of the communicator died: then the member may wait in another collective and never show a line.
Step SharedCollective::miss_entry() noexcept {
  if (!is_gone(next_) && !has_lost_one() && !board_->has_ended(next_, round_)) return wait_for(Awaited::entry);
  if (board_->look(next_, round_, Side::entry) != nullptr || !withdraw()) {  // its line came before
    awaited_ = Awaited::nothing;
    return Step::retry;
  }
  return finish(Status::peer_gone);
}

// Returns true if no other rank will use this rank's buffer: a member has not arrived, or has withdrawn for good. A
// member that arrives later finds this rank's line hidden, and a member that saw lines before checks all again.
bool SharedCollective::withdraw() noexcept {
  if (!lends_buffer_) return true;
  board_->hide(round_, Side::entry);
  for (std::size_t member = 0; member < size() && lends_buffer_; ++member) {
    if (member == self() || board_->look(member, round_, Side::entry) != nullptr) continue;
    const bool wavers = board_->is_hidden(member, round_, Side::entry) && !board_->has_ended(member, round_);
    lends_buffer_ = wavers;
  }
  if (lends_buffer_) board_->show(round_, Side::entry);
  return !lends_buffer_;
}

// All lines are visible and all ranks see the same, so all choose the same way.
Step SharedCollective::go_on_together() noexcept {
  if (!agreed_) return finish(Status::invalid);
  if (bytes_.empty()) return finish(Status::ok);
  if (in_program() && wants_messages()) [[unlikely]]
    return show_exit(Status::denied);
  if (root_ != no_root) return halve_broadcast();
  if (in_program()) return combine_stretch_in_programs();
  return bytes_.size() * (size() - 1) <= combined_by_all_bytes_max ? combine_all() : combine_stretch_on_boards();
}

const std::byte* SharedCollective::on_board(std::size_t member) const noexcept {
  if (bytes_.size() > line_payload_max) return board_->block_of(member, round_, bytes_.size());
  return board_->line_of(member, round_, Side::entry).payload.data();
}

// The line may be hidden for a moment, by a rank that has not noticed yet that all have arrived.
SharedCollective::Lent SharedCollective::lent_by(std::size_t member) const noexcept {
  Lent lent{};
  std::memcpy(&lent, board_->line_of(member, round_, Side::entry).payload.data(), sizeof lent);
  return lent;
}

// Whether a member has seen that the kernel refuses copies. All members see the same.
bool SharedCollective::wants_messages() const noexcept {
  for (std::size_t member = 0; member < size(); ++member) {
    if (lent_by(member).by_messages != 0) return true;
  }
  return false;
}

// These two copy from and to the program of a member. They return denied if the kernel refuses that.
Status SharedCollective::read(std::size_t member, std::uint64_t from, std::span<std::byte> into) const noexcept {
  const int rank = job::rank_at(context_->group(), static_cast<int>(member));
  return context_->runtime().note_refusal(rank, engine().direct_copy(rank).read(into.data(), from, into.size()));
}

Status SharedCollective::write(std::size_t member, std::uint64_t to, std::span<const std::byte> from) const noexcept {
  const int rank = job::rank_at(context_->group(), static_cast<int>(member));
  return context_->runtime().note_refusal(rank, engine().direct_copy(rank).write(to, from.data(), from.size()));
}

// Exit: this rank shows its status and collects the others'. With `denied` messages follow, unless a rank has failed.

Step SharedCollective::show_exit(Status status) noexcept {
  auto& line = board_->line(round_, Side::exit);
  line.bytes = static_cast<std::uint64_t>(status);
  std::memcpy(line.payload.data(), &combined_bytes_, sizeof combined_bytes_);
  board_->show(round_, Side::exit);
  if (status_ == Status::ok && status != Status::denied) status_ = status;
  next_ = 0;
  first_look_ = true;
  phase_ = &SharedCollective::leave;
  return leave();
}

Step SharedCollective::leave() noexcept {
  for (; next_ < size(); ++next_) {
    const fabric::Board::Line* line = board_->look(next_, round_, Side::exit);
    if (line == nullptr) {
      // The other ranks may still write into this rank's buffer, so it does not end just because one rank is lost or
      // gave up.
      const bool is_over = is_gone(next_) || board_->has_ended(next_, round_);
      line = is_over ? board_->look(next_, round_, Side::exit) : nullptr;  // it may have come before
      if (line == nullptr && !is_over) return wait_for(Awaited::exit);
    }
    const Status status =
        line == nullptr ? Status::peer_gone : fabric::status_of(static_cast<std::uint32_t>(line->bytes));
    is_denied_ = is_denied_ || status == Status::denied;
    if (status_ == Status::ok && status != Status::denied) status_ = status;
  }
  if (first_look_) wake_others();
  if (status_ == Status::ok && is_denied_) [[unlikely]]
    return go_on_by_messages();
  if (status_ == Status::ok && root_ == no_root && !in_program()) take_stretches();
  return finish(Status::ok);
}

// No rank uses the memory of another any more. The lines of this round stay until write_messages() has read them.
Step SharedCollective::go_on_by_messages() noexcept {
  context_->note_denial();
  needs_messages_ = true;
  lends_buffer_ = false;
  phase_ = &SharedCollective::over;
  awaited_ = Awaited::nothing;
  return Step::done;
}

// Broadcast.

Step SharedCollective::enter_as_root() noexcept {
  if (!may_enter()) return phase_ == &SharedCollective::over ? Step::done : wait_for(Awaited::room);
  show_entry();
  wake_others();
  if (status_ != Status::ok || !in_program()) return finish(Status::ok);
  next_ = 0;
  phase_ = &SharedCollective::await_readers;
  return await_readers();
}

// The readers copy from this rank's buffer, or show an exit line and wait for a message. After a rank died, others may
// never arrive, so this rank hides its line: a later reader finds no line.
Step SharedCollective::await_readers() noexcept {
  if (lends_buffer_ && has_lost_one()) {
    board_->hide(round_, Side::entry);
    lends_buffer_ = false;
    status_ = Status::peer_gone;
    next_ = 0;
  }
  for (; next_ < size(); ++next_) {
    const bool reads = lends_buffer_ || board_->look(next_, round_, Side::entry) != nullptr;
    if (next_ == self() || !reads) continue;
    if (!board_->has_ended(next_, round_)) {
      if (!is_gone(next_)) return wait_for(Awaited::ended);
      if (!board_->has_ended(next_, round_)) status_ = Status::peer_gone;
    }
    is_denied_ = is_denied_ || board_->look(next_, round_, Side::exit) != nullptr;
  }
  const bool is_asked = status_ == Status::ok && is_denied_;
  return is_asked ? go_on_by_messages() : finish(Status::ok);
}

Step SharedCollective::read_from_root() noexcept {
  next_ = root_;
  const fabric::Board::Line* line = board_->look(root_, round_, Side::entry);
  if (line == nullptr) {
    const bool is_over = is_gone(root_) || board_->has_ended(root_, round_) || has_lost_one();
    line = is_over ? board_->look(root_, round_, Side::entry) : nullptr;  // it may have come before
    if (line == nullptr) return is_over ? finish(Status::peer_gone) : wait_for(Awaited::entry);
  }
  if (line->bytes != bytes_.size()) return refuse();
  if (in_program()) return copy_from_root();
  if (!bytes_.empty()) std::memcpy(bytes_.data(), on_board(root_), bytes_.size());
  return finish(Status::ok);
}

// The root may wait for this rank, and with two ranks it waits for this rank's line.
Step SharedCollective::refuse() noexcept {
  status_ = Status::invalid;
  bytes_ = {};
  phase_ = &SharedCollective::enter_as_root;
  return enter_as_root();
}

// This rank's line declares that it reads. From then on the root waits until this rank has ended.
Step SharedCollective::copy_from_root() noexcept {
  if (!may_enter()) return phase_ == &SharedCollective::over ? Step::done : wait_for(Awaited::room);
  board_->show(round_, Side::entry);
  Status status = Status::peer_gone;
  if (board_->look(root_, round_, Side::entry) != nullptr) {
    const Lent lent = lent_by(root_);
    const bool is_known = lent.by_messages != 0 || context_->has_seen_denial();
    status = is_known ? Status::denied : read(root_, lent.own, bytes_);
  }
  if (status == Status::denied) [[unlikely]]
    return ask_root();
  (void)finish(status);
  wake(root_);
  return Step::done;
}

// The root sends the data once all readers have ended, as this one does in write_messages().
Step SharedCollective::ask_root() noexcept {
  board_->line(round_, Side::exit).bytes = static_cast<std::uint64_t>(Status::denied);
  board_->show(round_, Side::exit);
  return go_on_by_messages();
}

// With two ranks each copies one half, concurrently.
Step SharedCollective::halve_broadcast() noexcept {
  const std::size_t half = bytes_.size() / 2;
  const std::size_t peer = 1 - self();
  const std::uint64_t address = lent_by(peer).result;
  const bool is_root = self() == root_;
  return show_exit(is_root ? write(peer, address + half, bytes_.subspan(half))
                           : read(peer, address, bytes_.first(half)));
}

// All-reduce.

// This rank's own values are on its board too, so `values` may be overwritten.
void SharedCollective::combine_on_boards(std::span<std::byte> values) const noexcept {
  const auto offset = static_cast<std::size_t>(values.data() - bytes_.data());
  if (values.empty()) return;
  std::memcpy(values.data(), on_board(0) + offset, values.size());
  for (std::size_t member = 1; member < size(); ++member) {
    reduction_.fold(values.data(), on_board(member) + offset, values.size() / reduction_.element_bytes,
                    reduction_.operation);
  }
}

Step SharedCollective::combine_all() noexcept {
  combine_on_boards(bytes_);
  return finish(Status::ok);
}

Step SharedCollective::combine_stretch_on_boards() noexcept {
  const auto mine = stretch(self());
  combine_on_boards(mine);
  // Until now the other ranks read every part of this block except this stretch; from now on they read only this
  // stretch.
  if (!mine.empty())
    std::memcpy(board_->block(round_, bytes_.size()) + (mine.data() - bytes_.data()), mine.data(), mine.size());
  return show_exit(Status::ok);
}

void SharedCollective::take_stretches() noexcept {
  for (std::size_t member = 0; member < size(); ++member) {
    const auto theirs = stretch(member);
    if (member == self() || theirs.empty()) continue;
    std::memcpy(theirs.data(), on_board(member) + (theirs.data() - bytes_.data()), theirs.size());
  }
}

// Only this rank reads its stretch of the values in all programs. It then writes the result there.
Step SharedCollective::combine_stretch_in_programs() noexcept {
  const auto mine = stretch(self());
  const auto offset = static_cast<std::uint64_t>(mine.data() - bytes_.data());
  Status status = combine_pieces(mine, offset);
  for (std::size_t member = 0; member < size() && status == Status::ok; ++member) {
    if (member == self()) continue;
    status = write(member, lent_by(member).result + offset, mine);
  }
  return show_exit(status);
}

// Combines in the order of ranks: the operands of the ranks before this one are combined in scratch memory, then this
// rank's own, then the others.
Status SharedCollective::combine_pieces(std::span<std::byte> stretch, std::uint64_t offset) noexcept {
  const std::size_t element = reduction_.element_bytes;
  const std::size_t piece_bytes = std::max<std::size_t>(1, piece_bytes_max / element) * element;
  const std::unique_ptr<std::byte[]> scratch(new (std::nothrow) std::byte[2 * std::min(piece_bytes, stretch.size())]);
  if (scratch == nullptr) return Status::no_memory;
  for (; !stretch.empty(); offset += piece_bytes) {
    const auto piece = stretch.first(std::min(piece_bytes, stretch.size()));
    stretch = stretch.subspan(piece.size());
    std::byte* const sum = self() == 0 ? piece.data() : scratch.get();
    std::byte* const part = scratch.get() + piece.size();
    const std::byte* const own = own_ + offset;
    if (self() == 0 && own != piece.data()) std::memcpy(piece.data(), own, piece.size());
    for (std::size_t member = 0; member < size(); ++member) {
      if (member == self() && member == 0) continue;
      std::byte* const into = member == 0 ? sum : part;
      if (member != self()) {
        const Status status = read(member, lent_by(member).own + offset, {into, piece.size()});
        if (status != Status::ok) {
          if (self() == 0) {
            begun_bytes_ = piece.size();
            begun_members_ = member;
          }
          return status;
        }
      }
      if (member == 0) continue;
      reduction_.fold(sum, member == self() ? own : part, piece.size() / element, reduction_.operation);
    }
    if (sum != piece.data()) std::memcpy(piece.data(), sum, piece.size());
    combined_bytes_ += piece.size();
  }
  return Status::ok;
}

}  // namespace tonari::message
