#pragma once

#include "random.hpp"

#include "message/layout_cursor.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

// Random layouts, each with its model: the list of its bytes.
namespace tonari::test {

/// Offsets of bytes, in the order of sending.
using Bytes = std::vector<std::ptrdiff_t>;

struct ModelledLayout {
  message::Layout layout;
  Bytes bytes;

  [[nodiscard]] std::ptrdiff_t lower() const { return bytes.empty() ? 0 : *std::ranges::min_element(bytes); }
  [[nodiscard]] std::ptrdiff_t upper() const { return bytes.empty() ? 0 : *std::ranges::max_element(bytes) + 1; }
};

/// The bytes of `count` elements, `extent` apart.
inline Bytes repeated(const Bytes& element, std::size_t count, std::ptrdiff_t extent, std::ptrdiff_t offset = 0) {
  Bytes all;
  all.reserve(element.size() * count);
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::ptrdiff_t byte : element) all.push_back(offset + byte + static_cast<std::ptrdiff_t>(i) * extent);
  }
  return all;
}

inline void append(Bytes& all, const Bytes& more) { all.insert(all.end(), more.begin(), more.end()); }

/// Makes random layouts by all makers, of at most about `bytes_max` bytes.
class LayoutMaker {
 public:
  LayoutMaker(Random& random, std::size_t bytes_max) : random_(random), bytes_max_(bytes_max) {}

  /// `levels`: of nested makers, at most. If not `overlaps`, no byte is named twice.
  ModelledLayout make(unsigned levels, bool overlaps) {
    for (;;) {
      ModelledLayout made = make_any(levels);
      if (made.bytes.size() > bytes_max_) continue;
      if (overlaps || !has_twins(made.bytes)) return made;
    }
  }
  /// A distance at which elements do not overlap: they touch, have gaps, or are in descending order.
  std::ptrdiff_t distance(const ModelledLayout& element) {
    const std::ptrdiff_t width = element.upper() - element.lower();
    const std::ptrdiff_t apart = width + (chance(random_, 50) ? 0 : number(1, 40));
    return chance(random_, 15) ? -apart : apart;
  }

 private:
  static bool has_twins(Bytes bytes) {
    std::ranges::sort(bytes);
    return std::ranges::adjacent_find(bytes) != bytes.end();
  }
  std::ptrdiff_t number(std::ptrdiff_t first, std::ptrdiff_t last) {
    return std::uniform_int_distribution<std::ptrdiff_t>(first, last)(random_);
  }
  std::size_t count(std::size_t most) { return chance(random_, 5) ? 0 : between(random_, 1, most); }
  std::ptrdiff_t any_distance(const ModelledLayout& element) {
    return chance(random_, 15) ? number(-50, 50) : distance(element);
  }

  ModelledLayout leaf() {
    constexpr std::size_t usual[] = {1, 2, 3, 4, 5, 8, 12, 16, 24, 31, 32, 33, 64, 100};
    const std::size_t size = chance(random_, 3) ? 0 : usual[between(random_, 0, std::size(usual) - 1)];
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::ptrdiff_t>(i);
    return {message::Layout::bytes(size), bytes};
  }

  ModelledLayout make_any(unsigned levels) {
    if (levels == 0) return leaf();
    switch (between(random_, 0, 4)) {
      case 0: return leaf();
      case 1: return contiguous(levels);
      case 2: return strided(levels);
      case 3: return listed(levels);
      default: return joined(levels);
    }
  }

  ModelledLayout contiguous(unsigned levels) {
    const ModelledLayout element = make_any(levels - 1);
    const std::size_t times = fitting(count(6), element);
    const std::ptrdiff_t extent = any_distance(element);
    return {message::Layout::contiguous(times, element.layout, extent), repeated(element.bytes, times, extent)};
  }

  ModelledLayout strided(unsigned levels) {
    const ModelledLayout element = make_any(levels - 1);
    const std::size_t in_block = fitting(count(4), element);
    const std::ptrdiff_t extent = any_distance(element);
    const ModelledLayout block{message::Layout(), repeated(element.bytes, in_block, extent)};
    const std::size_t blocks = fitting(count(8), block);
    const std::ptrdiff_t stride = any_distance(block);
    return {message::Layout::strided(blocks, in_block, stride, element.layout, extent),
            repeated(block.bytes, blocks, stride)};
  }

