#pragma once

#include "share/array/page_block.hpp"
#include "window/local/diff.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tonari::share {

// The diff of a page in a message: a mask of the 64-byte lines with changes, then for each of these lines a mask of its
// changed bytes, then these lines. The receiver stores only changed bytes, since other ranks may have changed the bytes
// beside them.
//
//   page number 8 | mask of lines 8 | mask of bytes 8 per line | 64 bytes per line
inline constexpr std::size_t line_bytes = window::DifferenceMap::block_bytes;
inline constexpr std::size_t change_bytes_max = 16 + page_bytes / line_bytes * (8 + line_bytes);
static_assert(window::DifferenceMap::stretch_bytes == page_bytes, "a map is of a page");

/// Writes the diff to `to`, which has room for change_bytes_max bytes. Returns its length, or 0 if nothing has changed.
inline std::size_t write_change(std::byte* to, std::uint64_t page, const std::byte* data,
                                const window::DifferenceMap& map) noexcept {
  if (map.blocks == 0) return 0;
  const auto lines = static_cast<std::size_t>(std::popcount(map.blocks));
  std::memcpy(to, &page, 8);
  std::memcpy(to + 8, &map.blocks, 8);
  std::byte* masks = to + 16;
  std::byte* bytes = masks + 8 * lines;
  for_each_page(map.blocks, [&](std::size_t line) {
    std::memcpy(masks, &map.bytes[line], 8);
    std::memcpy(bytes, data + line * line_bytes, line_bytes);
    masks += 8;
    bytes += line_bytes;
  });
  return static_cast<std::size_t>(bytes - to);
}

/// A diff that was received.
struct Change {
  std::uint64_t page = 0;
  std::size_t bytes = 0;  // length of the whole diff; 0: malformed
  const std::byte* start = nullptr;

  static Change read(std::span<const std::byte> from) noexcept {
    Change change;
    if (from.size() < 16) return change;
    std::uint64_t lines = 0;
    std::memcpy(&change.page, from.data(), 8);
    std::memcpy(&lines, from.data() + 8, 8);
    const std::size_t bytes = 16 + static_cast<std::size_t>(std::popcount(lines)) * (8 + line_bytes);
    if (bytes > from.size()) return change;
    change.bytes = bytes;
    change.start = from.data();
    return change;
  }
  /// Stores the changed bytes, and no others, in the page at `to`.
  void apply(std::byte* to) const noexcept {
    window::DifferenceMap map;
    std::array<std::byte, page_bytes> data;
    std::memcpy(&map.blocks, start + 8, 8);
    const std::byte* masks = start + 16;
    const std::byte* lines = masks + 8 * static_cast<std::size_t>(std::popcount(map.blocks));
    for_each_page(map.blocks, [&](std::size_t line) {
      std::memcpy(&map.bytes[line], masks, 8);
      std::memcpy(data.data() + line * line_bytes, lines, line_bytes);
      masks += 8;
      lines += line_bytes;
    });
    window::diff_code().store(to, data.data(), map);
  }
};

}  // namespace tonari::share
