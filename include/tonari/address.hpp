#pragma once

#include <tonari/rank.hpp>
#include <tonari/status.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tonari {

/// A place in a window, the same for all ranks: MLC-1's network virtual address. Plain data, to be sent and stored
/// like a number. It keeps nothing alive, and an address in a freed window is harmless.
///
///   0        4        8                16
///   +--------+--------+----------------+
///   | window | rank   | offset         |
///   +--------+--------+----------------+
///
/// Arithmetic never wraps: an address below 0 or above 2^64 is in no window from then on, and every access to it
/// returns Status::bounds.
struct GlobalAddress {
  std::uint32_t window = 0;  ///< Number of the window; numbers are never used again. 0: no window.
  JobRank rank{};            ///< The rank whose memory it is.
  std::uint64_t offset = 0;  ///< Bytes from the start of that rank's part of the window.

  static constexpr std::uint64_t nowhere = std::numeric_limits<std::uint64_t>::max();

  constexpr GlobalAddress& operator+=(std::uint64_t bytes) noexcept {
    offset = bytes > nowhere - offset ? nowhere : offset + bytes;
    return *this;
  }
  constexpr GlobalAddress& operator-=(std::uint64_t bytes) noexcept {
    offset = offset == nowhere || bytes > offset ? nowhere : offset - bytes;
    return *this;
  }
  friend constexpr GlobalAddress operator+(GlobalAddress address, std::uint64_t bytes) noexcept {
    return address += bytes;
  }
  friend constexpr GlobalAddress operator-(GlobalAddress address, std::uint64_t bytes) noexcept {
    return address -= bytes;
  }
  /// Compares by window, rank and offset.
  friend constexpr auto operator<=>(const GlobalAddress&, const GlobalAddress&) = default;
};
static_assert(sizeof(GlobalAddress) == 16 && std::is_trivially_copyable_v<GlobalAddress>);

}  // namespace tonari
