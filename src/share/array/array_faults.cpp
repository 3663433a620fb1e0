#include "share/array/array.hpp"
#include "share/shared_memory.hpp"

#include <fcntl.h>
#include <spdlog/logger.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <mutex>

// Faults: touches of absent pages, and first writes.
namespace tonari::share {

using Writes = pager::Userfaultfd::Writes;

namespace {

/// Returns the pages, of some at home, of which other ranks may have copies.
Mask copied_of(const PageBlock& block, Mask pages) noexcept {
  Mask copied = 0;
  for_each_page(pages, [&](std::size_t page) { copied |= block.copyset[page] != 0 ? bit(page) : 0; });
  return copied;
}

}  // namespace

void Array::answer(const pager::Fault& fault) noexcept {
  const std::uint64_t page = (fault.address - address_of(0)) / page_bytes;
  const std::size_t i = page % pages_per_block;
  const Touch touch = fault.is_write ? Touch::write : Touch::read;
  PageBlock& block = this->block(page / pages_per_block);
  {
    const std::lock_guard guard(block.lock);
    begin(block, page / pages_per_block);
    const PageState state = block.states.of(i);
    if (state == PageState::fetching || state == PageState::suspended)
      return;  // the thread that ends it wakes all waiters
    if (has(block.states.home(), i)) return touch_home(block, page, touch);
    if (state != PageState::absent) {
      if (touch == Touch::write && !has(block.states.writable(), i)) return upgrade(block, page);
      return wake(page, 1);  // another fault has fetched it meanwhile
    }
  }
  fetch(page, touch);
}

void Array::wake(std::uint64_t page, std::size_t count) noexcept {
  shared_memory_.faults().wake(address_of(page), count * page_bytes);
}

void Array::touch_home(PageBlock& block, std::uint64_t page, Touch touch) noexcept {
  const std::size_t i = page % pages_per_block;
  if (!has(block.states.mapped(), i)) return map_home(block, page, touch);
  if (touch == Touch::read || has(block.states.writable(), i)) return wake(page, 1);
  const Ahead ahead = streams_.fault(page);
  const Mask tracked = block.states.home() & block.states.read_only();
  const Mask pages = bits(i, run_from(tracked, i, ahead.step == 1 ? ahead.count + 1 : 1));
  if (const Mask copied = copied_of(block, pages); copied != 0) make_dirty(block, copied, page - i);
  block.states.allow_writes(pages);
  protect(pages, page - i, Writes::go_on);
}

// Maps a run of pages without copies, up to the end of the block: most often they are touched soon, too.
void Array::map_home(PageBlock& block, std::uint64_t page, Touch touch) noexcept {
  const std::size_t i = page % pages_per_block;
  Mask unread = block.states.home() & ~block.states.mapped();
  if (!named_) unread &= ~copied_of(block, unread);
  const bool has_copies = !has(unread, i);
  // With placement by first touch only what a stream of faults justifies: mapping a page makes this rank its home.
  const Ahead ahead = plan_.by_first_touch() ? streams_.fault(page) : Ahead{1, pages_per_block};
  const std::size_t count_max = std::min(ahead.step == 1 ? ahead.count + 1 : 1, pages_per_block - i);
  const std::size_t count = has_copies ? 1 : run_from(unread, i, count_max);
  const Mask pages = bits(i, count);
  populate(page, count);
  const bool writable = !has_copies || touch == Touch::write || !shared_memory_.faults().resumes_protected();
  if (has_copies && writable) make_dirty(block, pages, page - i);
  block.states.map(pages, writable ? Touch::write : Touch::read);
  shared_memory_.faults().resume(address_of(page), count * page_bytes, writable ? Writes::go_on : Writes::wait);
}

void Array::populate(std::uint64_t first, std::size_t count) noexcept {
  if (::madvise(data_of(first), count * page_bytes, MADV_POPULATE_WRITE) != 0) end_without_memory(count * page_bytes);
}

// Other ranks wait for this rank, so it cannot wait until memory becomes free.
void Array::end_without_memory(std::size_t bytes) const noexcept {
  shared_memory_.engine().session().log().critical("a shared array: no memory for {} KiB of it ({}): this rank ends",
                                                   bytes / 1024, std::strerror(errno));
  ::_exit(1);
}

void Array::upgrade(PageBlock& block, std::uint64_t page) noexcept {
  const std::size_t i = page % pages_per_block;
  const Ahead ahead = streams_.fault(page);
  const Mask clean = block.states.read_only() & ~block.states.home() & ~block.states.fetching();
  const std::size_t count = run_from(clean, i, ahead.step == 1 ? ahead.count + 1 : 1);
  const Mask pages = bits(i, count);
  std::memcpy(twin_of(page), data_of(page), count * page_bytes);
  make_dirty(block, pages, page - i);
  block.states.allow_writes(pages);
  protect(pages, page - i, Writes::go_on);
}

void Array::make_dirty(PageBlock& block, Mask pages, std::uint64_t first) noexcept {
  block.states.mark_dirty(pages);
  announce_dirty(block, pages, first);
}

// Lets the next release find `pages`. At their home no copy will equal the page, and no other rank is its only writer.
void Array::announce_dirty(PageBlock& block, Mask pages, std::uint64_t first) noexcept {
  for_each_page(pages, [&](std::size_t i) {
    block.up_to_date[i] = 0;
    block.last_writer[i] = 0;
  });
  dirty_.add(first / pages_per_block);
  shared_memory_.has_dirty();
}

void Array::protect(Mask pages, std::uint64_t first, Writes writes) noexcept {
  for_each_run(pages, [&](std::size_t i, std::size_t count) {
    shared_memory_.faults().protect(address_of(first + i), count * page_bytes, writes);
  });
}

void Array::prefetch(std::uint64_t offset, std::uint64_t count) noexcept {
  if (count == 0 || offset >= bytes().size()) return;
  count = std::min(count, bytes().size() - offset);
  const std::uint64_t first = offset / page_bytes;
  const std::uint64_t pages = (offset + count - 1) / page_bytes - first + 1;
  {
    Fetches fetches(shared_memory_.engine(), fabric::Waiter::program);
    fetch_ahead(fetches, first, {1, pages}, Touch::read);
  }
  // Touches the pages that have their home here, and pages whose fetches were overtaken or failed.
  ::madvise(bytes().data() + first * page_bytes, pages * page_bytes, MADV_POPULATE_READ);
}

void Array::fetch(std::uint64_t page, Touch touch) noexcept {
  const Ahead ahead = streams_.fault(page);
  Fetches& fetches = shared_memory_.fetches();
  if (ahead.step == 1) return fetch_ahead(fetches, page, {1, ahead.count + 1}, touch);
  fetch_ahead(fetches, page, {1, 1}, touch);
  const auto next = static_cast<std::int64_t>(page) + ahead.step;
  if (next >= 0 && ahead.count != 0) fetch_ahead(fetches, static_cast<std::uint64_t>(next), ahead, touch);
}

// Requests the absent pages, adjacent pages of one home in one message.
void Array::fetch_ahead(Fetches& fetches, std::uint64_t page, const Ahead& ahead, Touch touch) noexcept {
  for (std::size_t left = ahead.count; left != 0 && page < plan_.pages();) {
    const std::size_t i = page % pages_per_block;
    std::size_t count = 0;
    int home = 0;
    {
      PageBlock& block = this->block(page / pages_per_block);
      const std::lock_guard guard(block.lock);
      begin(block, page / pages_per_block);
      const Mask fetchable = block.states.fetchable();
      const std::size_t count_max = ahead.step == 1 ? std::min({left, Fetch::pages_max, pages_per_block - i}) : 1;
      home = static_cast<int>(block.homes[i]);
      const std::uint64_t inside = std::min<std::uint64_t>(count_max, plan_.pages() - page);
      while (count < inside && has(fetchable, i + count) && block.homes[i + count] == block.homes[i]) ++count;
      if (count != 0) block.states.start_fetch(bits(i, count));
    }
    if (count != 0) {
      request_pages(fetches, page, count, home, touch);
      give_memory(page, count);  // while the reply is on its way
    }
    const std::size_t passed = std::max<std::size_t>(count, 1);
    left -= passed;
    page += static_cast<std::uint64_t>(ahead.step) *
            passed;  // a negative step ends by wrapping to a number above all pages
  }
}

void Array::request_pages(Fetches& fetches, std::uint64_t first, std::size_t count, int home, Touch touch) noexcept {
  Fetch& fetch = fetches.next();
  users_.fetch_add(1, std::memory_order_relaxed);  // until the reply; the calling thread is counted already
  fetch.array = this;
  fetch.first = first;
  fetch.count = count;
  fetch.touch = touch;
  Words words;
  words.object = number_;
  words.first = first;
  words.count = static_cast<std::uint32_t>(count);
  words.extra = touch == Touch::write ? 1 : 0;
  shared_memory_.requests().ask(fetch, home, head_of(Kind::share_fetch, shared_memory_.rank(), words), fetches.waiter(),
                                fetches.wakeup());
}

void Array::give_memory(std::uint64_t first, std::size_t count) noexcept {
  const auto offset = static_cast<off_t>(first * page_bytes);
  const auto bytes = static_cast<off_t>(count * page_bytes);
  if (::fallocate(file_.number(), 0, offset, bytes) != 0) end_without_memory(count * page_bytes);
}

void Array::arrived(const Fetch& fetch) noexcept {
  const std::size_t i = fetch.first % pages_per_block;
  PageBlock& block = this->block(fetch.first / pages_per_block);
  const Mask requested = bits(i, fetch.count);
  if (fetch.status() == Status::ok && fetch.kind() == Kind::share_pages) {
    const auto data = shared_memory_.requests().tail_of(fetch);
    {
      const std::lock_guard guard(block.lock);
      place(block, fetch, data);
    }
    shared_memory_.requests().give_back_tail(fetch);
  } else {
    const std::lock_guard guard(block.lock);
    (void)end_fetch(block, requested, 0, fetch.first - i);
    const bool is_gone = fetch.status() != Status::ok || fetch.kind() == Kind::share_gone;
    if (is_gone && !leaves_.load(std::memory_order_relaxed)) {
      lose(fetch);
    } else if (is_gone) {  // all destroy the array, so only a fetch ahead can fail: no thread waits for its pages
      wake(fetch.first, fetch.count);
    } else {  // the home has moved: waiting threads fault again. A reply that names this rank came from a new home that
      // does not know yet that it is the home
      const std::uint64_t home = fetch.words().extra;
      const bool is_other = home < static_cast<std::uint64_t>(shared_memory_.size()) &&
                            home != static_cast<std::uint64_t>(shared_memory_.rank());
      if (is_other) block.homes[i] = static_cast<std::uint32_t>(home);
      wake(fetch.first, fetch.count);
    }
  }
}

// Ends the fetch of `requested` pages, of which the `good` ones have arrived. Unmaps copies that were to be renewed and
// have not arrived. Returns the pages whose renewal succeeded.
Mask Array::end_fetch(PageBlock& block, Mask requested, Mask good, std::uint64_t first) noexcept {
  const Mask renewing = block.states.end_fetch(requested);
  unmap(block, renewing & ~good, first);
  return renewing & good;
}

void Array::place(PageBlock& block, const Fetch& fetch, std::span<const std::byte> data) noexcept {
  const std::uint64_t page = fetch.first;
  const std::size_t i = page % pages_per_block;
  const Mask requested = bits(i, fetch.count);
  const std::size_t count = std::min(fetch.count, data.size() / page_bytes);
  const bool ours = (fetch.words().extra & 1) != 0;            // this rank is their home from now on
  const Mask overtaken = ours ? 0 : block.states.overtaken();  // a first touch: no rank can have written it before
  const Mask good = bits(i, count) & block.states.fetching() & ~overtaken;
  const Mask renewed = end_fetch(block, requested, good, page - i);
  const bool tracked = !named_ && !ours;  // its writes are caught, and sent home
  const bool writable = !tracked || fetch.touch == Touch::write || !shared_memory_.faults().resumes_protected();
  if (tracked && writable) make_dirty(block, good, page - i);  // before the program can write to it and release
  const auto writes = writable ? Writes::go_on : Writes::wait;
  const auto place_all = [&](Mask pages, auto let_go_on) {
    for_each_run(pages, [&](std::size_t first, std::size_t run) {
      const std::byte* const from = data.data() + (first - i) * page_bytes;
      const std::uint64_t at = page - i + first;
      store(block, at, {from, run * page_bytes});
      if (tracked && writable) std::memcpy(twin_of(at), from, run * page_bytes);
      (shared_memory_.faults().*let_go_on)(address_of(at), run * page_bytes, writes);
    });
  };
  place_all(good & ~renewed, &pager::Userfaultfd::resume);
  place_all(renewed, &pager::Userfaultfd::protect);
  block.states.map(good, writable ? Touch::write : Touch::read);
  block.states.start_turn(good);
  if (ours) {
    block.states.become_home(good);
    for_each_page(good, [&](std::size_t each) {
      block.homes[each] = static_cast<std::uint32_t>(shared_memory_.rank());
      block.copyset[each] = 0;
      block.up_to_date[each] = 0;
    });
  }
  if (good != requested) wake(page, fetch.count);  // threads that wait for the rest fault again and request it
}

// Pages that the file has no memory for yet are written by pwrite(): the kernel need not clear them first.
void Array::store(const PageBlock& block, std::uint64_t page, std::span<const std::byte> data) noexcept {
  const Mask pages = bits(page % pages_per_block, data.size() / page_bytes);
  if ((block.states.in_file() & pages) == pages) {
    std::memcpy(data_of(page), data.data(), data.size());
  } else if (::pwrite(file_.number(), data.data(), data.size(), static_cast<off_t>(page * page_bytes)) !=
             static_cast<ssize_t>(data.size())) {
    end_without_memory(data.size());
  }
}

// The pages' home has died, or has destroyed the array while an exception unwinds it: touches raise SIGBUS.
void Array::lose(const Fetch& fetch) noexcept {
  const bool died = fetch.status() != Status::ok;
  shared_memory_.engine().session().log().error(
      "{} pages of a shared array are lost {} rank {}, their home{}: touching them raises SIGBUS", fetch.count,
      died ? "with" : "since", fetch.peer(), died ? "" : ", has destroyed it");
  // The kernel does not poison a page on which it still keeps a write protection, so end that first.
  shared_memory_.faults().protect(address_of(fetch.first), fetch.count * page_bytes, Writes::go_on);
  shared_memory_.faults().poison(address_of(fetch.first), fetch.count * page_bytes);
}

}  // namespace tonari::share
