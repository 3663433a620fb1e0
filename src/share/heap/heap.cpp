#include "share/heap/heap.hpp"

#include "job/memory.hpp"
#include "share/array/page_block.hpp"
#include "share/heap/freed_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <new>
#include <utility>

namespace tonari::share {

namespace {

constexpr std::uint64_t chunk_pages_max = 16;
constexpr std::uint64_t chunks_a_part_min = 64;  // in a small heap, size classes take smaller chunks

static_assert(shared_heap::alignment_max == page_bytes);

bool is_small(std::size_t bytes) noexcept { return bytes <= small_bytes_max; }

std::uint64_t pages_of(std::size_t bytes) noexcept { return bytes / page_bytes + (bytes % page_bytes != 0 ? 1 : 0); }

/// Returns the size of the block for a request of `bytes`.
std::size_t block_bytes_of(std::size_t bytes, std::size_t alignment) noexcept {
  return is_small(bytes) ? bytes_of_class(class_of(bytes, alignment)) : pages_of(bytes) * page_bytes;
}

}  // namespace

Heap::Heap(Job& job, std::uint64_t bytes, const HeapOptions& options)
    : pages_(job, bytes, options.homes_move),
      pages_a_chunk_(std::clamp<std::uint64_t>(pages_.pages_a_part() / chunks_a_part_min, 1, chunk_pages_max)) {}

bool Heap::has_alignment(std::size_t alignment) noexcept {
  return std::has_single_bit(alignment) && alignment <= page_bytes;
}

void* Heap::allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (!has_alignment(alignment)) return nullptr;
  bytes = std::max<std::size_t>(bytes, 1);
  std::byte* const block = is_small(bytes) ? take_small(class_of(bytes, alignment)) : take_pages(pages_of(bytes));
  if (block != nullptr) mark_fresh(block, block_bytes_of(bytes, alignment));
  return block;
}

std::byte* Heap::take_small(std::size_t size_class) noexcept {
  Shelf& shelf = shelves_[size_class];
  const std::size_t bytes = bytes_of_class(size_class);
  const std::lock_guard guard(shelf.mutex);
  if (!shelf.freed.empty()) {
    std::byte* const block = shelf.freed.back();
    shelf.freed.pop_back();
    check_freed(pages_.rank(), block, bytes);
    return block;
  }
  if (static_cast<std::size_t>(shelf.fresh_end - shelf.fresh) < bytes && !refill(shelf, bytes)) return nullptr;
  return std::exchange(shelf.fresh, shelf.fresh + bytes);
}

// Takes a chunk or, if there is none left, just the pages that one block needs.
bool Heap::refill(Shelf& shelf, std::size_t block_bytes) noexcept {
  const std::uint64_t pages_min = pages_of(block_bytes);
  for (const std::uint64_t pages : {std::max(pages_a_chunk_, pages_min), pages_min}) {
    std::byte* const chunk = take_pages(pages);
    if (chunk == nullptr) continue;
    shelf.fresh = chunk;
    shelf.fresh_end = chunk + pages * page_bytes;
    if (has_assertions) {
      const std::lock_guard guard(chunks_mutex_);
      chunks_[chunk] = {shelf.fresh_end, block_bytes};
    }
    return true;
  }
  return false;
}

std::byte* Heap::take_pages(std::uint64_t pages) noexcept {
  {
    const std::lock_guard guard(runs_mutex_);
    if (std::byte* const freed = runs_.take(pages)) {
      check_freed(pages_.rank(), freed, pages * page_bytes);
      return freed;
    }
  }
  return pages_.take(pages);
}

void Heap::free(std::byte* block, std::size_t bytes, std::size_t alignment) noexcept {
  if (block == nullptr) return;
  bytes = std::max<std::size_t>(bytes, 1);
  if (!has_alignment(alignment)) {
    return name_misuse(pages_.rank(),
                       "{} bytes of a shared heap, at {}, are freed with alignment {}, which no block has", bytes,
                       static_cast<void*>(block), alignment);
  }
  if (!contains(block, bytes)) {
    return name_misuse(pages_.rank(), "{} bytes at {} are freed that are not of this shared heap", bytes,
                       static_cast<void*>(block));
  }
  if (has_assertions) check_block(block, bytes, alignment);
  mark_freed(pages_.rank(), block, block_bytes_of(bytes, alignment));
  try {
    keep(block, bytes, alignment);
  } catch (const std::bad_alloc&) {  // no memory to store it: the heap loses the block
  }
}

// Ends the program if it can tell that no block of this size begins there. A block is aligned to the largest power of
// two that divides its size. In a chunk that this rank has taken, all blocks have one size.
void Heap::check_block(const std::byte* block, std::size_t bytes, std::size_t alignment) {
  const std::size_t block_bytes = block_bytes_of(bytes, alignment);
  const std::size_t step =
      std::min<std::size_t>(block_bytes & (~block_bytes + 1), page_bytes);  // the largest power of two that divides it
  if (reinterpret_cast<std::uintptr_t>(block) % step != 0) {
    name_misuse(pages_.rank(), "{} bytes of a shared heap, at {}, are freed, and no block of that size begins there",
                bytes, static_cast<const void*>(block));
  }
  const std::lock_guard guard(chunks_mutex_);
  const auto behind = chunks_.upper_bound(block);
  if (behind == chunks_.begin()) return;
  const auto& [start, chunk] = *std::prev(behind);
  if (block >= chunk.end) return;
  if (block_bytes != chunk.block_bytes) {
    name_misuse(pages_.rank(),
                "{} bytes of a shared heap, at {}, are freed where blocks have {}: give size and "
                "alignment as they were asked for",
                bytes, static_cast<const void*>(block), chunk.block_bytes);
  }
  if (static_cast<std::size_t>(block - start) % block_bytes != 0) {
    name_misuse(pages_.rank(), "{} bytes of a shared heap, at {}, are freed in the middle of a block", bytes,
                static_cast<const void*>(block));
  }
}

bool Heap::contains(const std::byte* block, std::size_t bytes) const noexcept {
  const std::byte* const first = this->bytes().data();
  const std::byte* const end = first + this->bytes().size();
  return block >= first && block < end && bytes <= static_cast<std::size_t>(end - block);
}

void Heap::keep(std::byte* block, std::size_t bytes, std::size_t alignment) {
  if (is_small(bytes)) {
    Shelf& shelf = shelves_[class_of(bytes, alignment)];
    const std::lock_guard guard(shelf.mutex);
    shelf.freed.push_back(block);
  } else {
    const std::lock_guard guard(runs_mutex_);
    runs_.add(block, pages_of(bytes));
  }
}

std::string Heap::what_is_full(std::size_t bytes, std::size_t alignment) {
  const std::uint64_t left = this->bytes().size() - pages_.pages_taken() * page_bytes;
  return fmt::format(
      "rank {} has no free block of {} aligned to {} in a shared heap of {}, of which {} were never used; no block can "
      "be "
      "larger than {}, a rank's part: make the heap larger",
      pages_.rank(), job::memory_text(bytes), alignment, job::memory_text(this->bytes().size()), job::memory_text(left),
      job::memory_text(pages_.pages_a_part() * page_bytes));
}

}  // namespace tonari::share
