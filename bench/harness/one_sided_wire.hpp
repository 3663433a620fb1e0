#pragma once

#include "harness/wire.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::bench {

// What the benchmarks of one-sided access need, over a Wire. A W::Window is a part of every rank's memory that the
// others reach: made by all ranks together, and freed when it is destroyed, by all ranks together. Offsets are bytes
// from the start of a rank's part. What fails throws.

/// Windows over memory of the system's and of the program's own, and copies to and from them.
template <class W>
concept OneSidedWire = Wire<W> && requires(W& wire, typename W::Window& window, std::span<const std::byte> from,
                                           std::span<std::byte> to, std::size_t offset, int rank) {
  { wire.allocate(offset) } -> std::same_as<typename W::Window>;  // so many bytes of each rank, of the system's memory
  { wire.expose(to) } -> std::same_as<typename W::Window>;        // memory that the program has
  { window.local() } -> std::same_as<std::span<std::byte>>;       // sees what was flushed before the last message came
  window.push(from, rank, offset);                                // `from` is the window's until flush
  window.flush(rank);                                             // what was pushed to that rank is there
  window.pull(to, rank, offset);                                  // `to` is the window's until finish_pulls
  window.finish_pulls(rank);                                      // what was pulled from that rank is here
};

/// Atomic operations on words of a window; complete when they answer, with the word before.
template <class W>
concept AtomicWire = OneSidedWire<W> && StartedWire<W> &&
    requires(typename W::Window& window, int rank, std::size_t offset, std::uint64_t word) {
  { window.fetch_add(word, rank, offset) } -> std::same_as<std::uint64_t>;
  { window.compare_and_swap(word, word, rank, offset) } -> std::same_as<std::uint64_t>;  // expected, desired
};

/// Windows of which each part has a lock, for one rank at a time. Who has lock() behind it has the lock, and what it
/// pushed is there when it leaves unlock(). Such a window is accessed between the two only.
template <class W>
concept LockWire = OneSidedWire<W> && StartedWire<W> &&
    requires(W& wire, typename W::Window& window, std::size_t bytes, int rank) {
  { wire.allocate_with_locks(bytes) } -> std::same_as<typename W::Window>;
  window.lock(rank);
  window.unlock(rank);
};

/// Pushes of the same to all other parts.
template <class W>
concept MulticastWire = OneSidedWire<W> && StartedWire<W> &&
    requires(typename W::Window& window, std::span<const std::byte> from, std::size_t offset) {
  window.multicast(from, offset);
  window.flush();  // what was pushed to any rank is there
};

/// Memory that one rank lets the others reach, without their help.
template <class W>
concept AloneWire = OneSidedWire<W> && StartedWire<W> &&
    requires(W& wire, typename W::Alone& alone, std::span<std::byte> memory) {
  { wire.prepare_alone() } -> std::same_as<typename W::Alone>;  // by all ranks together, once
  alone.expose(memory);                                         // one range at a time
  alone.withdraw();
};

/// Windows whose pages stay in memory from the start.
template <class W>
concept PinningWire = AloneWire<W> && requires(W& wire, typename W::Alone& alone, std::span<std::byte> memory) {
  { wire.expose_pinned(memory) } -> std::same_as<typename W::Window>;
  alone.expose_pinned(memory);
};

}  // namespace tonari::bench
