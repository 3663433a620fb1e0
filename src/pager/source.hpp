#pragma once

#include <tonari/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::pager {

/// Where the pages of one region come from and go to. A place is an offset in bytes from the region's start. All
/// requests are for whole pages.
///
/// Threads: several threads of the pager at once, never two for the same page. A source must not touch paged memory,
///          nor wait for a thread that does.
class Source {
 public:
  virtual ~Source() = default;

  /// Returns ok if `into` is filled. On any other status its contents are undefined.
  virtual Status fetch(std::uint64_t place, std::span<std::byte> into) noexcept = 0;
  /// Returns ok if the source has the bytes; no_memory if it is full, and still has the old bytes.
  virtual Status store(std::uint64_t place, std::span<const std::byte> from) noexcept = 0;
  /// The bytes are zeros from now on. The pager does not fetch them again before it has stored others.
  virtual Status discard(std::uint64_t place, std::uint64_t bytes) noexcept = 0;
  /// Returns the bytes at the place where they are mapped in this process, which saves a copy; empty if they are not
  /// mapped. They stay unchanged until the next store or discard.
  virtual std::span<const std::byte> look(std::uint64_t /*place*/, std::uint64_t /*bytes*/) noexcept { return {}; }
  /// Returns the mapped memory where these bytes are to be stored; empty if it is not mapped. A caller that writes
  /// pages there calls store() next for each of them, with this memory, and no copy is needed then. The old bytes of
  /// these pages are lost.
  virtual std::span<std::byte> room(std::uint64_t /*place*/, std::uint64_t /*bytes*/) noexcept { return {}; }
};

}  // namespace tonari::pager
