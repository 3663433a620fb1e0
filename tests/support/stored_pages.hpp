#pragma once

#include "random.hpp"

#include "pager/page.hpp"
#include "pager/source.hpp"

#include <tonari/status.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Random pages, and a model of a source that stores them.
namespace tonari::test {

using Bytes = std::vector<std::byte>;

/// Returns pages of which `dense_bytes` bytes each cannot be compressed, so that slots of any size are needed.
inline Bytes pages_of(Random& random, std::size_t pages, std::size_t dense_bytes) {
  Bytes bytes(pages * pager::page_bytes, static_cast<std::byte>(between(random, 1, 255)));
  for (std::size_t page = 0; page < pages; ++page) {
    std::ranges::copy(pattern(dense_bytes, random()),
                      bytes.begin() + static_cast<std::ptrdiff_t>(page * pager::page_bytes));
  }
  return bytes;
}
inline Bytes some_pages(Random& random, std::size_t pages) {
  Bytes all;
  for (std::size_t page = 0; page < pages; ++page) {
    const Bytes one = pages_of(random, 1, between(random, 0, pager::page_bytes));
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

/// The pages of one thread in a source, and their expected contents.
class StoredPages {
 public:
  StoredPages(pager::Source& source, std::size_t first, std::size_t pages, std::uint64_t seed)
      : source_(source), first_(first), pages_(pages, Bytes(pager::page_bytes)), random_(seed) {}

  /// A store that finds no room must leave the old contents. Without this call, it fails the test.
  void may_be_full() { may_be_full_ = true; }

  void step() {
    const std::size_t first = between(random_, 0, pages_.size() - 1);
    const std::size_t count = between(random_, 1, std::min<std::size_t>(pages_.size() - first, 300));
    switch (between(random_, 0, 3)) {
      case 0: return discard(first, count);
      case 1: return compare(first, count);
      default: return store(first, count);
    }
  }
  void discard(std::size_t first, std::size_t count) {
    ASSERT_EQ(source_.discard(place(first), count * pager::page_bytes), Status::ok);
    for (std::size_t page = first; page < first + count; ++page) pages_[page] = Bytes(pager::page_bytes);
  }
  void compare(std::size_t first, std::size_t count) {
    Bytes found(count * pager::page_bytes, std::byte{0x77});
    ASSERT_EQ(source_.fetch(place(first), found), Status::ok);
    for (std::size_t page = 0; page < count; ++page) {
      const auto bytes = std::span(found).subspan(page * pager::page_bytes, pager::page_bytes);
      ASSERT_TRUE(std::ranges::equal(bytes, pages_[first + page])) << first_ + first + page;
    }
  }

 private:
  [[nodiscard]] std::uint64_t place(std::size_t page) const { return (first_ + page) * pager::page_bytes; }

  // In calls that do not leave a block, each of which is done or not.
  void store(std::size_t first, std::size_t count) {
    using pager::block_pages;
    while (count != 0) {
      const std::size_t part = std::min(count, block_pages - (first_ + first) % block_pages);
      store_in_block(first, part);
      first += part;
      count -= part;
    }
  }
  void store_in_block(std::size_t first, std::size_t count) {
    const Bytes bytes = chance(random_, 50) ? some_pages(random_, count)
                                            : pages_of(random_, count, between(random_, 0, pager::page_bytes));
    const Status status = source_.store(place(first), bytes);
    if (may_be_full_ && status == Status::no_memory) return compare(first, count);
    ASSERT_EQ(status, Status::ok);
    for (std::size_t page = 0; page < count; ++page) {
      std::ranges::copy(std::span(bytes).subspan(page * pager::page_bytes, pager::page_bytes),
                        pages_[first + page].begin());
    }
  }

  pager::Source& source_;
  std::size_t first_;
  std::vector<Bytes> pages_;
  Random random_;
  bool may_be_full_ = false;
};

}  // namespace tonari::test
