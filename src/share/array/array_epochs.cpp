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
    Block& block = this->block(index);
    {
      const std::lock_guard guard(block.lock);
      const std::uint64_t first = index * pages_a_block;
      const Mask dirty = block.dirty & ~block.held;
      collect_home(block, first, dirty & block.home, release);
      collect_pages(block, first, dirty & ~block.home, release);
    }
    release.make_room();
  });
}

// Pages that have their home elsewhere. Under the block's lock.
void Array::collect_pages(Block& block, std::uint64_t first, Mask pages, Release& release) {
  protect(pages, first, Writes::wait);
  block.writable &= ~pages;
  block.dirty &= ~pages;
  for_each_page(pages, [&](std::size_t i) {
    const std::uint64_t page = first + i;
    window::DifferenceMap map;
    window::diff_code().mark(data_of(page), twin_of(page), page_bytes, map);
    const std::size_t bytes = write_change(release.room(), page, data_of(page), map);
    if (bytes == 0) return;
    block.written |= bit(i);
    release.add_change(*this, static_cast<int>(block.homes[i]), page, bytes);
  });
}

// They stay dirty until who has copies has been told, and longer if somebody has fetched one meanwhile: what has been
// written since may be in no copy. What has changed in them is not known, so copies cannot be updated.
void Array::collect_home(Block& block, std::uint64_t first, Mask pages, Release& release) {
  for_each_page(pages, [&](std::size_t i) {
    if (block.copies[i] == 0) {
      block.dirty &= ~bit(i);
    } else if (!has(block.opened, i) || !close_unwritten(block, first + i)) {
      block.written |= bit(i);
      release.add_own(*this, {first + i, block.copies[i], block.fetches[i], Said::copies}, 0);
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
      if (region.bytes != 0) break;  // it goes on in the next page
      ++r;
    }
    collect_named_page(page, map, release);
  }
}

void Array::collect_named_page(std::uint64_t page, const window::DifferenceMap& map, Release& release) {
  const std::size_t i = page % pages_a_block;
  {
    Block& block = this->block(page / pages_a_block);
    const std::lock_guard guard(block.lock);
    begin(block, page / pages_a_block);
    if (has(block.home, i)) {
      if (block.copies[i] == 0) return;
      const std::size_t bytes = updates_ ? write_change(release.room(), page, data_of(page), map) : 0;
      release.add_own(*this, {page, block.copies[i], block.fetches[i], Said::copies}, bytes);
    } else if (has(block.mapped, i)) {  // else it has not written there, whatever it says
      const std::size_t bytes = write_change(release.room(), page, data_of(page), map);
      release.add_change(*this, static_cast<int>(block.homes[i]), page, bytes);
    }
  }
  release.make_room();
}

void Array::drop_stale(Release& release) {
  if (!stale_.is_empty() && named_) collect_named(release);
  stale_.take([&](std::size_t index) {
    Block& block = this->block(index);
    {
      const std::lock_guard guard(block.lock);
      const Mask changed_by_others = std::exchange(block.stale, 0) & ~block.held;
      const Mask stale = changed_by_others & ~block.home;
      const std::uint64_t first = index * pages_a_block;
      block.late |= stale & block.coming;
      const Mask changed = named_ ? stale & block.mapped : stale & block.dirty;
      if (!named_) collect_pages(block, first, changed, release);
      const Mask kept = end_turns(block, changed_by_others & block.mapped, first);
      unmap(block, stale & block.mapped & ~kept, first);
      block.parked |= changed;
      if (changed != 0) release.add_parked(*this, first, changed);
    }
    release.make_room();
  });
}

void Array::unpark(std::uint64_t first, Mask pages) noexcept {
  Block& block = this->block(first / pages_a_block);
  const std::lock_guard guard(block.lock);
  block.parked &= ~pages;
  for_each_run(pages, [&](std::size_t i, std::size_t count) { wake(first + i, count); });
}

void Array::unmap(Block& block, Mask pages, std::uint64_t first) noexcept {
  for_each_run(pages, [&](std::size_t i, std::size_t count) {
    ::madvise(bytes().data() + (first + i) * page_bytes, count * page_bytes, MADV_DONTNEED);
  });
  block.mapped &= ~pages;
  block.writable &= ~pages;
}

// What this rank has written meanwhile is dirty, and will be told.
void Array::adopt(Entry& entry) noexcept {
  const std::size_t i = entry.page % pages_a_block;
  Block& block = this->block(entry.page / pages_a_block);
  const std::lock_guard guard(block.lock);
  block.home |= bit(i);
  block.homes[i] = static_cast<std::uint32_t>(shared_memory_.rank());
  block.copies[i] = entry.ranks;
  block.fresh[i] = 0;
  block.writer[i] = 0;
  block.streak[i] = 0;
  block.stale &= ~bit(i);
  entry.fetches = block.fetches[i];
  const bool alone = entry.ranks == 0 && has(block.mapped, i) && !has(block.writable, i);
  if (!alone) return;
  protect(bit(i), entry.page - i, Writes::go_on);
  block.writable |= bit(i);
}

}  // namespace tonari::share
