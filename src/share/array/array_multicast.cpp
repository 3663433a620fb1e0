#include "share/array/array.hpp"
#include "share/shared_memory.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

// Barriers that bring everybody what each rank has written: MLC-1's barrier with multicast, over a whole job.
namespace tonari::share {

using Writes = pager::Userfaultfd::Writes;

namespace {

struct Pages {
  std::uint64_t first;
  std::uint64_t end;
};
/// Those of which some bytes are in a region, and those that lie wholly in it.
Pages touched_pages(const Region& region) noexcept {
  if (region.bytes == 0) return {0, 0};
  return {region.offset / page_bytes, (region.offset + region.bytes - 1) / page_bytes + 1};
}
Pages whole_pages(const Region& region) noexcept {
  return {(region.offset + page_bytes - 1) / page_bytes, (region.offset + region.bytes) / page_bytes};
}

/// Those of a block.
Mask pages_in(const Pages& pages, std::size_t block) noexcept {
  const std::uint64_t first = block * pages_a_block;
  const std::uint64_t from = std::max(pages.first, first);
  const std::uint64_t end = std::min<std::uint64_t>(pages.end, first + pages_a_block);
  return from < end ? bits(from - first, end - from) : 0;
}
/// Calls visit(block's number, its pages) for each block with some.
template <class Visit>
void for_each_block(const Pages& pages, Visit visit) {
  for (std::size_t block = pages.first / pages_a_block; block * pages_a_block < pages.end; ++block) {
    visit(block, pages_in(pages, block));
  }
}

bool is_in(const Region& region, std::uint64_t bytes) noexcept {
  return region.offset <= bytes && region.bytes <= bytes - region.offset;
}

}  // namespace

Status Array::barrier_with_multicast(std::uint64_t offset, std::uint64_t count) noexcept {
  const Region own{offset, count};
  const bool has_own = is_in(own, bytes().size());
  if (has_own) hold(own);
  const Status status = release_and_multicast(own);
  if (has_own) let_go(own);
  if (status != Status::ok) return status;
  if (const Status met = shared_memory_.barrier(); met != Status::ok) return met;
  return has_own ? Status::ok : Status::bounds;
}

Status Array::release_and_multicast(const Region& own) noexcept {
  try {
    if (const Status status = shared_memory_.release(Others::will_come); status != Status::ok) return status;
    std::vector<Region> regions(static_cast<std::size_t>(shared_memory_.size()));
    // Nobody has them all before everybody has released.
    if (const Status status = shared_memory_.ranks().all_gather(own, regions); status != Status::ok) return status;
    for (Region& each : regions) {
      if (!is_in(each, bytes().size())) each = {};  // who named it is told
    }
    if (const Status status = shared_memory_.acquire(); status != Status::ok) return status;
    return multicast(regions);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

// All go at once, straight to where they belong: byte by byte what was named, since others may have written beside it.
Status Array::multicast(std::span<const Region> regions) {
  const auto self = static_cast<std::size_t>(shared_memory_.rank());
  bring(regions[self]);
  std::vector<Request> requests;
  for (std::size_t root = 0; root < regions.size(); ++root) {
    const Region& each = regions[root];
    if (each.bytes == 0) continue;
    if (root != self) make_room(each);
    const std::span data = file_bytes_.bytes().subspan(each.offset, each.bytes);
    requests.push_back(shared_memory_.ranks().start_broadcast_bytes(data, Rank{root}));
  }
  const Status status = wait_all(requests);
  for (const Region& each : regions) {
    const Pages whole = whole_pages(each);
    for_each_block(touched_pages(each), [&](std::size_t index, Mask touched) {
      if (status == Status::ok) {
        have_in_twins(index, touched, each);
        have_multicast(index, pages_in(whole, index));
      }
      end_suspension(index * pages_a_block, touched);
    });
  }
  return status;
}

// Everybody will have these pages, their homes too: no change of them need be found, sent, or told, and a notice that
// comes meanwhile, as of a home that had to tell of them for what came before, must not end what was written here. What
// is named at their sides goes home, since others may have written the rest of those pages.
void Array::hold(const Region& own) noexcept {
  const Pages whole = whole_pages(own);
  if (whole.first >= whole.end) return wrote(own.offset, own.bytes);
  wrote(own.offset, whole.first * page_bytes - own.offset);
  wrote(whole.end * page_bytes, own.offset + own.bytes - whole.end * page_bytes);
  for_each_block(whole, [&](std::size_t index, Mask pages) {
    PageBlock& block = this->block(index);
    const std::lock_guard guard(block.lock);
    const PageStates& states = block.states;
    block.states.start_multicast(pages & (named_ ? states.mapped() : states.dirty() & ~states.stale()));
  });
}

// Where nothing came of the multicast they are dirty still.
void Array::let_go(const Region& own) noexcept {
  for_each_block(whole_pages(own), [&](std::size_t index, Mask pages) {
    PageBlock& block = this->block(index);
    const std::lock_guard guard(block.lock);
    const Mask dirty = block.states.end_multicast(pages);
    if (dirty != 0) make_dirty(block, dirty, index * pages_a_block);
  });
}

// What the program has named and has not here is touched, which brings it. Who has brought it did so under the lock,
// after which this thread may read it where the runtime has it.
void Array::bring(const Region& own) noexcept {
  for_each_block(touched_pages(own), [&](std::size_t index, Mask pages) {
    for_each_page(pages, [&](std::size_t i) {
      (void)*static_cast<const volatile std::byte*>(bytes().data() + (index * pages_a_block + i) * page_bytes);
    });
    const std::lock_guard guard(this->block(index).lock);
  });
}

// Pages of which copies are on their way are late from now on: what comes may be older than what is brought. Nor are
// any asked for, as reading ahead might, before it is here.
void Array::make_room(const Region& region) noexcept {
  for_each_block(touched_pages(region), [&](std::size_t index, Mask pages) {
    PageBlock& block = this->block(index);
    Mask absent = 0;
    {
      const std::lock_guard guard(block.lock);
      begin(block, index);
      block.states.overtake(pages);
      block.states.suspend(pages & ~block.states.mapped() & ~block.states.home());
      absent = pages & ~block.states.in_file();
    }
    for_each_run(absent, [&](std::size_t i, std::size_t count) { populate(index * pages_a_block + i, count); });
  });
}

// A page that came ahead of its use, after this rank's release, may have a twin: what is brought is no change of this
// rank's.
void Array::have_in_twins(std::size_t index, Mask pages, const Region& region) noexcept {
  if (named_) return;
  PageBlock& block = this->block(index);
  const std::lock_guard guard(block.lock);
  for_each_page(pages & block.states.dirty() & ~block.states.home() & ~block.states.in_multicast(), [&](std::size_t i) {
    const std::uint64_t page = index * pages_a_block + i;
    const std::uint64_t from = std::max(region.offset, page * page_bytes);
    const std::uint64_t end = std::min(region.offset + region.bytes, (page + 1) * page_bytes);
    const std::uint64_t inside = from - page * page_bytes;
    std::memcpy(twin_of(page) + inside, data_of(page) + inside, end - from);
  });
}

// At their home: all others have copies of what is there. Where a block has none, the lock still hands on what was
// brought.
void Array::have_multicast(std::size_t index, Mask pages) noexcept {
  Ranks others = 0;
  for (int rank = 0; rank < shared_memory_.size(); ++rank) others |= rank == shared_memory_.rank() ? 0 : rank_bit(rank);
  PageBlock& block = this->block(index);
  const std::uint64_t first = index * pages_a_block;
  const std::lock_guard guard(block.lock);
  const Mask home = pages & block.states.home();
  for_each_page(home, [&](std::size_t i) {
    block.copyset[i] = others;
    block.up_to_date[i] = others;
    ++block.copies_given[i];  // who tells of earlier changes does not speak of these copies
  });
  const Mask ours = home | (pages & block.states.in_multicast());
  const Mask tracked = named_ ? 0 : ours & block.states.writable();
  protect(tracked, first, Writes::wait);
  block.states.catch_writes(tracked);
  block.states.mark_told(ours);

  // Where a page cannot be mapped and protected at once, its home maps it when it is touched: it has nothing to tell.
  const bool writable = named_ || !shared_memory_.faults().resumes_protected();
  const bool dirties = writable && !named_;
  const Mask absent = pages & ~block.states.mapped() & ~(dirties ? home : 0);
  if (dirties) {
    make_dirty(block, absent, first);
    for_each_page(absent, [&](std::size_t i) { std::memcpy(twin_of(first + i), data_of(first + i), page_bytes); });
  }
  for_each_run(absent, [&](std::size_t i, std::size_t count) {
    shared_memory_.faults().resume(address_of(first + i), count * page_bytes, writable ? Writes::go_on : Writes::wait);
  });
  block.states.has_memory(pages);
  block.states.map(absent, writable ? Touch::write : Touch::read);
}

}  // namespace tonari::share
