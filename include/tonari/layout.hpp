#pragma once

#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <type_traits>

// Data that lie in several places and travel as one message: a column of a matrix, chosen elements of an array.
//
// A layout says where elements are, in which order they are sent, and owns nothing. Only the bytes count on the way:
// what is sent from one layout is received into any other, or into a buffer, as if both were buffers of the same
// length.
//
// Memory: `memory` and the list of an Indexed stay the caller's; neither may be touched (for a send: changed) until the
//         call returns or its request is complete. A layout without gaps travels as a buffer does. One with gaps is
//         read and written by the thread that started it or waits for it, with ordinary instructions: memory that may
//         not be touched ends the process, where a buffer's answers Status::bad_address.
// Copies: of a receive, as many elements are written as arrived, in order, up to a part of one if that is where the
//         message ends; what lies between the blocks never. When posted means what it does for buffers.
// Errors: Status::bounds when a block leaves `memory`, also by numbers that overflow; Status::invalid for a Strided to
//         be received into whose blocks overlap, and for 2^64 bytes and more. Blocks of an Indexed are written in
//         order, so where they overlap the later one stays. Then, and at Status::no_memory, nothing was started.
namespace tonari {

/// Blocks of the same length at the same distance (MPI_Type_vector). Column 3 of a row-major matrix is
/// Strided{std::span(matrix).subspan(3), rows, 1, columns}.
template <class T>
struct Strided {
  std::span<T> memory;         ///< The first block begins with it, and all lie in it.
  std::size_t blocks;          ///< How many.
  std::size_t block_elements;  ///< How long each is.
  std::size_t stride;          ///< Elements from the start of a block to the start of the next.
};
template <std::ranges::contiguous_range Range>
Strided(Range&&, std::size_t, std::size_t, std::size_t)
    -> Strided<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

/// Some elements that lie side by side.
struct Block {
  std::size_t offset;    ///< Of the first, in elements.
  std::size_t elements;  ///< How many.
};

/// Blocks anywhere (MPI_Type_indexed), in the order of their list.
template <class T>
struct Indexed {
  std::span<T> memory;
  std::span<const Block> blocks;
};
template <std::ranges::contiguous_range Range, class Blocks>
Indexed(Range&&, Blocks&&) -> Indexed<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

namespace message {

template <class T>
inline constexpr bool is_layout = false;
template <class T>
inline constexpr bool is_layout<Strided<T>> = true;
template <class T>
inline constexpr bool is_layout<Indexed<T>> = true;

template <class T>
using LayoutElement = typename decltype(std::remove_cvref_t<T>::memory)::element_type;

/// A layout of any element type. Counts are in elements.
struct Blocks {
  std::byte* memory;  // of a send only read
  std::size_t elements;
  std::size_t element_bytes;
  std::size_t count;           // of blocks
  std::size_t block_elements;  // of each, and their distance, unless they are listed
  std::size_t stride;
  const Block* listed;
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
  // A list of none may have no address; then it counts as evenly spaced.
  return {memory_of(layout.memory), layout.memory.size(), sizeof(T), layout.blocks.size(), 0, 0, layout.blocks.data()};
}
inline Blocks blocks_of(std::span<std::byte> bytes) noexcept {
  return {bytes.data(), bytes.size(), 1, 1, bytes.size(), bytes.size(), nullptr};
}

}  // namespace message

/// A Strided or an Indexed.
template <class T>
concept Layout = message::is_layout<std::remove_cvref_t<T>>;

}  // namespace tonari
