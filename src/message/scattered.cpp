#include "message/scattered.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace tonari::message {

namespace {

Extent measure_listed(const detail::Blocks& blocks) noexcept {
  Extent extent{.contiguous = true};
  const std::byte* end = nullptr;  // end of the contiguous blocks so far
  for (const Block& block : std::span(blocks.listed, blocks.count)) {
    if (block.offset > blocks.elements || block.elements > blocks.elements - block.offset) return {Status::bounds};
    if (block.elements == 0) continue;
    std::byte* const first = blocks.memory + block.offset * blocks.element_bytes;
    const std::size_t bytes = block.elements * blocks.element_bytes;
    if (extent.bytes == 0) extent.first = first;
    extent.contiguous = extent.contiguous && (extent.bytes == 0 || first == end);
    end = first + bytes;
    if (__builtin_add_overflow(extent.bytes, bytes, &extent.bytes)) return {Status::invalid};
  }
  return extent;
}

Extent measure_spaced(const detail::Blocks& blocks, bool written) noexcept {
  if (blocks.count == 0 || blocks.block_elements == 0) return {.contiguous = true};
  if (blocks.block_elements > blocks.elements) return {Status::bounds};
  const std::size_t furthest =
      blocks.elements - blocks.block_elements;  // last element at which the last block may begin
  const std::size_t gaps = blocks.count - 1;
  if (blocks.stride != 0 && gaps > furthest / blocks.stride) return {Status::bounds};
  if (written && gaps != 0 && blocks.stride < blocks.block_elements) return {Status::invalid};
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(blocks.count, blocks.block_elements * blocks.element_bytes, &bytes)) {
    return {Status::invalid};
  }
  return {Status::ok, bytes, gaps == 0 || blocks.stride == blocks.block_elements, blocks.memory};
}

// The two directions of copying between the blocks and contiguous memory.
struct Packing {
  using Pointer = std::byte*;
  static void copy(const std::byte* block, std::byte* packed, std::size_t bytes) noexcept {
    std::memcpy(packed, block, bytes);
  }
};
struct Unpacking {
  using Pointer = const std::byte*;
  static void copy(std::byte* block, const std::byte* packed, std::size_t bytes) noexcept {
    std::memcpy(block, packed, bytes);
  }
};

template <class Way, std::size_t bytes>
void move_each(std::byte* block, typename Way::Pointer packed, std::size_t stride, std::size_t count) noexcept {
  for (; count != 0; --count, block += stride, packed += bytes) Way::copy(block, packed, bytes);
}

// For lengths known at compile time a copy is a few loads and stores; for others it is a function call.
template <class Way>
void move_blocks(std::byte* block, typename Way::Pointer packed, std::size_t stride, std::size_t count,
                 std::size_t bytes) noexcept {
  switch (bytes) {
    case 4: return move_each<Way, 4>(block, packed, stride, count);
    case 8: return move_each<Way, 8>(block, packed, stride, count);
    case 16: return move_each<Way, 16>(block, packed, stride, count);
    case 32: return move_each<Way, 32>(block, packed, stride, count);
    case 64: return move_each<Way, 64>(block, packed, stride, count);
    default:
      for (; count != 0; --count, block += stride, packed += bytes) Way::copy(block, packed, bytes);
  }
}

}  // namespace

Extent measure(const detail::Blocks& blocks, bool written) noexcept {
  return blocks.listed != nullptr ? measure_listed(blocks) : measure_spaced(blocks, written);
}

// Copies the rest of a block, then whole blocks, then part of a block.
template <class Way>
void Scattered::move_spaced(std::size_t offset, typename Way::Pointer packed, std::size_t bytes) const noexcept {
  const std::size_t block_bytes = blocks_.block_elements * blocks_.element_bytes;
  const std::size_t stride = blocks_.stride * blocks_.element_bytes;
  std::byte* block = blocks_.memory + offset / block_bytes * stride;
  if (const std::size_t within = offset % block_bytes; within != 0) {
    const std::size_t part = std::min(bytes, block_bytes - within);
    Way::copy(block + within, packed, part);
    block += stride;
    packed += part;
    bytes -= part;
  }
  const std::size_t whole = bytes / block_bytes;
  move_blocks<Way>(block, packed, stride, whole, block_bytes);
  const std::size_t rest = bytes % block_bytes;
  if (rest != 0) Way::copy(block + whole * stride, packed + whole * block_bytes, rest);
}

template <class Way>
void Scattered::move_listed(std::size_t offset, typename Way::Pointer packed, std::size_t bytes) noexcept {
  if (offset < offset_) {
    offset_ = 0;
    block_ = blocks_.listed;
    within_ = 0;
  }
  while (bytes != 0) {
    const std::size_t block_bytes = block_->elements * blocks_.element_bytes;
    const std::size_t skipped = std::min(offset - offset_, block_bytes - within_);
    const std::size_t part = std::min(bytes, block_bytes - within_ - skipped);
    if (part != 0) {
      Way::copy(blocks_.memory + block_->offset * blocks_.element_bytes + within_ + skipped, packed, part);
      packed += part;
      offset += part;
      bytes -= part;
    }
    offset_ += skipped + part;
    within_ += skipped + part;
    if (within_ == block_bytes && bytes != 0) {
      ++block_;
      within_ = 0;
    }
  }
}

void Scattered::pack(std::size_t offset, std::byte* to, std::size_t bytes) noexcept {
  blocks_.listed != nullptr ? move_listed<Packing>(offset, to, bytes) : move_spaced<Packing>(offset, to, bytes);
}

void Scattered::unpack(std::size_t offset, const std::byte* from, std::size_t bytes) noexcept {
  blocks_.listed != nullptr ? move_listed<Unpacking>(offset, from, bytes) : move_spaced<Unpacking>(offset, from, bytes);
}

}  // namespace tonari::message
