#pragma once

#include "fabric/head.hpp"
#include "message/operation.hpp"

#include <cstddef>
#include <cstdint>

namespace tonari::message {

/// The shape of a receive says which wildcards it has, one bit each. All receives of one shape match heads by the same
/// fields.
inline constexpr std::size_t exact = 0;
inline constexpr std::size_t any_tag_shape = 1;
inline constexpr std::size_t any_source_shape = 2;
inline constexpr std::size_t shapes = 4;

/// The fields by which messages and receives are matched.
struct Key {
  std::uint32_t context;
  std::uint32_t source;
  std::uint32_t tag;

  friend bool operator==(const Key&, const Key&) = default;

  /// Hash for a table of 2^n places. Use the top bits, which are mixed best.
  [[nodiscard]] std::uint64_t hash() const noexcept {
    // Fibonacci hashing (Knuth, TAOCP 6.4), once per 64 bits.
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
    const std::uint64_t mixed = (std::uint64_t{context} << 32 | tag) * golden;
    return (mixed ^ mixed >> 32 ^ std::uint64_t{source} << 16) * golden;
  }
};

inline std::size_t shape_of(const Operation& receive) noexcept {
  return (receive.call.tag < 0 ? any_tag_shape : 0) | (receive.call.peer < 0 ? any_source_shape : 0);
}
/// Returns the key of a receive. A wildcard is 0 in the key.
inline Key key_of(const Operation& receive) noexcept {
  return {receive.call.context_id, receive.call.peer < 0 ? 0 : static_cast<std::uint32_t>(receive.call.peer),
          receive.call.tag < 0 ? 0 : static_cast<std::uint32_t>(receive.call.tag)};
}
/// Returns the key by which receives of `shape` match this head.
inline Key key_of(const fabric::Head& head, std::size_t shape) noexcept {
  return {head.context, (shape & any_source_shape) != 0 ? 0 : head.source, (shape & any_tag_shape) != 0 ? 0 : head.tag};
}

}  // namespace tonari::message
