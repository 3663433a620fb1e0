#include "share/array/array.hpp"
#include "share/shared_memory.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

// A barrier that sends each rank's named region to all ranks: MLC-1's barrier with multicast, for a whole job.
namespace tonari::share {

using Writes = pager::Userfaultfd::Writes;

namespace {

struct Pages {
  std::uint64_t first;
  std::uint64_t end;
};
/// Returns the pages that have bytes in a region; whole_pages() returns the pages that lie inside it completely.
Pages touched_pages(const Region& region) noexcept {
  if (region.bytes == 0) return {0, 0};
  return {region.offset / page_bytes, (region.offset + region.bytes - 1) / page_bytes + 1};
}
Pages whole_pages(const Region& region) noexcept {
  return {(region.offset + page_bytes - 1) / page_bytes, (region.offset + region.bytes) / page_bytes};
}

/// Returns the pages of one block.
Mask pages_in(const Pages& pages, std::size_t block) noexcept {
  const std::uint64_t first = block * pages_per_block;
  const std::uint64_t from = std::max(pages.first, first);
  const std::uint64_t end = std::min<std::uint64_t>(pages.end, first + pages_per_block);
  return from < end ? bits(from - first, end - from) : 0;
}
/// Calls visit(block number, mask) for each block that has some of the pages.
template <class Visit>
void for_each_block(const Pages& pages, Visit visit) {
  for (std::size_t block = pages.first / pages_per_block; block * pages_per_block < pages.end; ++block) {
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
    // No rank gets all regions before all ranks have released.
    if (const Status status = shared_memory_.ranks().all_gather(own, regions); status != Status::ok) return status;
    for (Region& each : regions) {
      if (!is_in(each, bytes().size())) each = {};  // the rank that named it gets Status::bounds
    }
    if (const Status status = shared_memory_.acquire(); status != Status::ok) return status;
    return multicast(regions);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

// Broadcasts all regions at once, directly to their place in each rank's file, and only the named bytes: other ranks
// may have written beside them.
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
      end_suspension(index * pages_per_block, touched);
    });
  }
  return status;
}

// Takes the whole pages of the region out of releases and acquires: all ranks will get them, their homes too, so no
// diff and no notice is needed. A notice that arrives meanwhile, for earlier changes, must not drop this rank's
// writes. The partial pages at both ends are released as usual, since other ranks may have written the rest of them.
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

// Pages that are still dirty were not multicast: the next release tells of them.
void Array::let_go(const Region& own) noexcept {
  for_each_block(whole_pages(own), [&](std::size_t index, Mask pages) {
    PageBlock& block = this->block(index);
    const std::lock_guard guard(block.lock);
    const Mask dirty = block.states.end_multicast(pages);
    if (dirty != 0) make_dirty(block, dirty, index * pages_per_block);
  });
}

// Touches the pages that the program has named, which fetches the absent ones. The thread that stored them did so with
// the block's lock held; taking the lock lets this thread read them through the runtime's mapping.
void Array::bring(const Region& own) noexcept {
  for_each_block(touched_pages(own), [&](std::size_t index, Mask pages) {
    for_each_page(pages, [&](std::size_t i) {
      (void)*static_cast<const volatile std::byte*>(bytes().data() + (index * pages_per_block + i) * page_bytes);
    });
    const std::lock_guard guard(this->block(index).lock);
  });
}

// Prepares pages for the data of a multicast. Replies to earlier fetches may be older than that data, so they are
// overtaken. Absent pages are suspended: no thread fetches them, for example ahead of a stream, before the data is
// here.
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
    for_each_run(absent, [&](std::size_t i, std::size_t count) { populate(index * pages_per_block + i, count); });
  });
}

// Copies the received bytes to the twins of dirty pages, so that they do not count as changes of this rank. A page that
// was fetched ahead after this rank's release may have a twin.
void Array::have_in_twins(std::size_t index, Mask pages, const Region& region) noexcept {
  if (named_) return;
  PageBlock& block = this->block(index);
  const std::lock_guard guard(block.lock);
  for_each_page(pages & block.states.dirty() & ~block.states.home() & ~block.states.in_multicast(), [&](std::size_t i) {
    const std::uint64_t page = index * pages_per_block + i;
    const std::uint64_t from = std::max(region.offset, page * page_bytes);
    const std::uint64_t end = std::min(region.offset + region.bytes, (page + 1) * page_bytes);
    const std::uint64_t inside = from - page * page_bytes;
    std::memcpy(twin_of(page) + inside, data_of(page) + inside, end - from);
  });
}

// Marks pages that a multicast has brought completely: at their home all other ranks have copies; elsewhere they are
// mapped. The lock is taken even for a block without such pages: it publishes the received data to later holders.
void Array::have_multicast(std::size_t index, Mask pages) noexcept {
  Ranks others = 0;
  for (int rank = 0; rank < shared_memory_.size(); ++rank) others |= rank == shared_memory_.rank() ? 0 : rank_bit(rank);
  PageBlock& block = this->block(index);
  const std::uint64_t first = index * pages_per_block;
  const std::lock_guard guard(block.lock);
  const Mask home = pages & block.states.home();
  for_each_page(home, [&](std::size_t i) {
    block.copyset[i] = others;
    block.up_to_date[i] = others;
    ++block.copies_given[i];  // a later share_told for earlier changes does not cover these copies
  });
  const Mask ours = home | (pages & block.states.in_multicast());
  const Mask tracked = named_ ? 0 : ours & block.states.writable();
  protect(tracked, first, Writes::wait);
  block.states.catch_writes(tracked);
  block.states.mark_told(ours);

  // A kernel that cannot map and protect at once would make the page dirty. At its home it is left absent until it is
  // touched, since it has nothing to tell.
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