  ModelledLayout listed(unsigned levels) {
    const ModelledLayout element = make_any(levels - 1);
    const std::ptrdiff_t extent = any_distance(element);
    const std::size_t same = chance(random_, 40) ? count(3) : 0;  // length of all pieces, unless 0
    const std::ptrdiff_t gap = chance(random_, 30) ? number(0, 20) : -1;
    std::vector<message::Layout::Piece> pieces;
    Bytes bytes;
    std::ptrdiff_t at = number(-100, 100);
    for (std::size_t left = count(25); left != 0 && bytes.size() <= bytes_max_; --left) {
      const std::size_t length = fitting(same != 0 ? same : count(4), element);
      const Bytes piece = repeated(element.bytes, length, extent);
      const ModelledLayout bounds{message::Layout(), piece};
      const std::ptrdiff_t offset = at - bounds.lower();
      pieces.push_back({offset, length});
      append(bytes, repeated(piece, 1, 0, offset));
      at += bounds.upper() - bounds.lower() + (gap >= 0 ? gap : chance(random_, 40) ? 0 : number(0, 30));
      if (chance(random_, 3)) at = number(-500, 500);
    }
    if (same == 0 || chance(random_, 50)) return {message::Layout::listed(pieces, element.layout, extent), bytes};
    std::vector<std::ptrdiff_t> offsets;
    for (const message::Layout::Piece& piece : pieces) offsets.push_back(piece.offset);
    return {message::Layout::blocks(offsets, fitting(same, element), element.layout, extent), bytes};
  }

  ModelledLayout joined(unsigned levels) {
    std::vector<ModelledLayout> parts;
    std::vector<message::Layout::Member> members;
    Bytes bytes;
    const std::size_t all = count(5);
    parts.reserve(all);
    std::ptrdiff_t at = number(-100, 100);
    for (std::size_t i = 0; i < all && bytes.size() <= bytes_max_; ++i) {
      parts.push_back(i > 0 && chance(random_, 25) ? parts.back() : make_any(levels - 1));
      const ModelledLayout& part = parts.back();
      const std::size_t times = fitting(count(4), part);
      const std::ptrdiff_t extent = any_distance(part);
      const ModelledLayout member{message::Layout(), repeated(part.bytes, times, extent)};
      const std::ptrdiff_t offset = at - member.lower();
      members.push_back({offset, times, &part.layout, extent});
      append(bytes, repeated(member.bytes, 1, 0, offset));
      at += member.upper() - member.lower() + (chance(random_, 40) ? 0 : number(0, 30));
      if (chance(random_, 5)) at = number(-500, 500);
    }
    return {message::Layout::joined(members), bytes};
  }

  // A count that keeps the size near the limit.
  std::size_t fitting(std::size_t count, const ModelledLayout& element) const {
    return element.bytes.empty() ? count : std::min(count, bytes_max_ / element.bytes.size() + 1);
  }

  Random& random_;
  std::size_t bytes_max_;
};

/// Memory for elements of a layout, and the place of each of its data bytes. Memory between and around the data has a
/// pattern.
class LayoutMemory {
 public:
  LayoutMemory(const ModelledLayout& element, std::size_t count, std::ptrdiff_t extent)
      : element_(element), count_(count), extent_(extent) {
    places_ = repeated(element.bytes, count, extent);
    const ModelledLayout all{message::Layout(), places_};
    origin_ = guard - all.lower();
    for (std::ptrdiff_t& place : places_) place += origin_;
    memory_ = pattern(static_cast<std::size_t>(all.upper() - all.lower() + 2 * guard), 7);
  }

  [[nodiscard]] message::LayoutCursor cursor() { return {memory_.data() + origin_, element_.layout, count_, extent_}; }
  [[nodiscard]] std::size_t bytes() const { return places_.size(); }
  [[nodiscard]] std::size_t place(std::size_t byte) const { return static_cast<std::size_t>(places_[byte]); }
  [[nodiscard]] std::vector<std::byte>& memory() { return memory_; }
  /// The data, as packed.
  [[nodiscard]] std::vector<std::byte> data() const {
    std::vector<std::byte> packed(bytes());
    for (std::size_t i = 0; i < packed.size(); ++i) packed[i] = memory_[place(i)];
    return packed;
  }
  /// Writes data bytes from `offset` on, one by one.
  void set(std::size_t offset, std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) memory_[place(offset + i)] = bytes[i];
  }

 private:
  static constexpr std::ptrdiff_t guard = 64;
  ModelledLayout element_;
  std::size_t count_;
  std::ptrdiff_t extent_;
  Bytes places_;
  std::ptrdiff_t origin_ = 0;
  std::vector<std::byte> memory_;
};

}  // namespace tonari::test
