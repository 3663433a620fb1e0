#pragma once

#include "base/gate.hpp"
#include "far/channel.hpp"
#include "far/preload/extents.hpp"
#include "preload/lock.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

// State of the program that the preload library is in. No constructor may run: the program allocates before ours would.
namespace tonari::far {

using namespace preload;  // its tools

/// An arena, or a range of static variables, that was far memory of an ancestor at a fork.
struct Inherited {
  Range range;
  Extents allocated;  // the arena's extents as they were at the fork; allocations that were freed since are missing
  Extents replaced;   // the parts that this process has unmapped, moved or mapped over since; not inherited any more
  bool has_table = false;  // `replaced` has its table: it gets one when it first needs it
};

struct Program {
  // Set once by begin(). Relaxed: a thread that has an address of the arena got it from a thread that saw the program
  // ready. With any other address it does not matter if the old values are read.
  std::atomic<Address> arena_start{0};
  std::atomic<std::size_t> arena_bytes{0};
  std::atomic<std::size_t> bytes_min{~std::size_t{0}};  // smallest allocation that goes to the arena
  // Points to a page that reads as zeros in forked children. So they find the program not ready, however they were
  // forked.
  std::atomic<std::atomic<std::uint32_t>*> ready{nullptr};
  Channel* channel = nullptr;
  std::array<Range, 4> beside{};  // buffers, huge pages, lent memory, tables; set by begin() before `ready`

  bool traps = false;  // the arena is in the filter's zone; set by begin() before `ready`

  Lock lock;
  Extents extents;  // under `lock`

  std::atomic<int> process{0};  // the process that the helpers belong to; set before they start

  // Far memory outside the arena: static variables. Changed under `beginning`, or while there is one thread. An entry
  // is written before it is counted, and not changed afterwards. (1) pairs with (2).
  static constexpr std::size_t statics_max = 128;
  std::array<Range, statics_max> statics{};
  std::atomic<std::size_t> statics_count{0};

  // Entered to discard far memory. Closed during a fork, so that the child finds a page either as it was or discarded.
  Gate discards;
  // In a forked child, `inherited` under `lock`: inherited.hpp. The count changes only while there is one thread.
  static constexpr std::size_t ancestors_max = 8;
  std::array<Inherited, statics_max + ancestors_max> inherited{};
  std::size_t inherited_count = 0;
  std::uint64_t inheritance = 0;  // its number at the keeper

  // Where the process may begin by itself. `may_begin` is true until it does. Relaxed: beginning takes the lock
  // `beginning`, which a fork holds, too.
  std::array<char, 108> door{};        // empty: there is none; as long as the name of a socket
  FaultsBy faults = FaultsBy::keeper;  // set before main()
  std::atomic<bool> may_begin{false};
  Lock beginning;
  Lock trapping;  // of trap_calls()
  // Far memory of ancestors that this process could not inherit. Changed only by the single thread of a new child.
  std::array<Range, statics_max + ancestors_max> lost{};
  std::size_t lost_count = 0;
};
extern constinit Program program;

/// Returns true if the arena can be used: not before begin() is done, and not the parent's arena in a forked child.
inline bool is_ready() noexcept {
  const auto* const ready = program.ready.load(std::memory_order_acquire);
  // acquire: sees the program as begin() left it
  return ready != nullptr && ready->load(std::memory_order_acquire) != 0;
}

inline Range arena() noexcept {
  return {program.arena_start.load(std::memory_order_relaxed), program.arena_bytes.load(std::memory_order_relaxed)};
}

/// Returns the ranges of static variables that are far memory of this process.
inline std::span<const Range> statics() noexcept {
  return {program.statics.data(), program.statics_count.load(std::memory_order_acquire)};  // (2)
}

/// Returns the range of static variables that contains the address; empty if there is none.
inline Range static_range_at(Address at) noexcept {
  for (const Range& each : statics()) {
    if (at - each.start < each.bytes) return each;
  }
  return {};
}
inline bool is_static(Address at) noexcept { return !static_range_at(at).is_empty(); }

/// Returns the lowest part of `range` that is in the arena, or in one range of static variables; empty if there is
/// none.
inline Range first_far_part_of(Range range) noexcept {
  Range first = range.cut_to(arena());
  for (const Range& each : statics()) {
    const Range part = range.cut_to(each);
    if (!part.is_empty() && (first.is_empty() || part.start < first.start)) first = part;
  }
  return first;
}

/// Also true in a child of a raw fork, where the memory itself is missing.
inline bool is_in_arena(const void* pointer) noexcept { return address_of(pointer) - arena().start < arena().bytes; }

/// Returns true for far memory of an ancestor that this process has not inherited.
inline bool is_lost(const void* pointer) noexcept {
  const auto has = [at = address_of(pointer)](const Range& range) { return at - range.start < range.bytes; };
  if (is_in_arena(pointer) || std::ranges::any_of(statics(), has)) return !is_ready();  // after a raw fork
  return std::ranges::any_of(std::span(program.lost).first(program.lost_count), has);
}

}  // namespace tonari::far
