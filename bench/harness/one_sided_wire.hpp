#pragma once

#include "harness/wire.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::bench {

// Concepts for one-sided access, beyond a Wire. A W::Window is memory of every rank that the other ranks can access. It
// is created and destroyed collectively. Offsets are bytes from the start of a rank's part. Failures throw.

/// Windows over memory that the system allocates and over memory of the program, and copies to and from them.
template <class W>
concept OneSidedWire = Wire<W> && requires(W& wire, typename W::Window& window, std::span<const std::byte> from,
                                           std::span<std::byte> to, std::size_t offset, int rank) {
  { wire.allocate(offset) } -> std::same_as<typename W::Window>;  // this many bytes per rank, allocated by the system
  { wire.expose(to) } -> std::same_as<typename W::Window>;        // memory of the program
  { window.local() } -> std::same_as<std::span<std::byte>>;       // contains everything flushed before the last message
  window.push(from, rank, offset);                                // `from` must not change until flush
  window.flush(rank);                                             // all pushes to this rank are complete there
  window.pull(to, rank, offset);                                  // `to` must not be used until finish_pulls
  window.finish_pulls(rank);                                      // all pulls from this rank are complete
};

/// Atomic operations on words of a window. They return the previous value, when complete.
template <class W>
concept AtomicWire = OneSidedWire<W> && StartedWire<W> &&
    requires(typename W::Window& window, int rank, std::size_t offset, std::uint64_t word) {
  { window.fetch_add(word, rank, offset) } -> std::same_as<std::uint64_t>;
  { window.compare_and_swap(word, word, rank, offset) } -> std::same_as<std::uint64_t>;  // expected, desired
};

/// Windows with an exclusive lock per part. A rank holds the lock when lock() returns; its pushes are complete at the
/// target when unlock() returns. Such a window is accessed only between these calls.
template <class W>
concept LockWire = OneSidedWire<W> && StartedWire<W> &&
    requires(W& wire, typename W::Window& window, std::size_t bytes, int rank) {
  { wire.allocate_with_locks(bytes) } -> std::same_as<typename W::Window>;
  window.lock(rank);
  window.unlock(rank);
};

/// Pushes of the same data to all other parts.
template <class W>
concept MulticastWire = OneSidedWire<W> && StartedWire<W> &&
    requires(typename W::Window& window, std::span<const std::byte> from, std::size_t offset) {
  window.multicast(from, offset);
  window.flush();  // the pushes to all ranks are complete there
};

/// Memory that one rank makes accessible without the help of others.
template <class W>
concept AloneWire = OneSidedWire<W> && StartedWire<W> &&
    requires(W& wire, typename W::Alone& alone, std::span<std::byte> memory) {
  { wire.prepare_alone() } -> std::same_as<typename W::Alone>;  // collective, once
  alone.expose(memory);                                         // one range at a time
  alone.withdraw();
};

/// Windows whose pages are in memory from the start.
template <class W>
concept PinningWire = AloneWire<W> && requires(W& wire, typename W::Alone& alone, std::span<std::byte> memory) {
  { wire.expose_pinned(memory) } -> std::same_as<typename W::Window>;
  alone.expose_pinned(memory);
};

}  // namespace tonari::bench
