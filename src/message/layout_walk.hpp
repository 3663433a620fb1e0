#pragma once

#include "message/layout_node.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tonari::message {

/// Visits data bytes of a node, in order, and hands them to a sink, many runs at once where they are alike.
///
/// A sink has these calls. Addresses are numbers: an origin may be null, with addresses as offsets (MPI_BOTTOM).
///     run(address, bytes)                       contiguous bytes, at least one
///     strided(address, stride, count, bytes)    `count` runs of `bytes`, at least one
///     spread(origin, offsets, count, bytes)     `count` runs of `bytes`, at least one, at origin + offsets[i]
///     lists(origin, stride, count, node)        `count` times a node of runs, `stride` apart
/// Seeking costs a division or a binary search per level of the layout.
template <class Sink>
class LayoutWalk {
 public:
  using Address = std::uintptr_t;
  explicit LayoutWalk(Sink& sink) noexcept : sink_(sink) {}

  /// Visits all bytes of the node.
  void all(const LayoutNode& node, Address origin) {
    switch (node.kind) {
      case Kind::run: return sink_.run(origin, node.bytes);
      case Kind::strided: return sink_.strided(origin, node.stride, node.count, node.unit);
      case Kind::spread: return sink_.spread(origin, node.offsets(), node.count, node.unit);
      case Kind::loop: return children(node.child(), origin, node.stride, node.count);
      case Kind::runs: return sink_.lists(origin, 0, 1, node);
      case Kind::joined:
        for (std::size_t i = 0; i < node.count; ++i) all(node.parts()[i].node, at(origin, node.parts()[i].offset));
    }
  }

  /// Visits the bytes [from, to) of the node; not none.
  void part(const LayoutNode& node, Address origin, std::size_t from, std::size_t to) {
    if (from == 0 && to == node.bytes) return all(node, origin);
    switch (node.kind) {
      case Kind::run: return sink_.run(origin + from, to - from);
      case Kind::strided: return part_of_strided(node, origin, from, to);
      case Kind::spread: return part_of_spread(node, origin, from, to);
      case Kind::loop: return repeated(node.child(), origin, node.stride, from, to);
      case Kind::runs: return part_of_runs(node, origin, from, to);
      case Kind::joined: return part_of_joined(node, origin, from, to);
    }
  }

  /// Visits the bytes [from, to) of nodes that are `stride` bytes apart; not none.
  void repeated(const LayoutNode& node, Address origin, std::ptrdiff_t stride, std::size_t from, std::size_t to) {
    by_units(
        node.bytes, from, to,
        [&](std::size_t index, std::size_t begin, std::size_t end) {
          part(node, at(origin, stride, index), begin, end);
        },
        [&](std::size_t index, std::size_t count) { children(node, at(origin, stride, index), stride, count); });
  }

 private:
  using Kind = LayoutNode::Kind;

  static Address at(Address origin, std::ptrdiff_t offset) noexcept { return origin + static_cast<Address>(offset); }
  static Address at(Address origin, std::ptrdiff_t stride, std::size_t index) noexcept {
    return origin + static_cast<Address>(stride) * index;
  }

  // Divides the bytes [from, to) of units of one size into the end of a unit, whole units, and the beginning of a unit:
  // `partial(index, from, to)`, `whole(index, count)`.
  template <class Partial, class Whole>
  static void by_units(std::size_t unit, std::size_t from, std::size_t to, Partial&& partial, Whole&& whole) {
    std::size_t index = from / unit;
    const std::size_t within = from % unit;
    if (within != 0) {
      const std::size_t end = std::min(unit, within + (to - from));
      partial(index++, within, end);
      from += end - within;
    }
    const std::size_t count = (to - from) / unit;
    if (count != 0) whole(index, count);
    const std::size_t rest = (to - from) % unit;
    if (rest != 0) partial(index + count, std::size_t{0}, rest);
  }

  // The index of the entry that has the data byte `offset`.
  template <class Entry>
  static std::size_t index_of(const Entry* entries, std::size_t count, std::size_t offset) noexcept {
    const auto* const behind = std::upper_bound(
        entries, entries + count, offset, [](std::size_t wanted, const Entry& entry) { return wanted < entry.before; });
    return static_cast<std::size_t>(behind - entries) - 1;
  }

  void children(const LayoutNode& node, Address origin, std::ptrdiff_t stride, std::size_t count) {
    if (node.kind == Kind::runs) return sink_.lists(origin, stride, count, node);
    for (; count != 0; --count, origin = at(origin, stride)) all(node, origin);
  }

  void part_of_strided(const LayoutNode& node, Address origin, std::size_t from, std::size_t to) {
    by_units(
        node.unit, from, to,
        [&](std::size_t index, std::size_t begin, std::size_t end) {
          sink_.run(at(origin, node.stride, index) + begin, end - begin);
        },
        [&](std::size_t index, std::size_t count) {
          sink_.strided(at(origin, node.stride, index), node.stride, count, node.unit);
        });
  }

  void part_of_spread(const LayoutNode& node, Address origin, std::size_t from, std::size_t to) {
    by_units(
        node.unit, from, to,
        [&](std::size_t index, std::size_t begin, std::size_t end) {
          sink_.run(at(origin, node.offsets()[index]) + begin, end - begin);
        },
        [&](std::size_t index, std::size_t count) { sink_.spread(origin, node.offsets() + index, count, node.unit); });
  }

  void part_of_runs(const LayoutNode& node, Address origin, std::size_t from, std::size_t to) {
    const LayoutNode::Run* run = node.runs() + index_of(node.runs(), node.count, from);
    for (; from != to; ++run) {
      const std::size_t end = std::min(to, run[1].before);
      sink_.run(at(origin, run->offset) + (from - run->before), end - from);
      from = end;
    }
  }

  void part_of_joined(const LayoutNode& node, Address origin, std::size_t from, std::size_t to) {
    const LayoutNode::Part* each = node.parts() + index_of(node.parts(), node.count, from);
    for (; from != to; ++each) {
      const std::size_t end = std::min(to, each->before + each->node.bytes);
      part(each->node, at(origin, each->offset), from - each->before, end - each->before);
      from = end;
    }
  }

  Sink& sink_;
};

}  // namespace tonari::message
