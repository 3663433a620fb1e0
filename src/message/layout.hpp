#pragma once

#include "message/layout_node.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace tonari::message {

/// The data bytes of one element of a datatype, in the order in which they are sent, and where they are relative to
/// the element's origin. Offsets may be negative. Bytes may be named twice in data that are only sent.
///
/// Owns:    its compiled form, which copies of a layout and its cursors share. Copying costs a reference count, or
///          nothing for runs and evenly spaced runs.
/// Threads: immutable, so any.
/// Errors:  makers throw std::bad_alloc, and std::length_error if the data, an offset or the distance between the
/// bounds
///          reach 2^63 bytes.
class Layout {
 public:
  /// `count` elements that follow each other from `offset` bytes behind the origin on.
  struct Piece {
    std::ptrdiff_t offset;
    std::size_t count;
  };
  /// The same with a layout of its own, whose elements are `extent` bytes apart.
  struct Member {
    std::ptrdiff_t offset;
    std::size_t count;
    const Layout* layout;  ///< Needed during the call only.
    std::ptrdiff_t extent;
  };

  /// No data.
  Layout() noexcept = default;
  /// `size` contiguous bytes from the origin on: a basic type.
  static Layout bytes(std::size_t size);
  /// `count` elements, `extent` bytes apart (MPI_Type_contiguous).
  static Layout contiguous(std::size_t count, const Layout& element, std::ptrdiff_t extent);
  /// `count` blocks of `block_count` elements. Blocks are `stride` bytes apart, elements of a block `extent` bytes
  /// (MPI_Type_vector, MPI_Type_create_hvector).
  static Layout strided(std::size_t count, std::size_t block_count, std::ptrdiff_t stride, const Layout& element,
                        std::ptrdiff_t extent);
  /// Blocks of `block_count` elements, in the order of their offsets (MPI_Type_create_indexed_block).
  static Layout blocks(std::vector<std::ptrdiff_t> offsets, std::size_t block_count, const Layout& element,
                       std::ptrdiff_t extent);
  /// Pieces in the order of their list (MPI_Type_indexed, _create_hindexed).
  static Layout listed(std::span<const Piece> pieces, const Layout& element, std::ptrdiff_t extent);
  /// Members in the order of their list (MPI_Type_create_struct).
  static Layout joined(std::span<const Member> members);

  /// Returns the number of data bytes.
  [[nodiscard]] std::size_t size() const noexcept { return node_.bytes; }
  /// Return the place of the first byte, and one past the last byte, relative to the origin; 0 if there are no data.
  [[nodiscard]] std::ptrdiff_t true_lower() const noexcept { return lower_; }
  [[nodiscard]] std::ptrdiff_t true_upper() const noexcept { return upper_; }
  /// True if the data are size() contiguous bytes in ascending order, from true_lower() on.
  [[nodiscard]] bool is_dense() const noexcept { return node_.kind == LayoutNode::Kind::run; }
  /// Returns the number of contiguous runs. Runs that touch are counted once, except where the end of a loop's or
  /// list's part touches the beginning of the next part. At most size().
  [[nodiscard]] std::size_t runs() const noexcept { return runs_; }

  /// Returns how deep loops and lists are nested; at most depth_max, whatever the makers' calls.
  [[nodiscard]] unsigned depth() const noexcept { return depth_; }
  static constexpr unsigned depth_max = 16 + 2 * 63;

 private:
  friend class LayoutBuilder;
  friend class LayoutCursor;

  LayoutNode node_;
  std::ptrdiff_t first_ = 0;  // offset of the first byte in the order of sending: the node's origin
  std::ptrdiff_t lower_ = 0;
  std::ptrdiff_t upper_ = 0;
  std::size_t runs_ = 0;
  unsigned depth_ = 1;                            // of nested nodes
  std::shared_ptr<const LayoutStorage> storage_;  // null: the node has no entries
};

}  // namespace tonari::message
