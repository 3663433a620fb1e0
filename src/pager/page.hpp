#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tonari::pager {

/// A place in the paged address space. It is no pointer, because that space may be another process's.
using Address = std::uint64_t;

inline constexpr std::size_t page_bytes = 4096;
/// Pages brought for a fault where a stream begins.
inline constexpr std::size_t slice_pages = 16;
/// A huge page, and the unit that a thread holds.
inline constexpr std::size_t block_pages = 512;
inline constexpr std::size_t block_bytes = block_pages * page_bytes;

/// Most threads of a pager that move pages.
inline constexpr std::size_t workers_max = 8;

/// A set of pages of a block.
class PageSet {
 public:
  constexpr PageSet() noexcept = default;
  static constexpr PageSet of(std::size_t first, std::size_t count) noexcept {
    PageSet set;
    for (std::size_t word = 0; word < set.words_.size(); ++word) {
      set.words_[word] = below(first + count, word) & ~below(first, word);
    }
    return set;
  }

  [[nodiscard]] constexpr bool has(std::size_t page) const noexcept {
    return (words_[page / 64] >> page % 64 & 1) != 0;
  }
  [[nodiscard]] constexpr bool is_empty() const noexcept { return count() == 0; }
  [[nodiscard]] constexpr bool is_whole() const noexcept { return count() == block_pages; }
  [[nodiscard]] constexpr std::size_t count() const noexcept {
    int pages = 0;
    for (const std::uint64_t word : words_) pages += std::popcount(word);
    return static_cast<std::size_t>(pages);
  }
  /// Returns the first page at or after `page` that is in the set (or is not), or block_pages.
  [[nodiscard]] constexpr std::size_t next(std::size_t page) const noexcept { return next(page, 0); }
  [[nodiscard]] constexpr std::size_t next_without(std::size_t page) const noexcept { return next(page, ~0ULL); }

  constexpr PageSet& operator|=(const PageSet& other) noexcept {
    for (std::size_t word = 0; word < words_.size(); ++word) words_[word] |= other.words_[word];
    return *this;
  }
  constexpr PageSet& operator&=(const PageSet& other) noexcept {
    for (std::size_t word = 0; word < words_.size(); ++word) words_[word] &= other.words_[word];
    return *this;
  }
  constexpr PageSet& operator-=(const PageSet& other) noexcept {
    for (std::size_t word = 0; word < words_.size(); ++word) words_[word] &= ~other.words_[word];
    return *this;
  }
  friend constexpr PageSet operator|(PageSet one, const PageSet& other) noexcept { return one |= other; }
  friend constexpr PageSet operator&(PageSet one, const PageSet& other) noexcept { return one &= other; }
  friend constexpr PageSet operator-(PageSet one, const PageSet& other) noexcept { return one -= other; }
  friend constexpr bool operator==(const PageSet&, const PageSet&) noexcept = default;

 private:
  // Returns the bits of `word` for pages before `page`.
  static constexpr std::uint64_t below(std::size_t page, std::size_t word) noexcept {
    if (page >= word * 64 + 64) return ~0ULL;
    return page <= word * 64 ? 0 : (1ULL << (page - word * 64)) - 1;
  }
  [[nodiscard]] constexpr std::size_t next(std::size_t page, std::uint64_t flip) const noexcept {
    while (page < block_pages) {
      const std::uint64_t rest = (words_[page / 64] ^ flip) >> page % 64;
      if (rest != 0) return page + static_cast<std::size_t>(std::countr_zero(rest));
      page = page / 64 * 64 + 64;
    }
    return block_pages;
  }

  std::array<std::uint64_t, block_pages / 64> words_{};
};

/// The treatment of pages that are to be moved out, and that a forked child shares: the kernel refuses to move them.
enum class SharedPages : std::uint8_t {
  stay,
  copied,  ///< The program gets copies, which can be moved. Only while another thread serves faults:
           ///< Space::is_helper().
};

/// Calls visit(first, count) for each run of adjacent pages in the set, in order. No run is longer than `pages_max` or
/// crosses a multiple of it.
template <class Visit>
void for_each_run(const PageSet& pages, std::size_t pages_max, Visit visit) {
  for (std::size_t first = pages.next(0); first < block_pages;) {
    const std::size_t border = (first / pages_max + 1) * pages_max;
    const std::size_t end = pages.next_without(first);
    const std::size_t last = end < border ? end : border;
    visit(first, last - first);
    first = pages.next(last);
  }
}

}  // namespace tonari::pager
