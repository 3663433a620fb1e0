#include "share/array/array.hpp"
#include "share/shared_memory.hpp"

#include <bit>
#include <cstring>
#include <mutex>

// Pages that migrate: ranks write them in turn, as what a mutex guards, each of them reading first. To each turn of
// such a page there would be two faults. But who has written it in both of its last turns will most likely do so again:
// so an acquire renews its copy, for writing, in place of dropping it; and at its home it is *opened*: it has a twin,
// and its first write is not noticed. Who has not written it in its turn is no longer expected to.
//
// Stenstrom, Brorsson and Sandberg, "An adaptive cache coherence protocol optimized for migratory sharing", ISCA 1993.
namespace tonari::share {

using Writes = pager::Userfaultfd::Writes;

// Of mapped pages that others have changed; none of those that are others' is dirty, so all are protected. Answers
// those that are kept, to be renewed: who writes them waits.
Mask Array::end_turns(PageBlock& block, Mask pages, std::uint64_t first) noexcept {
  const Mask expected = block.states.end_turn(pages);

  const Mask own = expected & block.states.home() & ~block.states.writable();
  expect_writes(block, own, first);
  block.states.allow_writes(own);
  protect(own, first, Writes::go_on);

  const Mask renewing = expected & ~block.states.home();
  block.states.start_renewal(renewing);
  if (renewing != 0) renewing_.add(first / pages_a_block);
  return renewing;
}

// Pages at home that are writable, or will be: their first write is not noticed, since the twin tells.
void Array::expect_writes(PageBlock& block, Mask pages, std::uint64_t first) noexcept {
  if (pages == 0) return;
  for_each_page(pages, [&](std::size_t i) { std::memcpy(twin_of(first + i), data_of(first + i), page_bytes); });
  block.states.presume_dirty(pages);
  announce_dirty(block, pages, first);
}

// A copy of an opened page has been given. If it has what was written since, the page may be as its twin again and yet
// have to be told.
void Array::expect_given(PageBlock& block, std::uint64_t page, const std::byte* copy) noexcept {
  if (std::memcmp(copy, twin_of(page), page_bytes) != 0) block.states.confirm_dirty(bit(page % pages_a_block));
}

// Of a page that was opened: false if it was written. It is looked at twice, since other threads may write it until it
// is protected.
bool Array::close_unwritten(PageBlock& block, std::uint64_t page) noexcept {
  const Mask bit_of_page = bit(page % pages_a_block);
  const auto is_unwritten = [&] { return std::memcmp(data_of(page), twin_of(page), page_bytes) == 0; };
  block.states.confirm_dirty(bit_of_page);
  if (!is_unwritten()) return false;
  protect(bit_of_page, page - page % pages_a_block, Writes::wait);
  block.states.catch_writes(bit_of_page);
  if (!is_unwritten()) return false;
  block.states.mark_told(bit_of_page);
  return true;
}

void Array::renew() noexcept {
  if (renewing_.is_empty()) return;
  Fetches fetches(shared_memory_.engine(), Waiter::program);
  renewing_.take([&](std::size_t index) {
    PageBlock& block = this->block(index);
    const std::uint64_t first = index * pages_a_block;
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
      while (count < Fetch::pages_max && i + count < pages_a_block && has(pages, i + count) &&
             homes[i + count] == homes[i]) {
        ++count;
      }
      pages &= ~bits(i, count);
      request_pages(fetches, first + i, count, static_cast<int>(homes[i]), Touch::write);
    }
  });
}

}  // namespace tonari::share
