#include "pager/own_space.hpp"

#include "base/error.hpp"

#include <sys/mman.h>

#include <array>

namespace tonari::pager {

namespace {

std::byte* align(std::byte* start) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  return start + ((block_bytes - address % block_bytes) % block_bytes);
}

void* pointer(Address address) noexcept { return reinterpret_cast<void*>(address); }

}  // namespace

OwnSpace::OwnSpace(std::size_t buffers, Userfaultfd::Options options)
    : Space(options),
      count_(buffers),
      memory_(Mapping::of_zeros((buffers + 1) * block_bytes, "the pager's buffers")),
      start_(align(memory_.bytes().data())),
      nursery_memory_(Mapping::of_zeros(2 * block_bytes, "the pager's huge pages")),
      nursery_(align(nursery_memory_.bytes().data())) {
  (void)::madvise(nursery_, block_bytes, MADV_HUGEPAGE);  // refused: then they are small, which is slower
  watch_.watch(reinterpret_cast<Address>(start_), buffers * block_bytes);
}

void OwnSpace::prepare(Address start, std::size_t bytes) {
  if (::madvise(pointer(start), bytes, MADV_DONTFORK) != 0) {
    throw_system_error("madvise(MADV_DONTFORK) of a region", "the range must be mapped, and begin at a page");
  }
}

void OwnSpace::drop(Address start, std::size_t bytes) noexcept {
  (void)::madvise(pointer(start), bytes, MADV_DONTNEED);  // refused: it is unmapped already
}

PageSet OwnSpace::take_out(Address block, const PageSet& pages, Buffer buffer) noexcept {
  constexpr int refusals_max = 16;  // a block of which that many pages are pinned is left as it is
  empty(buffer);
  PageSet refused;
  std::size_t last = 0;
  for_each_run(pages, block_pages, [&](std::size_t first, std::size_t count) { last = first + count; });

  int refusals = 0;
  for (std::size_t page = pages.next(0); page < last; ++page) {
    const auto [bytes, answer] = watch_.move(address_of(buffer) + page * page_bytes, block + page * page_bytes,
                                             (last - page) * page_bytes, Userfaultfd::Holes::allowed);
    page += bytes / page_bytes;
    if (answer == Answer::ok) break;
    const bool all_at_once = pages.is_whole() && page == 0;  // a huge page, which would be split to try each
    if (all_at_once || ++refusals == refusals_max) {
      refused |= PageSet::of(page, block_pages - page);
      break;
    }
    refused |= PageSet::of(page, 1);
  }
  // What is where is looked up, not counted: Linux 6.18 was seen to answer EEXIST for a page that had left the block,
  // when the program was just writing it for the first time (decision 13).
  const PageSet came = present(address_of(buffer));
  return came | fill_holes(block, buffer, pages - refused - came);
}

// Pages that should have come and did not. One that the program has given back to the kernel without a word is a hole,
// and is filled with zeros, as the program would find it. One that is still in the block stays there. Answers those
// that have come after all.
PageSet OwnSpace::fill_holes(Address block, Buffer buffer, const PageSet& missing) noexcept {
  if (missing.is_empty()) return {};
  const PageSet holes = missing - present(block);
  for_each_run(holes, block_pages, [&](std::size_t first, std::size_t count) {
    // One that is only swapped out is there, and stays as it is.
    (void)watch_.zero(address_of(buffer) + first * page_bytes, count * page_bytes);
  });
  return holes;
}

PageSet OwnSpace::present(Address block) noexcept {
  std::array<unsigned char, block_pages> there{};
  // Where a part is not mapped, all of it is asked for page by page: the first and the last block of a region.
  if (::mincore(pointer(block), block_bytes, there.data()) != 0) {
    for (std::size_t page = 0; page < block_pages; ++page) {
      if (::mincore(pointer(block + page * page_bytes), page_bytes, &there[page]) != 0) there[page] = 0;
    }
  }
  PageSet result;
  for (std::size_t page = 0; page < block_pages; ++page) {
    if ((there[page] & 1) != 0) result |= PageSet::of(page, 1);
  }
  return result;
}

PageSet OwnSpace::move_in(Address block, const PageSet& pages, Buffer buffer) noexcept {
  // A huge page stays one only where there is no table for small ones: with nothing there, this frees it.
  if (pages.is_whole()) drop(block, block_bytes);
  bool complete = true;
  for_each_run(pages, block_pages, [&](std::size_t first, std::size_t count) {
    const auto [bytes, answer] = faults().move(block + first * page_bytes, address_of(buffer) + first * page_bytes,
                                               count * page_bytes, Userfaultfd::Holes::refused);
    complete = complete && answer == Answer::ok;
  });
  return complete ? pages : pages & present(block);
}

bool OwnSpace::stock(Buffer buffer) noexcept {
  empty(buffer);
  const std::lock_guard guard(nursery_mutex_);
  if (::madvise(nursery_, block_bytes, MADV_POPULATE_WRITE) != 0) return false;
  const auto from = reinterpret_cast<Address>(nursery_);
  return watch_.move(address_of(buffer), from, block_bytes, Userfaultfd::Holes::refused).answer == Answer::ok;
}

void OwnSpace::empty(Buffer buffer) noexcept { drop(address_of(buffer), block_bytes); }

std::byte* OwnSpace::look(Buffer buffer, std::size_t place, std::size_t /*bytes*/) noexcept {
  return start_of(buffer) + place;
}

std::byte* OwnSpace::start_of(Buffer buffer) const noexcept {
  return start_ + static_cast<std::size_t>(buffer) * block_bytes;
}

Address OwnSpace::address_of(Buffer buffer) const noexcept { return reinterpret_cast<Address>(start_of(buffer)); }

}  // namespace tonari::pager
