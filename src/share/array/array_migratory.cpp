#include "share/array/array.hpp"
#include "share/shared_memory.hpp"

#include <bit>
#include <cstring>
#include <mutex>

// Migratory pages: ranks write them in turn, like data that a mutex guards, and read them first. Each turn would cost
// two faults. A rank that wrote such a page in both of its last turns will most likely write it again. So its acquire
// renews the copy, for writing, instead of dropping it. At its home the page is presumed dirty: it gets a twin, and its
// first write does not fault. A turn without a write ends this treatment.
//
// Stenstrom, Brorsson and Sandberg, "An adaptive cache coherence protocol optimized for migratory sharing", ISCA 1993.
namespace tonari::share {

using Writes = pager::Userfaultfd::Writes;

// Ends this rank's turn for mapped pages that other ranks have changed. The copies among them are not dirty, so all are
// write-protected. Returns the pages to be renewed, which stay mapped: a write to them faults and waits.
Mask Array::end_turns(PageBlock& block, Mask pages, std::uint64_t first) noexcept {
  const Mask expected = block.states.end_turn(pages);

  const Mask own = expected & block.states.home() & ~block.states.writable();
  expect_writes(block, own, first);
  block.states.allow_writes(own);
  protect(own, first, Writes::go_on);

  const Mask renewing = expected & ~block.states.home();
  block.states.start_renewal(renewing);
  if (renewing != 0) renewing_.add(first / pages_per_block);
  return renewing;
}

// Makes twins of pages at home that are writable, or will be, and presumes them dirty: their first write does not
// fault.
void Array::expect_writes(PageBlock& block, Mask pages, std::uint64_t first) noexcept {
  if (pages == 0) return;
  for_each_page(pages, [&](std::size_t i) { std::memcpy(twin_of(first + i), data_of(first + i), page_bytes); });
  block.states.presume_dirty(pages);
  announce_dirty(block, pages, first);
}

// Called after `copy` of a presumed dirty page was given. If the copy differs from the twin, the page could become
// equal to its twin again and still have to be told; so it is an ordinary dirty page from now on.
void Array::expect_given(PageBlock& block, std::uint64_t page, const std::byte* copy) noexcept {
  if (std::memcmp(copy, twin_of(page), page_bytes) != 0) block.states.confirm_dirty(bit(page % pages_per_block));
}

// Ends the presumption for a page: returns true, and write-protects it, if it was not written. Compares twice, since
// other threads may write the page until it is protected.
bool Array::close_unwritten(PageBlock& block, std::uint64_t page) noexcept {
  const Mask bit_of_page = bit(page % pages_per_block);
  const auto is_unwritten = [&] { return std::memcmp(data_of(page), twin_of(page), page_bytes) == 0; };
  block.states.confirm_dirty(bit_of_page);
  if (!is_unwritten()) return false;
  protect(bit_of_page, page - page % pages_per_block, Writes::wait);
  block.states.catch_writes(bit_of_page);
  if (!is_unwritten()) return false;
  block.states.mark_told(bit_of_page);
  return true;
}

void Array::renew() noexcept {
  if (renewing_.is_empty()) return;
  Fetches fetches(shared_memory_.engine(), fabric::Waiter::program);
  renewing_.take([&](std::size_t index) {
    PageBlock& block = this->block(index);
    const std::uint64_t first = index * pages_per_block;
    Mask pages = 0;
    decltype(block.homes) homes;
    {
      const std::lock_guard guard(block.lock);
      const Mask ours = block.states.renewing() & block.states.home();  // they moved here meanwhile
      (void)end_fetch(block, ours, ours, first);
      for_each_run(ours, [&](std::size_t i, std::size_t count) { wake(first + i, count); });
      pages = block.states.renewing();
      block.states.forget_notices(pages);
      homes = block.homes;
    }
    while (pages != 0) {
      const auto i = static_cast<std::size_t>(std::countr_zero(pages));
      std::size_t count = 1;
      while (count < Fetch::pages_max && i + count < pages_per_block && has(pages, i + count) &&
             homes[i + count] == homes[i]) {
        ++count;
      }
      pages &= ~bits(i, count);
      request_pages(fetches, first + i, count, static_cast<int>(homes[i]), Touch::write);
    }
  });
}

}  // namespace tonari::share
