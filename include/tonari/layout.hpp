#pragma once

#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <type_traits>

// Data in several places of memory that travels as one message: a column of a matrix, selected elements of an
// array.
//
// A layout says where elements are and in which order they are sent; it owns nothing. Only the bytes count on the way:
// data sent from one layout is received into any other layout, or into a plain buffer, as if both were buffers of the
// same length.
//
// Memory:   `memory`, and the list of an Indexed, stay the caller's until the call returns or its request is complete.
//           Meanwhile the caller must not touch them (for a send: not change them).
// Speed:    a layout without gaps travels as a plain buffer does. A layout with gaps is read and written by the thread
//           that starts the operation or waits for it, with ordinary instructions: an address that is not mapped can
//           end the process there, where a plain buffer returns Status::bad_address.
// Receives: write as many elements as arrived, in order, up to a part of the last one if the message ends there. Bytes
//           between the blocks are never written.
// Errors:   in these cases nothing was started:
//             bounds     a block leaves `memory`, also by numbers that overflow.
//             invalid    the blocks of a Strided to be received into overlap; 2^64 bytes or more.
//             no_memory  the system refused memory.
//           The blocks of an Indexed are written in order: where they overlap, the later one stays.
namespace tonari {

/// Blocks of the same length at the same distance (MPI_Type_vector). All numbers count elements. Column 3 of a
/// row-major matrix is Strided{std::span(matrix).subspan(3), rows, 1, columns}.
template <class T>
struct Strided {
  std::span<T> memory;         ///< Holds all blocks; the first one starts at its beginning.
  std::size_t blocks;          ///< Number of blocks.
  std::size_t block_elements;  ///< Length of a block.
  std::size_t stride;          ///< Distance from the start of a block to the start of the next.
};
template <std::ranges::contiguous_range Range>
requires std::ranges::borrowed_range<Range> Strided(Range&&, std::size_t, std::size_t, std::size_t)
->Strided<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

/// Neighbouring elements.
struct Block {
  std::size_t offset;    ///< Index of the first element.
  std::size_t elements;  ///< Number of elements.
};

/// Blocks anywhere (MPI_Type_indexed), in the order of their list.
template <class T>
struct Indexed {
  std::span<T> memory;
  std::span<const Block> blocks;
};
template <std::ranges::contiguous_range Range, std::ranges::contiguous_range Blocks>
requires(std::ranges::borrowed_range<Range>&& std::ranges::borrowed_range<Blocks>) Indexed(Range&&, Blocks&&)
->Indexed<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

namespace detail {

template <class T>
inline constexpr bool is_layout = false;
template <class T>
inline constexpr bool is_layout<Strided<T>> = true;
template <class T>
inline constexpr bool is_layout<Indexed<T>> = true;

template <class T>
using LayoutElement = typename decltype(std::remove_cvref_t<T>::memory)::element_type;

/// A layout of any element type. Numbers count elements.
struct Blocks {
  std::byte* memory;  // a send only reads it
  std::size_t elements;
  std::size_t element_bytes;
  std::size_t count;           // number of blocks
  std::size_t block_elements;  // length and distance of evenly spaced blocks
  std::size_t stride;
  const Block* listed;  // null: evenly spaced
};

template <class T>
std::byte* memory_of(std::span<T> memory) noexcept {
  return reinterpret_cast<std::byte*>(const_cast<std::remove_const_t<T>*>(memory.data()));
}
template <class T>
Blocks blocks_of(const Strided<T>& layout) noexcept {
  return {memory_of(layout.memory), layout.memory.size(), sizeof(T), layout.blocks,
          layout.block_elements,    layout.stride,        nullptr};
}
template <class T>
Blocks blocks_of(const Indexed<T>& layout) noexcept {
  // An empty list may have no address; then it counts as evenly spaced.
  return {memory_of(layout.memory), layout.memory.size(), sizeof(T), layout.blocks.size(), 0, 0, layout.blocks.data()};
}
inline Blocks blocks_of(std::span<std::byte> bytes) noexcept {
  return {bytes.data(), bytes.size(), 1, 1, bytes.size(), bytes.size(), nullptr};
}

}  // namespace detail

}  // namespace tonari
