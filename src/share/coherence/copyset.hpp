#pragma once

#include "fabric/bulk.hpp"
#include "share/array/page_block.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tonari::share {

/// A home's reply to the change of a page.
enum class Said : std::uint32_t {
  copies = 1,  ///< The change is stored; `ranks` have copies, and must be told.
  yours = 2,   ///< The same, and the rank that changed the page is its home from now on.
  moved = 3,   ///< Nothing was stored: the page's home is rank number `ranks`.
};
/// An element of the tail of share_copies, and of share_told, where `ranks` were told.
struct Entry {
  std::uint64_t page;
  Ranks ranks;
  std::uint32_t copies_given;  // PageBlock::copies_given, as it was when `ranks` was read
  Said said;
};
static_assert(sizeof(Entry) == 24);
inline constexpr std::size_t entries_max = fabric::bulk_tail_bytes_max / sizeof(Entry);

/// An element of the tail of share_notices.
struct PageRun {
  std::uint64_t first;
  std::uint64_t count;
};
inline constexpr std::size_t runs_max = fabric::bulk_tail_bytes_max / sizeof(PageRun);

/// Calls visit(element) for each T in a tail.
template <class T, class Visit>
void for_each_in(std::span<const std::byte> tail, Visit visit) {
  for (; tail.size() >= sizeof(T); tail = tail.subspan(sizeof(T))) {
    T each;
    std::memcpy(&each, tail.data(), sizeof each);
    visit(each);
  }
}

}  // namespace tonari::share
