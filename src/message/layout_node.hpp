#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

// The compiled form of a layout: a tree of loops and lists over contiguous runs of bytes, after the dataloops of Ross,
// Miller and Gropp ("Implementing fast and reusable datatype processing", 2003).
//
// Normal form, made by layout.cpp:
//   - A node's origin is the first byte that it visits, so the offset of its first entry is 0.
//   - A node has at least one byte. Loops and lists have at least two entries.
//   - Entries that continue the run before them are joined with it. So a node is contiguous only if it is a run.
//   - Nodes are nested at most Layout::depth_max deep (LayoutBuilder), so they may be walked by recursion.
namespace tonari::message {

/// Threads: immutable once made, so any.
struct LayoutNode {
  enum class Kind : std::uint8_t {
    run,      ///< `unit` contiguous bytes.
    strided,  ///< `count` runs of `unit` bytes, `stride` apart.
    loop,     ///< `count` times the child of `unit` bytes, `stride` apart.
    spread,   ///< `count` runs of `unit` bytes at listed offsets.
    runs,     ///< `count` runs of any length.
    joined,   ///< `count` nodes of any kind.
  };
  struct Run;
  struct Part;

  Kind kind = Kind::run;
  std::size_t bytes = 0;          // data of all entries
  std::size_t count = 1;          // number of entries
  std::size_t unit = 0;           // data of one entry, if all have the same
  std::ptrdiff_t stride = 0;      // in bytes, may be negative
  const void* entries = nullptr;  // of a LayoutStorage, as the next calls say

  static LayoutNode run(std::size_t bytes) noexcept { return {Kind::run, bytes, 1, bytes, 0, nullptr}; }

  /// The repeated node of a loop.
  [[nodiscard]] const LayoutNode& child() const noexcept { return *static_cast<const LayoutNode*>(entries); }
  /// The `count` offsets of a spread.
  [[nodiscard]] const std::ptrdiff_t* offsets() const noexcept { return static_cast<const std::ptrdiff_t*>(entries); }
  /// The count + 1 entries of runs.
  [[nodiscard]] const Run* runs() const noexcept { return static_cast<const Run*>(entries); }
  /// The `count` entries of joined.
  [[nodiscard]] const Part* parts() const noexcept { return static_cast<const Part*>(entries); }

  bool operator==(const LayoutNode&) const noexcept = default;

  /// Makes the node visit itself `times` times, at least once, `distance` bytes apart, if that needs no further node.
  /// Otherwise returns false and changes nothing. The caller has checked that the bytes do not overflow.
  bool repeat(std::size_t times, std::ptrdiff_t distance) noexcept {
    if (times == 1) return true;
    if (kind != Kind::run) return repeat_slow(times, distance);
    bytes *= times;
    if (distance == static_cast<std::ptrdiff_t>(unit)) {
      unit = bytes;
    } else {
      kind = Kind::strided;
      count = times;
      stride = distance;
    }
    return true;
  }

 private:
  bool repeat_slow(std::size_t times, std::ptrdiff_t distance) noexcept;
};

/// Ends where the next entry begins; the last entry has no run.
struct LayoutNode::Run {
  std::ptrdiff_t offset;
  std::size_t before;  // data bytes of the entries before it
};

struct LayoutNode::Part {
  std::ptrdiff_t offset;
  std::size_t before;  // data bytes of the entries before it
  LayoutNode node;
};

/// Owns the entries of a layout's nodes.
struct LayoutStorage {
  LayoutNode child;
  std::vector<std::ptrdiff_t> offsets;
  std::vector<LayoutNode::Run> runs;
  std::vector<LayoutNode::Part> parts;
  std::vector<std::shared_ptr<const LayoutStorage>> below;  // of the layouts that this one was made of
};

}  // namespace tonari::message
