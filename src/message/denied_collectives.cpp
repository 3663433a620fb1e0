#include "message/host_collectives.hpp"
#include "message/schedule.hpp"

#include <algorithm>
#include <cstring>

// The part of SharedCollective that completes a collective by messages after the kernel has refused copies.
namespace tonari::message {

void SharedCollective::write_messages(Schedule& schedule) {
  struct End {
    SharedCollective& self;
    ~End() {
      (void)self.finish(Status::ok);
      if (self.root_ != no_root && self.root_ != self.self()) self.wake(self.root_);
    }
  } const end{*this};
  schedule.set_number(context_->tag_of_round(round_));
  if (root_ == no_root) {
    write_reduction_messages(schedule);
  } else {
    write_broadcast_messages(schedule);
  }
}

// Whether a member has shown that it was denied a copy, or copies nothing.
bool SharedCollective::is_denied(std::size_t member) const noexcept {
  const fabric::Board::Line* const line = board_->look(member, round_, Side::exit);
  return line != nullptr && fabric::status_of(static_cast<std::uint32_t>(line->bytes)) == Status::denied;
}

// With two ranks the root sends all data, whichever half is missing. With more, readers that could copy have ended.
void SharedCollective::write_broadcast_messages(Schedule& schedule) const {
  if (self() != root_) return schedule.receive(bytes_, static_cast<int>(root_));
  for (std::size_t member = 0; member < size(); ++member) {
    const bool is_waiting = size() == 2 || is_denied(member);
    if (member != self() && is_waiting) schedule.send(bytes_, static_cast<int>(member));
  }
}

// The part of a denied member's stretch that it has not combined. Other ranks' operands there are as they were, since
// a rank writes its stretch into other programs only after it has combined all of it.
std::span<std::byte> SharedCollective::not_combined_by(std::size_t member) const noexcept {
  const auto all = stretch(member);
  std::uint64_t combined = 0;
  std::memcpy(&combined, board_->line_of(member, round_, Side::exit).payload.data(), sizeof combined);
  return all.subspan(std::min<std::uint64_t>(combined, all.size()));
}

// Denied members receive the operands that they lack, and then send their stretches to all.
void SharedCollective::write_reduction_messages(Schedule& schedule) const {
  for (std::size_t member = 0; member < size(); ++member) {
    const auto rest = is_denied(member) ? not_combined_by(member) : std::span<std::byte>();
    if (rest.empty()) continue;
    if (member == self()) {
      write_combination(schedule, rest);
    } else {
      schedule.send({own_ + (rest.data() - bytes_.data()), rest.size()}, static_cast<int>(member));
    }
  }
  schedule.next_round();
  for (std::size_t member = 0; member < size(); ++member) {
    const auto theirs = is_denied(member) ? stretch(member) : std::span<std::byte>();
    if (theirs.empty()) continue;
    if (member != self()) schedule.receive(theirs, static_cast<int>(member));
    for (std::size_t other = 0; member == self() && other < size(); ++other) {
      if (other != self()) schedule.send(theirs, static_cast<int>(other));
    }
  }
}

// Combines in the order of ranks, as combine_pieces().
void SharedCollective::write_combination(Schedule& schedule, std::span<std::byte> rest) const {
  const std::span<const std::byte> own{own_ + (rest.data() - bytes_.data()), rest.size()};
  const auto sum = self() == 0 ? rest : schedule.scratch(rest.size());
  if (self() == 0 && own.data() != rest.data()) schedule.copy(rest.subspan(begun_bytes_), own.subspan(begun_bytes_));
  for (std::size_t member = 0; member < size(); ++member) {
    if (member == self()) {
      if (member != 0) schedule.fold(sum, own, reduction_);
      continue;
    }
    const auto operands = member == 0 ? sum : schedule.scratch(rest.size());
    schedule.receive(operands, static_cast<int>(member));
    const std::size_t combined = member < begun_members_ ? begun_bytes_ : 0;
    if (member != 0) schedule.fold(sum.subspan(combined), operands.subspan(combined), reduction_);
  }
  if (self() != 0) schedule.copy(rest, sum);
}

}  // namespace tonari::message
