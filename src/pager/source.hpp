#pragma once

#include <tonari/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::pager {

/// Where the pages of one region come from and go to. Places are bytes from the region's start; what is asked for is
/// whole pages.
///
/// Threads: several at once, never two for the same page. They are the pager's own: a source must not touch paged
///          memory, nor wait for a thread that does.
class Source {
 public:
  virtual ~Source() = default;

  /// Answers ok when `into` is filled; anything else, and it may hold anything.
  virtual Status fetch(std::uint64_t place, std::span<std::byte> into) noexcept = 0;
  /// Answers ok when the source has the bytes. no_memory: it is full, and has what it had.
  virtual Status store(std::uint64_t place, std::span<const std::byte> from) noexcept = 0;
  /// These bytes are zeros from now on. The pager does not ask for them before it has stored others.
  virtual Status discard(std::uint64_t place, std::uint64_t bytes) noexcept = 0;
  /// The bytes where they are mapped here, so that they need not be copied twice; empty where they are not. They stay
  /// as they are until the next store or discard.
  virtual std::span<const std::byte> look(std::uint64_t /*place*/, std::uint64_t /*bytes*/) noexcept { return {}; }
  /// Where these bytes are to be stored, if that is mapped here; else empty. Who writes there calls store() with them
  /// next, which then need not copy them. What was there is of no use any more.
  virtual std::span<std::byte> room(std::uint64_t /*place*/, std::uint64_t /*bytes*/) noexcept { return {}; }
};

}  // namespace tonari::pager
