#include <tonari/shared_heap.hpp>

#include "share/heap/heap.hpp"
#include "share/misuse.hpp"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>

namespace tonari {

namespace {

share::Heap& heap_of(const std::unique_ptr<share::Heap>& heap) { return share::used(heap, "a shared_heap"); }

}  // namespace

shared_heap::shared_heap(Job& job, std::uint64_t bytes, const HeapOptions& options)
    : heap_(std::make_unique<share::Heap>(job, bytes, options)) {}
shared_heap::shared_heap(shared_heap&&) noexcept = default;
shared_heap::~shared_heap() = default;

void* shared_heap::try_allocate(std::size_t bytes, std::size_t alignment) noexcept {
  return heap_of(heap_).allocate(bytes, alignment);
}

void* shared_heap::allocate(std::size_t bytes, std::size_t alignment) {
  share::Heap& heap = heap_of(heap_);
  if (void* const block = heap.allocate(bytes, alignment)) [[likely]]
    return block;
  if (!share::Heap::has_alignment(alignment)) {
    throw std::invalid_argument(
        fmt::format("{} bytes of a shared heap were asked for with alignment {}: it must be a "
                    "power of two, {} at most",
                    bytes, alignment, alignment_max));
  }
  throw HeapFull(heap.what_is_full(bytes, alignment));
}

void shared_heap::deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
  heap_of(heap_).free(static_cast<std::byte*>(block), bytes, alignment);
}

std::span<std::byte> shared_heap::bytes() const noexcept { return heap_of(heap_).bytes(); }

}  // namespace tonari
