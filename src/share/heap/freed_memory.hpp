#pragma once

#include "share/misuse.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

// Builds with assertions fill freed memory with a pattern, and check the pattern when the memory is used again. In
// other builds these functions do nothing.
namespace tonari::share {

inline constexpr std::uint64_t freed_word = 0xf7ee'f7ee'f7ee'f7ee;
inline constexpr std::uint64_t fresh_word = 0xa110'a110'a110'a110;

/// Returns a block as words. Its size is a multiple of a word's.
inline std::span<std::uint64_t> words_of(std::byte* block, std::size_t bytes) noexcept {
  return {reinterpret_cast<std::uint64_t*>(block), bytes / sizeof(std::uint64_t)};
}

/// Ends the program if the block was freed already, by any rank.
inline void mark_freed(int rank, std::byte* block, std::size_t bytes) {
  if (!has_assertions) return;
  const auto words = words_of(block, bytes);
  if (std::ranges::all_of(words, [](std::uint64_t word) { return word == freed_word; })) {
    name_misuse(rank, "{} bytes of a shared heap, at {}, are freed twice", bytes, static_cast<void*>(block));
  }
  std::ranges::fill(words, freed_word);
}

/// Ends the program if the block was written since it was freed.
inline void check_freed(int rank, std::byte* block, std::size_t bytes) {
  if (!has_assertions) return;
  const auto words = words_of(block, bytes);
  const auto changed = std::ranges::find_if(words, [](std::uint64_t word) { return word != freed_word; });
  if (changed == words.end()) return;
  name_misuse(rank, "{} bytes of a shared heap, at {}, were written after they were freed: there is {:#x} at byte {}",
              bytes, static_cast<void*>(block), *changed, (changed - words.begin()) * 8);
}

/// Clears the pattern from a new block, which would look freed if its owner never wrote it.
inline void mark_fresh(std::byte* block, std::size_t bytes) {
  if (has_assertions) std::ranges::fill(words_of(block, bytes), fresh_word);
}

}  // namespace tonari::share
