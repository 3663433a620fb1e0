#pragma once

#include "fabric/head.hpp"

#include <tonari/status.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace tonari::fabric {

// A ring of heads with many writers, in any process of the host, and one reader at a time. In the arena:
//
//   0        64       128
//   +--------+--------+---------+---------+-----+
//   | tail   | taken  | slot 0  | slot 1  | ... |     slots: a power of two; zeroed memory is an empty ring
//   +--------+--------+---------+---------+-----+
//
// tail     bit 0: the reader sleeps, and the next claimer wakes it; bits 1-14: local rank of the last claimer;
//          bits 15-63: number of slots ever claimed. One compare-exchange claims a slot, learns whether to wake the
//          reader, and stores the claimer's rank.
// taken    number of slots that the reader has given back; updated after every quarter of the ring.
// starved  a writer waits for room.
//
// I1  taken <= claimed <= taken + slots                      RingWriter::push
// I2  between claim and publication only the claimer writes a slot
// I3  position p is published when its slot's publish field has lap(p); one lap earlier it had lap(p) - 1
struct RingMemory {
  alignas(head_bytes) std::atomic<std::uint64_t> tail;
  alignas(head_bytes) std::atomic<std::uint64_t> taken;
  std::atomic<std::uint32_t> starved;
  alignas(head_bytes) Head slots[1];  // in fact as many as the ring has
};
inline constexpr std::size_t ring_control_bytes = offsetof(RingMemory, slots);
static_assert(ring_control_bytes == 2 * head_bytes);

inline constexpr std::uint64_t asleep_bit = 1;
inline constexpr int claimer_bits = 14;
inline constexpr int count_shift = 1 + claimer_bits;
inline constexpr std::uint64_t claimer_mask = (std::uint64_t{1} << claimer_bits) - 1;

constexpr std::uint64_t claimed_count(std::uint64_t tail) noexcept { return tail >> count_shift; }
constexpr int last_claimer(std::uint64_t tail) noexcept { return static_cast<int>((tail >> 1) & claimer_mask); }

/// The first word of a slot, which a reader polls and with which a writer publishes the slot.
inline std::atomic_ref<std::uint64_t> first_word(Head& slot) noexcept {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(&slot));
}

/// Writes heads to one ring, for one rank.
///
/// Threads: any.
/// Costs:   one compare-exchange and one cache line; no system call.
class RingWriter {
 public:
  enum class Pushed : std::uint8_t { full, yes, yes_and_reader_sleeps };

  RingWriter(RingMemory& ring, std::uint64_t slots, int self) noexcept
      : ring_(&ring), mask_(slots - 1), lap_shift_(std::countr_zero(slots)), self_(static_cast<std::uint64_t>(self)) {}
  RingWriter(RingWriter&& other) noexcept
      : ring_(other.ring_), mask_(other.mask_), lap_shift_(other.lap_shift_), self_(other.self_) {}

  /// Publishes a copy of `head`. After yes_and_reader_sleeps the caller must wake the reader.
  Pushed push(const Head& head) noexcept;
  /// Asks the reader to ring every doorbell once it has given back slots. Returns true if there is room already.
  [[gnu::cold]] bool ask_for_room() noexcept;
  /// Whether the reader may be asleep. Sequentially consistent with fall_asleep(): either this call sees it asleep, or
  /// the reader sees the caller's earlier sequentially consistent stores.
  [[nodiscard]] bool reader_sleeps() const noexcept {
    return (ring_->tail.load(std::memory_order_seq_cst) & asleep_bit) != 0;
  }

 private:
  [[gnu::cold, gnu::noinline]] bool has_room_slow(std::uint64_t position) noexcept;

  RingMemory* ring_;
  std::uint64_t mask_;
  int lap_shift_;
  std::uint64_t self_;
  std::atomic<std::uint64_t> taken_seen_{0};  // a copy of ring_->taken, perhaps old; any thread
};

/// The reading end, in the rank that owns the ring.
///
/// Threads: one at a time, the holder of the progress lock.
class RingReader {
 public:
  RingReader(RingMemory& ring, std::uint64_t slots, std::function<bool(int)> alive)
      : ring_(&ring),
        mask_(slots - 1),
        lap_shift_(std::countr_zero(slots)),
        stepped_over_((slots + 63) / 64),
        alive_(std::move(alive)) {}

  /// Passes at most `heads_max` heads to `handle(const Head&)` and returns their number. Keeps the order of the ring,
  /// but may step over slots that are claimed and not yet published.
  template <class Handle>
  std::size_t poll(std::size_t heads_max, Handle&& handle) noexcept;

  /// Has the next poll look past a gap at once, although that slows the writers down.
  void expect_gap() noexcept { idle_polls_ = polls_before_gap - 1; }
  /// Call before sleeping: from now on the next claim wakes the reader. Returns false if a slot is claimed already.
  bool fall_asleep() noexcept;
  void wake_up() noexcept { ring_->tail.fetch_and(~asleep_bit, std::memory_order_relaxed); }

  /// Whether room has been made for a writer that asked for it, since the last forget_room_made().
  [[nodiscard]] bool room_made() const noexcept { return room_made_; }
  void forget_room_made() noexcept { room_made_ = false; }
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

