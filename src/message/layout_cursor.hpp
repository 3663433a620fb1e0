#pragma once

#include "message/layout.hpp"
#include "message/layout_walk.hpp"

#include <tonari/layout.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace tonari::message {

/// `count` elements of a layout, `extent` bytes apart, from `origin` on: a sequence of data bytes, of which any part
/// can be packed and unpacked.
///
/// Owns:    a share of the layout's compiled form, so the Layout itself may go. Not the memory: it stays the caller's.
///          The origin may be null if offsets are addresses. A send only reads the memory.
/// Threads: one at a time.
/// Costs:   no allocation. A call that does not continue the last one seeks: a division or a binary search per level of
///          the layout. Only the blocks of an Indexed are searched from where the last call ended, or from the first.
class LayoutCursor {
 public:
  /// Throws std::length_error if there are 2^63 data bytes or more.
  LayoutCursor(std::byte* origin, const Layout& layout, std::size_t count, std::ptrdiff_t extent);
  /// A plain buffer.
  explicit LayoutCursor(std::span<std::byte> buffer) noexcept
      : origin_(address(buffer.data())), bytes_(buffer.size()), node_(LayoutNode::run(buffer.size())) {}
  /// `count` blocks of `block_bytes`, `stride` bytes apart. All of them together have fewer than 2^63 bytes.
  LayoutCursor(std::byte* origin, std::size_t count, std::size_t block_bytes, std::ptrdiff_t stride) noexcept
      : origin_(address(origin)), bytes_(count * block_bytes), runs_(count), node_(LayoutNode::run(block_bytes)) {
    if (bytes_ != 0) (void)node_.repeat(count, stride);
  }
  /// The blocks of an Indexed, which have `bytes` data bytes altogether. The list stays the caller's, and must live as
  /// long as the cursor.
  LayoutCursor(std::byte* origin, std::span<const Block> blocks, std::size_t element_bytes, std::size_t bytes) noexcept;

  // Operations keep cursors, so each thread keeps memory of destroyed ones for reuse.
  static void* operator new(std::size_t bytes);
  static void operator delete(void* memory) noexcept;

  /// Returns the number of data bytes.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Returns a number that the runs do not exceed. For a layout with few parts that touch, it is about their number.
  [[nodiscard]] std::size_t runs() const noexcept { return runs_; }
  /// Returns all data if they are one run, in ascending order.
  [[nodiscard]] std::optional<std::span<std::byte>> dense() const noexcept;

  /// Copy data bytes [offset, offset + bytes), which must exist, out of the layout or into it. Bytes that are no data
  /// are not touched.
  void pack(std::size_t offset, std::byte* to, std::size_t bytes) noexcept;
  void unpack(std::size_t offset, const std::byte* from, std::size_t bytes) noexcept;

  /// Calls `visit(std::byte* first, std::size_t bytes)` for the runs of these data bytes, in order. Runs that touch are
  /// visited as one.
  template <class Visit>
  void for_each_run(std::size_t offset, std::size_t bytes, Visit&& visit);

 private:
  using Kind = LayoutNode::Kind;
  using Address = std::uintptr_t;
  static Address address(const std::byte* memory) noexcept { return reinterpret_cast<Address>(memory); }

  template <class Sink>
  void walk(std::size_t offset, std::size_t bytes, Sink& sink);
  template <class Sink>
  void walk_blocks(std::size_t offset, std::size_t bytes, Sink& sink);
  template <class Way>
  void move(std::size_t offset, typename Way::Pointer packed, std::size_t bytes) noexcept;

  Address origin_ = 0;  // of node_
  std::size_t bytes_ = 0;
  std::size_t runs_ = 1;
  LayoutNode node_;  // if there are data: node_ alone, or several times, extent_ apart
  std::ptrdiff_t extent_ = 0;
  std::shared_ptr<const LayoutStorage> storage_;

  // Only of the blocks of an Indexed, whose elements have node_.unit bytes: the list, and where the last call ended.
  struct Listed {
    const Block* first = nullptr;  // null: the data are in node_
    const Block* block = nullptr;
    std::size_t offset = 0;
    std::size_t within = 0;  // bytes of *block before offset
  } listed_;
};

/// Copies data bytes between two layouts: as many as the shorter one has. The layouts must not overlap.
void copy(LayoutCursor& into, LayoutCursor& from) noexcept;

/// Hands runs on one by one, and joins runs that touch.
template <class Visit>
class RunSink {
 public:
  using Address = std::uintptr_t;
  explicit RunSink(Visit& visit) noexcept : visit_(visit) {}
  void run(Address first, std::size_t bytes) {
    if (bytes_ != 0 && first_ + bytes_ == first) {
      bytes_ += bytes;
      return;
    }
    finish();
    first_ = first;
    bytes_ = bytes;
  }
  void strided(Address first, std::ptrdiff_t stride, std::size_t count, std::size_t bytes) {
    for (; count != 0; --count, first += static_cast<Address>(stride)) run(first, bytes);
  }
  void spread(Address origin, const std::ptrdiff_t* offsets, std::size_t count, std::size_t bytes) {
    for (std::size_t i = 0; i < count; ++i) run(origin + static_cast<Address>(offsets[i]), bytes);
  }
  void lists(Address origin, std::ptrdiff_t stride, std::size_t count, const LayoutNode& node) {
    for (; count != 0; --count, origin += static_cast<Address>(stride)) {
      const LayoutNode::Run* const runs = node.runs();
      for (std::size_t i = 0; i < node.count; ++i) {
        run(origin + static_cast<Address>(runs[i].offset), runs[i + 1].before - runs[i].before);
      }
    }
  }
  void finish() {
    if (bytes_ != 0) visit_(reinterpret_cast<std::byte*>(first_), bytes_);
  }

 private:
  Visit& visit_;
  Address first_ = 0;
  std::size_t bytes_ = 0;
};

template <class Sink>
void LayoutCursor::walk(std::size_t offset, std::size_t bytes, Sink& sink) {
  if (bytes == 0) return;
  if (listed_.first != nullptr) [[unlikely]]
    return walk_blocks(offset, bytes, sink);
  LayoutWalk<Sink> walk(sink);
  if (bytes_ == node_.bytes) return walk.part(node_, origin_, offset, offset + bytes);
  walk.repeated(node_, origin_, extent_, offset, offset + bytes);
}

template <class Sink>
void LayoutCursor::walk_blocks(std::size_t offset, std::size_t bytes, Sink& sink) {
  if (offset < listed_.offset) {
    listed_.block = listed_.first;
    listed_.offset = 0;
    listed_.within = 0;
  }
  std::size_t skipped = offset - listed_.offset;
  listed_.offset = offset + bytes;
  for (;; ++listed_.block, listed_.within = 0) {
    const std::size_t left = listed_.block->elements * node_.unit - listed_.within;
    if (left <= skipped) {
      skipped -= left;
      continue;
    }
    const std::size_t part = std::min(bytes, left - skipped);
    listed_.within += skipped;
    sink.run(origin_ + listed_.block->offset * node_.unit + listed_.within, part);
    listed_.within += part;
    bytes -= part;
    if (bytes == 0) return;
    skipped = 0;
  }
}

template <class Visit>
void LayoutCursor::for_each_run(std::size_t offset, std::size_t bytes, Visit&& visit) {
  RunSink<Visit> sink(visit);
  walk(offset, bytes, sink);
  sink.finish();
}

}  // namespace tonari::message
