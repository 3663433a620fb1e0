#include "fabric/ring.hpp"

namespace tonari::fabric {

bool RingWriter::has_room_slow(std::uint64_t position) noexcept {
  const std::uint64_t taken = ring_->taken.load(std::memory_order_acquire);  // pairs with give_back
  taken_seen_.store(taken, std::memory_order_release);  // so that other threads' writes come after it too
  // If other writers have claimed the position meanwhile, and the reader has taken it, that is no lack of room: the
  // claim fails and is repeated with the new tail.
  return position < taken || position - taken <= mask_;
}

bool RingWriter::ask_for_room() noexcept {
  // Sequentially consistent with give_back(): either the reader sees `starved`, or this writer sees the new `taken`.
  ring_->starved.store(1, std::memory_order_seq_cst);
  const std::uint64_t taken = ring_->taken.load(std::memory_order_seq_cst);
  return claimed_count(ring_->tail.load(std::memory_order_relaxed)) - taken <= mask_;
}

void RingReader::give_back() noexcept {
  ring_->taken.store(position_, std::memory_order_seq_cst);  // also release: slots are read before their reuse
  if (ring_->starved.load(std::memory_order_seq_cst) != 0) {
    ring_->starved.store(0, std::memory_order_relaxed);
    room_made_ = true;
  }
}

bool RingReader::fall_asleep() noexcept {
  // The modification order of `tail` decides: an earlier claim is seen here, a later claim sees the bit. Sequentially
  // consistent for conditions that are awaited without the ring: see reader_sleeps().
  const std::uint64_t tail = ring_->tail.fetch_or(asleep_bit, std::memory_order_seq_cst);
  const bool quiet = claimed_count(tail) == position_;
  if (!quiet) expect_gap();
  return quiet;
}

// Whether the claimer of `position` has died before publishing. The next claimer has stored the claimer's rank in the
// next slot's publish field; if there is no next slot, the tail has it.
bool RingReader::abandoned(std::uint64_t position, std::uint64_t tail) const noexcept {
  if (position + 1 == claimed_count(tail)) return !alive_(last_claimer(tail));
  const std::uint64_t word = first_word(slot(position + 1)).load(std::memory_order_acquire);
  if (!published(position + 1, word)) return false;
  return !alive_(static_cast<int>((word >> 2) & claimer_mask));
}

}  // namespace tonari::fabric
