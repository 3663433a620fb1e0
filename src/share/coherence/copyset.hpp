#pragma once

#include "fabric/bulk.hpp"
#include "share/array/page_block.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tonari::share {

/// What a home says of a page that was changed.
enum class Said : std::uint32_t {
  copies = 1,  ///< `ranks` have copies, and are to be told.
  yours = 2,   ///< The same; and the page's home is who changed it, from now on.
  moved = 3,   ///< Nothing was done: its home is rank `ranks`.
};
/// In the tail of share_copies; and of share_told, where `ranks` have been told.
struct Entry {
  std::uint64_t page;
  Ranks ranks;
  std::uint32_t copies_given;  // PageBlock::copies_given, as it was when `ranks` was read
  Said said;
};
static_assert(sizeof(Entry) == 24);
inline constexpr std::size_t entries_max = fabric::bulk_tail_bytes_max / sizeof(Entry);

/// In the tail of share_notices.
struct PageRun {
  std::uint64_t first;
  std::uint64_t count;
};
inline constexpr std::size_t runs_max = fabric::bulk_tail_bytes_max / sizeof(PageRun);

/// Calls visit(each) for each T in a tail.
template <class T, class Visit>
void for_each_in(std::span<const std::byte> tail, Visit visit) {
  for (; tail.size() >= sizeof(T); tail = tail.subspan(sizeof(T))) {
    T each;
    std::memcpy(&each, tail.data(), sizeof each);
    visit(each);
  }
}

}  // namespace tonari::share
