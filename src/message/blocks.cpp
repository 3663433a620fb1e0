#include "message/blocks.hpp"

#include <cstdint>
#include <limits>
#include <span>

namespace tonari::message {

namespace {

constexpr auto bytes_max = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());

CheckedBlocks check_listed(const detail::Blocks& blocks) noexcept {
  const std::span list(blocks.listed, blocks.count);
  std::size_t bytes = 0;
  bool contiguous = true;
  std::byte* first = nullptr;
  const std::byte* end = nullptr;  // end of the contiguous blocks so far
  for (const Block& block : list) {
    if (block.offset > blocks.elements || block.elements > blocks.elements - block.offset)
      return CheckedBlocks(Status::bounds);
    if (block.elements == 0) continue;
    std::byte* const begin = blocks.memory + block.offset * blocks.element_bytes;
    const std::size_t block_bytes = block.elements * blocks.element_bytes;
    if (bytes == 0) first = begin;
    contiguous = contiguous && (bytes == 0 || begin == end);
    end = begin + block_bytes;
    if (__builtin_add_overflow(bytes, block_bytes, &bytes) || bytes > bytes_max) return CheckedBlocks(Status::invalid);
  }
  if (contiguous) return CheckedBlocks(first, std::size_t{1}, bytes, std::ptrdiff_t{0});
  return CheckedBlocks(blocks.memory, list, blocks.element_bytes, bytes);
}

CheckedBlocks check_spaced(const detail::Blocks& blocks, bool written) noexcept {
  if (blocks.count == 0 || blocks.block_elements == 0) return CheckedBlocks(Status::ok);
  if (blocks.block_elements > blocks.elements) return CheckedBlocks(Status::bounds);
  // The last element at which the last block may begin.
  const std::size_t furthest = blocks.elements - blocks.block_elements;
  const std::size_t gaps = blocks.count - 1;
  if (blocks.stride != 0 && gaps > furthest / blocks.stride) return CheckedBlocks(Status::bounds);
  if (written && gaps != 0 && blocks.stride < blocks.block_elements) return CheckedBlocks(Status::invalid);
  const std::size_t block_bytes = blocks.block_elements * blocks.element_bytes;
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(blocks.count, block_bytes, &bytes) || bytes > bytes_max)
    return CheckedBlocks(Status::invalid);
  // A stride that leaves the memory belongs to a single block, and is not used.
  const auto stride = static_cast<std::ptrdiff_t>(blocks.stride * blocks.element_bytes);
  return CheckedBlocks(blocks.memory, blocks.count, block_bytes, stride);
}

}  // namespace

CheckedBlocks check(const detail::Blocks& blocks, bool written) noexcept {
  return blocks.listed != nullptr ? check_listed(blocks) : check_spaced(blocks, written);
}

}  // namespace tonari::message
