#pragma once

#include "fabric/head.hpp"
#include "message/operation.hpp"

#include <cstddef>
#include <cstdint>

namespace tonari::message {

/// The shape of a receive is which wildcards it has, a bit each. Those of one shape meet heads by the same fields.
inline constexpr std::size_t exact = 0;
inline constexpr std::size_t any_tag_shape = 1;
inline constexpr std::size_t any_source_shape = 2;
inline constexpr std::size_t shapes = 4;

/// What messages and receives meet by.
struct Key {
  std::uint32_t context;
  std::uint32_t source;
  std::uint32_t tag;

  friend bool operator==(const Key&, const Key&) = default;

  /// For a table of 2^n places: the top bits are the best mixed.
  [[nodiscard]] std::uint64_t hash() const noexcept {
    // Fibonacci hashing (Knuth, TAOCP 6.4), once for each 64 bits.
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
    const std::uint64_t mixed = (std::uint64_t{context} << 32 | tag) * golden;
    return (mixed ^ mixed >> 32 ^ std::uint64_t{source} << 16) * golden;
  }
};

inline std::size_t shape_of(const Operation& receive) noexcept {
  return (receive.tag < 0 ? any_tag_shape : 0) | (receive.peer < 0 ? any_source_shape : 0);
}
/// A wildcard counts as 0 in the key.
inline Key key_of(const Operation& receive) noexcept {
  return {receive.context_id, receive.peer < 0 ? 0 : static_cast<std::uint32_t>(receive.peer),
          receive.tag < 0 ? 0 : static_cast<std::uint32_t>(receive.tag)};
}
/// The key by which receives of `shape` take this head.
inline Key key_of(const fabric::Head& head, std::size_t shape) noexcept {
  return {head.context, (shape & any_source_shape) != 0 ? 0 : head.source, (shape & any_tag_shape) != 0 ? 0 : head.tag};
}

}  // namespace tonari::message
