#include "share/array/array.hpp"
#include "share/coherence/diffs.hpp"
#include "share/coherence/release.hpp"
#include "share/shared_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

// Releases and acquires.
namespace tonari::share {

using Writes = pager::Userfaultfd::Writes;

namespace {

/// Marks `count` bytes from `first` on as changed.
void mark(window::DifferenceMap& map, std::size_t first, std::size_t count) noexcept {
  while (count != 0) {
    const std::size_t line = first / line_bytes;
    const std::size_t at = first % line_bytes;
    const std::size_t here = std::min(count, line_bytes - at);
    map.bytes[line] |= bits(at, here);
    map.blocks |= bit(line);
    first += here;
    count -= here;
  }
}

}  // namespace

void Array::collect(Release& release) {
  if (named_) return collect_named(release);
  dirty_.take([&](std::size_t index) {
    PageBlock& block = this->block(index);
    {
      const std::lock_guard guard(block.lock);
      const std::uint64_t first = index * pages_per_block;
      const Mask dirty = block.states.dirty() & ~block.states.in_multicast();
      const Mask home = block.states.home();
      collect_home(block, first, dirty & home, release);
      collect_pages(block, first, dirty & ~home, release);
    }
    release.make_room();
  });
}

// Adds the diffs of dirty pages that have their home at other ranks. With the block's lock held.
void Array::collect_pages(PageBlock& block, std::uint64_t first, Mask pages, Release& release) {
  protect(pages, first, Writes::wait);
  block.states.catch_writes(pages);
  block.states.mark_told(pages);
  for_each_page(pages, [&](std::size_t i) {
    const std::uint64_t page = first + i;
    window::DifferenceMap map;
    window::diff_code().mark(data_of(page), twin_of(page), page_bytes, map);
    const std::size_t bytes = write_change(release.room(), page, data_of(page), map);
    if (bytes == 0) return;
    block.states.note_written(bit(i));
    release.add_change(*this, static_cast<int>(block.homes[i]), page, bytes);
  });
}

// Adds dirty pages that have their home here. They stay dirty until the ranks with copies were told, and longer if a
// rank fetches a copy meanwhile, since later writes may be missing in that copy. There is no twin to find the changed
// bytes with, so copies cannot be updated.
void Array::collect_home(PageBlock& block, std::uint64_t first, Mask pages, Release& release) {
  for_each_page(pages, [&](std::size_t i) {
    if (block.copyset[i] == 0) {
      block.states.mark_told(bit(i));
    } else if (!has(block.states.presumed_dirty(), i) || !close_unwritten(block, first + i)) {
      block.states.note_written(bit(i));
      release.add_own(*this, {first + i, block.copyset[i], block.copies_given[i], Said::copies}, 0);
    }
  });
}

void Array::collect_named(Release& release) {
  std::vector<Region> regions;
  {
    const std::lock_guard guard(named_mutex_);
    regions.swap(written_);
  }
  std::ranges::sort(regions, {}, &Region::offset);
  for (std::size_t r = 0; r < regions.size();) {
    const std::uint64_t page = regions[r].offset / page_bytes;
    window::DifferenceMap map{};
    while (r < regions.size() && regions[r].offset / page_bytes == page) {
      Region& region = regions[r];
      const std::uint64_t at = region.offset % page_bytes;
      const std::uint64_t here = std::min(region.bytes, page_bytes - at);
      mark(map, at, here);
      region.offset += here;
      region.bytes -= here;
      if (region.bytes != 0) break;  // the region continues in the next page
      ++r;
    }
    collect_named_page(page, map, release);
  }
}

void Array::collect_named_page(std::uint64_t page, const window::DifferenceMap& map, Release& release) {
  const std::size_t i = page % pages_per_block;
  {
    PageBlock& block = this->block(page / pages_per_block);
    const std::lock_guard guard(block.lock);
    begin(block, page / pages_per_block);
    if (has(block.states.home(), i)) {
      if (block.copyset[i] == 0) return;
      const std::size_t bytes = updates_ ? write_change(release.room(), page, data_of(page), map) : 0;
      release.add_own(*this, {page, block.copyset[i], block.copies_given[i], Said::copies}, bytes);
    } else if (has(block.states.mapped(), i)) {  // an absent page cannot have been written, whatever the program names
      const std::size_t bytes = write_change(release.room(), page, data_of(page), map);
      release.add_change(*this, static_cast<int>(block.homes[i]), page, bytes);
    }
  }
  release.make_room();
}

void Array::drop_stale(Release& release) {
  if (!stale_.is_empty() && named_) collect_named(release);
  stale_.take([&](std::size_t index) {
    PageBlock& block = this->block(index);
    {
      const std::lock_guard guard(block.lock);
      const Mask changed_by_others = block.states.take_stale();
      const Mask stale = changed_by_others & ~block.states.home();
      const std::uint64_t first = index * pages_per_block;
      block.states.overtake(stale);
      const Mask changed = stale & (named_ ? block.states.mapped() : block.states.dirty());
      if (!named_) collect_pages(block, first, changed, release);
      const Mask renewing = end_turns(block, changed_by_others & block.states.mapped(), first);
      unmap(block, stale & block.states.mapped() & ~renewing, first);
      block.states.suspend(changed);
      if (changed != 0) release.add_suspended(*this, first, changed);
    }
    release.make_room();
  });
}

void Array::end_suspension(std::uint64_t first, Mask pages) noexcept {
  PageBlock& block = this->block(first / pages_per_block);
  const std::lock_guard guard(block.lock);
  block.states.end_suspension(pages);
  for_each_run(pages, [&](std::size_t i, std::size_t count) { wake(first + i, count); });
}

void Array::unmap(PageBlock& block, Mask pages, std::uint64_t first) noexcept {
  for_each_run(pages, [&](std::size_t i, std::size_t count) {
    ::madvise(bytes().data() + (first + i) * page_bytes, count * page_bytes, MADV_DONTNEED);
  });
  block.states.unmap(pages);
}

// Pages that this rank wrote since its last release are dirty, and the next release tells of them.
void Array::adopt(Entry& entry) noexcept {
  const std::size_t i = entry.page % pages_per_block;
  PageBlock& block = this->block(entry.page / pages_per_block);
  const std::lock_guard guard(block.lock);
  block.states.become_home(bit(i));
  block.homes[i] = static_cast<std::uint32_t>(shared_memory_.rank());
  block.copyset[i] = entry.ranks;
  block.up_to_date[i] = 0;
  block.last_writer[i] = 0;
  block.releases_in_row[i] = 0;
  block.states.forget_notices(bit(i));
  entry.copies_given = block.copies_given[i];
  const bool alone = entry.ranks == 0 && has(block.states.read_only(), i);
  if (!alone) return;
  protect(bit(i), entry.page - i, Writes::go_on);
  block.states.allow_writes(bit(i));
}

}  // namespace tonari::share
