#pragma once

#include "share/array/page_block.hpp"
#include "window/local/diff.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tonari::share {

// What has changed in a page, as it travels: which bytes of each line of 64 have, and the lines in which some have.
// Others may have changed the bytes beside them, so that what has not changed is not stored.
//
//   page 8 | lines 8 | bytes 8 for each of lines | 64 bytes for each of lines
inline constexpr std::size_t line_bytes = window::DifferenceMap::block_bytes;
inline constexpr std::size_t change_bytes_max = 16 + page_bytes / line_bytes * (8 + line_bytes);
static_assert(window::DifferenceMap::stretch_bytes == page_bytes, "a map is of a page");

/// Writes the change to `to`, of change_bytes_max bytes. Answers its length; 0: nothing has changed.
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

/// One that has come.
struct Change {
  std::uint64_t page = 0;
  std::size_t bytes = 0;  // of the whole; 0: it is none, a peer lies
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
  /// Stores what has changed, and no more, to the page at `to`.
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
