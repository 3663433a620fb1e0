#pragma once

#include "far/channel.hpp"
#include "far/preload/extents.hpp"
#include "preload/lock.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// State of the program that the preload library is in. No constructor may run: the program allocates before ours would.
namespace tonari::far {

using namespace preload;  // its tools

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
  std::array<Range, 3> beside{};  // buffers, huge pages and lent memory; set by begin() before `ready`

  Lock lock;
  Extents extents;  // under `lock`

  std::atomic<int> process{0};  // the process that the agents belong to; set before they start

  // Where the process may begin by itself. `may_begin` is true until it does. Relaxed: beginning takes the lock
  // `beginning`.
  const char* door = nullptr;
  std::atomic<bool> may_begin{false};
  Lock beginning;
  // The arenas of this process's ancestors. Changed only by the single thread of a new child.
  std::array<Range, 4> lost{};
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

/// Also true in a forked child, where the memory itself is missing.
inline bool is_in_arena(const void* pointer) noexcept { return address_of(pointer) - arena().start < arena().bytes; }

/// Returns true for far memory of an ancestor that forked this process.
inline bool is_of_parent(const void* pointer) noexcept {
  if (is_in_arena(pointer)) return !is_ready();
  for (std::size_t i = 0; i < program.lost_count; ++i) {
    if (address_of(pointer) - program.lost[i].start < program.lost[i].bytes) return true;
  }
  return false;
}

}  // namespace tonari::far
