#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tonari::window {

// A diff is the difference between data and their twin, a copy from before they were changed. Both belong to the
// caller, and nobody writes them meanwhile. A diff is exact to the byte: other ranks may store to the neighbouring
// bytes in the same cache line at the same time, and must lose nothing. So an unchanged byte is never stored, and is
// never part of a run.
//
// I1  exactly the differing bytes are stored         DiffCode::store, by the bits of bytes
// I2  nothing beyond the end is read or written      DiffCode::mark: the last block begins earlier, or is a copy

/// The bytes of a stretch that differ from their twins. Bit i of `blocks` says that block i has differing bytes. Only
/// then is bytes[i] valid; its bit j says that byte j differs.
struct DifferenceMap {
  static constexpr std::size_t block_bytes = 64;
  static constexpr std::size_t stretch_bytes = 64 * block_bytes;

  std::uint64_t blocks;
  std::array<std::uint64_t, 64> bytes;

  [[nodiscard]] std::uint64_t of(std::size_t block) const noexcept {
    return (blocks >> block & 1) != 0 ? bytes[block] : 0;
  }
};

/// The vectorised work, for one level of processor features.
struct DiffCode {
  /// Marks the first `bytes`, at most a stretch.
  void (*mark)(const std::byte* data, const std::byte* twin, std::size_t bytes, DifferenceMap& map) noexcept;
  /// Stores the bytes of the same stretch that the map names.
  void (*store)(std::byte* target, const std::byte* data, const DifferenceMap& map) noexcept;
};

enum class DiffLevel : std::uint8_t { words, sse2, avx2, avx512 };
inline constexpr std::array diff_levels{DiffLevel::words, DiffLevel::sse2, DiffLevel::avx2, DiffLevel::avx512};

constexpr std::string_view to_string(DiffLevel level) noexcept {
  constexpr std::array<std::string_view, diff_levels.size()> names{"words", "sse2", "avx2", "avx512"};
  return names[static_cast<std::size_t>(level)];
}

/// Returns the code of a level, or nullptr if this processor cannot run it.
const DiffCode* diff_code(DiffLevel level) noexcept;
/// Returns the code of the highest level; detected once.
const DiffCode& diff_code() noexcept;

/// Returns the first byte at or after `from` that differs, or `bytes`.
std::size_t next_difference(const std::byte* data, const std::byte* twin, std::size_t from, std::size_t bytes,
                            const DiffCode& code = diff_code()) noexcept;
/// Returns the first byte at or after `from` that does not differ, or `bytes`.
std::size_t next_equality(const std::byte* data, const std::byte* twin, std::size_t from, std::size_t bytes,
                          const DiffCode& code = diff_code()) noexcept;

/// Stores the bytes of `data` that differ, and no others, to the same places of `target`. Returns how many.
std::size_t store_differences(std::byte* target, const std::byte* data, const std::byte* twin, std::size_t bytes,
                              const DiffCode& code = diff_code()) noexcept;

/// Copies `bytes` to two places, which are equal afterwards even if the source changes meanwhile.
void copy_with_twin(std::byte* to, std::byte* twin, const std::byte* from, std::size_t bytes) noexcept;

/// Calls visit(offset, length) for each run of differing bytes, in order, until it returns false. Each run is as long
/// as possible. Returns true if all runs were visited.
template <class Visit>
bool for_each_run(const std::byte* data, const std::byte* twin, std::size_t bytes, Visit visit,
                  const DiffCode& code = diff_code()) {
  DifferenceMap map;
  std::size_t start = 0;     // of the run that has not ended
  std::uint64_t in_run = 0;  // 1 if there is such a run
  for (std::size_t at = 0; at < bytes; at += map.stretch_bytes) {
    const std::size_t stretch = std::min(bytes - at, map.stretch_bytes);
    code.mark(data + at, twin + at, stretch, map);
    std::uint64_t blocks = map.blocks | map.blocks << 1 | in_run;  // a run may end in a block that is the same
    for (; blocks != 0; blocks &= blocks - 1) {
      const auto block = static_cast<std::size_t>(std::countr_zero(blocks));
      const std::uint64_t differing = map.of(block);
      std::uint64_t edges = differing ^ (differing << 1 | in_run);
      for (; edges != 0; edges &= edges - 1) {
        const std::size_t edge = at + block * map.block_bytes + static_cast<std::size_t>(std::countr_zero(edges));
        if (in_run != 0 && !visit(start, edge - start)) return false;
        start = edge;
        in_run ^= 1;
      }
    }
  }
  return in_run == 0 || visit(start, bytes - start);
}

}  // namespace tonari::window
