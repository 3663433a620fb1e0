#pragma once

#include <bit>
#include <cstddef>

namespace tonari::share {

// Block sizes of a heap: 16, 32, 48, 64, then four per doubling: 80, 96, 112, 128, 160, ... 16384. So at most a fifth
// of a block is unused, except in the smallest blocks. Each size is a multiple of 16.

inline constexpr std::size_t small_bytes_max = 16 * 1024;
inline constexpr std::size_t size_classes = 4 + 4 * 8;

constexpr std::size_t bytes_of_class(std::size_t size_class) noexcept {
  if (size_class < 4) return (size_class + 1) * 16;
  const std::size_t base = std::size_t{64} << (size_class - 4) / 4;
  return base + base / 4 * ((size_class - 4) % 4 + 1);
}

/// Returns the smallest class whose blocks have `bytes` bytes, from 1 to small_bytes_max.
constexpr std::size_t class_of(std::size_t bytes) noexcept {
  if (bytes <= 64) return (bytes + 15) / 16 - 1;
  const auto doubling = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;
  return 4 + (doubling - 6) * 4 + ((bytes - 1) >> (doubling - 2)) % 4;
}

/// The same for blocks that are aligned to `alignment`, a power of two up to a page, if they are packed from the start
/// of a page on.
constexpr std::size_t class_of(std::size_t bytes, std::size_t alignment) noexcept {
  std::size_t size_class = class_of(bytes);
  while (bytes_of_class(size_class) % alignment != 0) ++size_class;  // ends at the next power of two at the latest
  return size_class;
}

static_assert(bytes_of_class(size_classes - 1) == small_bytes_max && class_of(small_bytes_max) == size_classes - 1);

}  // namespace tonari::share
