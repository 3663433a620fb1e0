#pragma once

#include "far/channel.hpp"
#include "far/preload/extents.hpp"
#include "preload/lock.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// The program that the preload is in. Nothing here has a constructor to run: the program allocates before ours.
namespace tonari::far {

using namespace preload;  // its tools

struct Program {
  // By begin(), once. Who has an address of the arena has it from somebody who saw the program ready, and who asks with
  // another address may see nothing yet: relaxed.
  std::atomic<Address> arena_start{0};
  std::atomic<std::size_t> arena_bytes{0};
  std::atomic<std::size_t> bytes_min{~std::size_t{0}};  // of an allocation that goes to the arena
  // Points to a page that forked children find zeroed: they see a program that is not ready, whatever forked them.
  std::atomic<std::atomic<std::uint32_t>*> ready{nullptr};
  Channel* channel = nullptr;
  std::array<Range, 3> beside{};  // what pages are moved and copied through. By begin(), before `ready`

  Lock lock;
  Extents extents;  // under `lock`

  // Where a process may begin by itself, if it may; then it has not yet. relaxed: whoever begins takes `beginning`.
  const char* door = nullptr;
  std::atomic<bool> may_begin{false};
  Lock beginning;
  // What was the arena before a fork. Changed by the only thread of a child.
  std::array<Range, 4> lost{};
  std::size_t lost_count = 0;
};
extern constinit Program program;

/// The arena can be used. Not yet before begin() is done, and not its parent's in a forked child.
inline bool is_ready() noexcept {
  const auto* const ready = program.ready.load(std::memory_order_acquire);
  return ready != nullptr && ready->load(std::memory_order_acquire) != 0;  // the program as start() left it
}

inline Range arena() noexcept {
  return {program.arena_start.load(std::memory_order_relaxed), program.arena_bytes.load(std::memory_order_relaxed)};
}

/// True also in a forked child, which does not have what is there.
inline bool is_in_arena(const void* pointer) noexcept { return address_of(pointer) - arena().start < arena().bytes; }

/// It is far memory of a process that this one is a forked child of.
inline bool is_of_parent(const void* pointer) noexcept {
  if (is_in_arena(pointer)) return !is_ready();
  for (std::size_t i = 0; i < program.lost_count; ++i) {
    if (address_of(pointer) - program.lost[i].start < program.lost[i].bytes) return true;
  }
  return false;
}

}  // namespace tonari::far
