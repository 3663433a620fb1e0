#include "window/remote/multicast.hpp"

#include "window/local/checked_copy.hpp"
#include "window/state/window_state.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tonari::window {

void RemoteMulticast::push(std::span<const MulticastTarget> targets, std::span<const std::byte> from,
                           bool in_program) noexcept {
  if (targets.size() == 1) return push_alone(targets[0], from, in_program);
  const std::size_t piece_bytes = fabric::bulk_tail_bytes_max - targets.size_bytes();
  std::size_t at = 0;
  do {
    Piece& piece = under_way_.next([this](Piece& oldest) { end(oldest); });
    piece.from = from.subspan(at, std::min(piece_bytes, from.size() - at));
    piece.in_program = in_program;
    piece.count = targets.size();
    std::ranges::transform(targets, piece.targets.begin(), [at](MulticastTarget target) {
      target.offset += at;
      return target;
    });
    const Status asked = ask(piece);
    if (asked == Status::ok) under_way_.begin();
    fail(asked);
    at += piece.from.size();
  } while (at < from.size());
}

// Asks the relay. Returns bad_address if the piece cannot be read.
Status RemoteMulticast::ask(Piece& piece) noexcept {
  const auto targets = std::as_bytes(std::span(piece.targets).first(piece.count));
  const std::size_t tail_bytes = targets.size() + piece.from.size();
  const int first = static_cast<int>(piece.targets[0].rank);
  const fabric::BulkPlace block = origin_.requests().allocate(tail_bytes, first);
  std::byte* const tail = origin_.requests().at(block);
  std::memcpy(tail, targets.data(), targets.size());
  const Status filled =
      load_local(session_, piece.in_program, {tail + targets.size(), piece.from.size()}, piece.from.data());
  if (filled != Status::ok) {
    origin_.requests().give_back(block);
    return filled;
  }
  ServiceRequest request{};
  request.service = Service::relay;
  request.bytes = static_cast<std::uint32_t>(piece.from.size());
  request.words[0] = tail_bytes;
  request.words[1] = block.value;
  request.words.back() = std::bit_cast<std::uint64_t>(RequestExtras{static_cast<std::uint32_t>(piece.count), 0});
  origin_.ask(piece.pending, first, window_, request, Kind::window_push);
  return Status::ok;
}

void RemoteMulticast::end(Piece& piece) noexcept {
  origin_.requests().wait(piece.pending);
  const bool is_answered = piece.pending.status() == Status::ok;  // otherwise the relay has died
  const std::uint64_t left = is_answered ? piece.pending.words()[0] : all_left;
  if (left != all_left) fail(piece.pending.outcome());
  for (std::size_t i = 0; i < piece.count; ++i) {
    if ((left >> i & 1) != 0) push_alone(piece.targets[i], piece.from, piece.in_program);
  }
}

void RemoteMulticast::push_alone(const MulticastTarget& target, std::span<const std::byte> from,
                                 bool in_program) noexcept {
  const Region all{0, from.size()};
  alone_.start({static_cast<int>(target.rank), target.offset, in_program}, from.data(), std::span(&all, 1), true);
}

Status RemoteMulticast::end() noexcept {
  under_way_.end_all([this](Piece& piece) { end(piece); });
  fail(alone_.end());
  return status_;
}

Status relay(WindowState& state, int peer, std::span<const std::byte> tail, std::uint32_t targets,
             std::uint64_t& left) noexcept {
  if (targets > relayed_max || tail.size() < targets * sizeof(MulticastTarget)) return Status::invalid;  // malformed
  const auto data = tail.subspan(targets * sizeof(MulticastTarget));
  Status first_failure = Status::ok;
  left = 0;
  for (std::uint32_t i = 0; i < targets; ++i) {
    MulticastTarget target;
    std::memcpy(&target, tail.data() + i * sizeof target, sizeof target);
    const auto status = state.push_for(peer, {state.number(), JobRank{target.rank}, target.offset}, data);
    if (!status) left |= std::uint64_t{1} << i;
    if (status && first_failure == Status::ok) first_failure = *status;
  }
  return first_failure;
}

}  // namespace tonari::window