 private:
  [[nodiscard]] Head& slot(std::uint64_t position) const noexcept { return ring_->slots[position & mask_]; }
  [[nodiscard]] bool published(std::uint64_t position, std::uint64_t word) const noexcept {
    return ((word ^ ((position >> lap_shift_) + 1)) & 3) == 0;
  }
  void step() noexcept {
    ++position_;
    if ((position_ & (mask_ >> 2)) == 0) give_back();
  }
  void give_back() noexcept;

  // Polls past a slot that is claimed and not published. Rare, so it is a function of its own.
  template <class Handle>
  [[gnu::noinline]] std::size_t poll_slow(std::size_t heads_max, Handle&& handle) noexcept;
  [[gnu::cold]] bool abandoned(std::uint64_t position, std::uint64_t tail) const noexcept;
  [[nodiscard]] bool is_stepped_over(std::uint64_t position) const noexcept {
    return (stepped_over_[(position & mask_) / 64] >> (position & 63)) & 1;
  }
  void flip_stepped_over(std::uint64_t position) noexcept {
    stepped_over_[(position & mask_) / 64] ^= std::uint64_t{1} << (position & 63);
  }

  // Looking for a gap takes the tail's cache line from the writers, and the next writer has to fetch it again.
  static constexpr std::uint32_t polls_before_gap = 1024;

  RingMemory* ring_;
  std::uint64_t mask_;
  int lap_shift_;
  std::uint64_t position_ = 0;  // the next slot to take
  std::uint32_t idle_polls_ = 0;
  std::uint32_t gaps_ = 0;  // number of slots past position_ that are taken already
  bool room_made_ = false;
  std::vector<std::uint64_t> stepped_over_;  // one bit per slot: taken before its turn
  std::function<bool(int)> alive_;
};

inline RingWriter::Pushed RingWriter::push(const Head& head) noexcept {
  // Relaxed: the count itself orders nothing. The acquire of `taken` keeps I1; `publish` guards the slot's contents.
  std::uint64_t tail = ring_->tail.load(std::memory_order_relaxed);
  std::uint64_t position;
  do {
    position = claimed_count(tail);
    // Acquire: the reader has read the slot of one lap ago before it is written again; pairs with give_back().
    if (position - taken_seen_.load(std::memory_order_acquire) > mask_ && !has_room_slow(position)) [[unlikely]] {
      return Pushed::full;
    }
    // Release: the heads that this thread published earlier come before this claim; pairs with (3).
  } while (!ring_->tail.compare_exchange_weak(tail, (position + 1) << count_shift | self_ << 1,
                                              std::memory_order_release, std::memory_order_relaxed));

  Head& slot = ring_->slots[position & mask_];
  constexpr std::size_t word_bytes = sizeof(std::uint64_t);
  std::memcpy(reinterpret_cast<std::byte*>(&slot) + word_bytes, reinterpret_cast<const std::byte*>(&head) + word_bytes,
              head_bytes - word_bytes);
  std::uint64_t word;
  std::memcpy(&word, &head, word_bytes);
  const std::uint64_t publish = (((position >> lap_shift_) + 1) & 3) | static_cast<std::uint64_t>(last_claimer(tail))
                                                                           << 2;
  word = (word & ~std::uint64_t{0xffff}) | publish;
  first_word(slot).store(word, std::memory_order_release);  // (1) the head's bytes come first: pairs with (2)
  return (tail & asleep_bit) != 0 ? Pushed::yes_and_reader_sleeps : Pushed::yes;
}

template <class Handle>
std::size_t RingReader::poll(std::size_t heads_max, Handle&& handle) noexcept {
  std::size_t heads = 0;
  while (heads < heads_max) {
    if (gaps_ != 0 && is_stepped_over(position_)) [[unlikely]] {
      flip_stepped_over(position_);
      --gaps_;
      step();
      continue;
    }
    Head& next = slot(position_);
    const std::uint64_t word = first_word(next).load(std::memory_order_acquire);  // (2)
    if (!published(position_, word)) break;
    const Head head = next;  // copied whole, since step() may give the slot back
    step();
    ++heads;
    handle(head);
  }
  if (heads != 0) {
    idle_polls_ = 0;
  } else if (++idle_polls_ == polls_before_gap || gaps_ != 0) [[unlikely]] {
    idle_polls_ = 0;
    heads = poll_slow(heads_max, handle);
  }
  return heads;
}

template <class Handle>
std::size_t RingReader::poll_slow(std::size_t heads_max, Handle&& handle) noexcept {
  // (3) Acquire: if a slot is still unpublished after this load, its claimer has claimed no later slot. So stepping
  // over it to take a later head does not reorder the heads of one sender.
  const std::uint64_t tail = ring_->tail.load(std::memory_order_acquire);
  std::size_t heads = 0;
  for (std::uint64_t at = position_; at < claimed_count(tail) && heads < heads_max; ++at) {
    if (is_stepped_over(at)) continue;
    const std::uint64_t word = first_word(slot(at)).load(std::memory_order_acquire);  // as (2)
    if (published(at, word)) {
      const Head head = slot(at);
      flip_stepped_over(at);
      ++gaps_;
      ++heads;
      handle(head);
    } else if (abandoned(at, tail) && !published(at, first_word(slot(at)).load(std::memory_order_acquire))) {
      flip_stepped_over(at);
      ++gaps_;
    }
  }
  while (gaps_ != 0 && is_stepped_over(position_)) {
    flip_stepped_over(position_);
    --gaps_;
    step();
  }
  return heads;
}

}  // namespace tonari::fabric
