#include "message/layout.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace tonari::message {

namespace {

using NodeKind = LayoutNode::Kind;

[[noreturn, gnu::cold]] void refuse_length() { throw std::length_error("a layout of 2^63 bytes or more"); }

template <class Number>
Number sum(Number a, Number b) {
  Number result;
  if (__builtin_add_overflow(a, b, &result)) refuse_length();
  return result;
}
template <class Number>
Number product(Number a, Number b) {
  Number result;
  if (__builtin_mul_overflow(a, b, &result)) refuse_length();
  return result;
}
std::ptrdiff_t to_signed(std::size_t number) {
  if (number > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max())) refuse_length();
  return static_cast<std::ptrdiff_t>(number);
}

}  // namespace

bool LayoutNode::repeat_slow(std::size_t times, std::ptrdiff_t distance) noexcept {
  if (kind != NodeKind::strided && kind != NodeKind::loop) return false;
  std::ptrdiff_t continued = 0;  // the distance at which a repetition continues the node's own entries
  if (__builtin_mul_overflow(static_cast<std::ptrdiff_t>(count), stride, &continued)) return false;
  if (continued != distance) return false;
  bytes *= times;
  count *= times;
  return true;
}

/// Collects the parts of a layout in order, joins neighbours that touch, and compiles all.
///
/// Depth: a part that is a list itself is replaced by its entries if it is short. So is a part that is nested deep
/// already and has more than half of the data; each level below that is kept at least halves the data of a part. So
/// lists and loops are nested at most deep + 2 * 63 levels deep (Layout::depth_max), and no list grows exponentially.
class LayoutBuilder {
 public:
  /// `bytes`: of all parts together.
  explicit LayoutBuilder(std::size_t bytes) noexcept : bytes_(bytes) {}

  void reserve_runs(std::size_t count) { runs_.reserve(count + 1); }
  /// Adds a run of at least one byte.
  void add_run(std::ptrdiff_t offset, std::size_t bytes);
  /// Adds a layout with data, with its origin at `offset`.
  void add(std::ptrdiff_t offset, const Layout& layout);
  Layout finish() &&;

  static Layout of_bytes(std::size_t bytes);
  static Layout repeated(const Layout& element, std::size_t count, std::ptrdiff_t distance);

 private:
  static constexpr std::size_t short_list = 16;
  static constexpr unsigned deep = 16;

  void cover(std::ptrdiff_t lower, std::ptrdiff_t upper) noexcept;
  [[nodiscard]] bool takes_apart(const Layout& layout) const noexcept;
  void add_entries(std::ptrdiff_t offset, const LayoutNode& node);
  void add_node(std::ptrdiff_t offset, const LayoutNode& node);
  void keep(const std::shared_ptr<const LayoutStorage>& storage);
  Layout finish_runs();
  Layout finish_parts();
  void list(Layout& layout, NodeKind kind, std::size_t count, std::size_t unit);

  struct Run {
    std::ptrdiff_t offset;
    std::size_t bytes;
  };
  std::size_t bytes_;
  std::vector<Run> runs_;                // all parts, as long as they are runs
  std::vector<LayoutNode::Part> parts_;  // otherwise; `before` is set at the end
  std::shared_ptr<LayoutStorage> storage_ = std::make_shared<LayoutStorage>();
  bool is_empty_ = true;
  std::ptrdiff_t lower_ = 0;
  std::ptrdiff_t upper_ = 0;
  std::size_t run_count_ = 0;
  unsigned depth_ = 0;  // of the deepest part
};

void LayoutBuilder::cover(std::ptrdiff_t lower, std::ptrdiff_t upper) noexcept {
  lower_ = is_empty_ ? lower : std::min(lower_, lower);
  upper_ = is_empty_ ? upper : std::max(upper_, upper);
  is_empty_ = false;
}

bool LayoutBuilder::takes_apart(const Layout& layout) const noexcept {
  const NodeKind kind = layout.node_.kind;
  if (kind != NodeKind::spread && kind != NodeKind::runs && kind != NodeKind::joined) return false;
  return layout.node_.count <= short_list || (layout.depth_ >= deep && layout.node_.bytes > bytes_ / 2);
}

void LayoutBuilder::add_run(std::ptrdiff_t offset, std::size_t bytes) {
  cover(offset, sum(offset, to_signed(bytes)));
  add_node(offset, LayoutNode::run(bytes));
}

void LayoutBuilder::add(std::ptrdiff_t offset, const Layout& layout) {
  cover(sum(offset, layout.lower_), sum(offset, layout.upper_));
  const std::ptrdiff_t first = sum(offset, layout.first_);
  if (takes_apart(layout)) {
    for (const auto& below : layout.storage_->below) keep(below);
    run_count_ += layout.runs_ - layout.node_.count;  // the entries count as one run each below
    depth_ = std::max(depth_, layout.depth_ - 1);
    return add_entries(first, layout.node_);
  }
  keep(layout.storage_);
  run_count_ += layout.runs_ - 1;
  depth_ = std::max(depth_, layout.depth_);
  add_node(first, layout.node_);
}

void LayoutBuilder::add_entries(std::ptrdiff_t offset, const LayoutNode& node) {
  for (std::size_t i = 0; i < node.count; ++i) {
    switch (node.kind) {
      case NodeKind::spread: add_node(offset + node.offsets()[i], LayoutNode::run(node.unit)); break;
      case NodeKind::runs: {
        const LayoutNode::Run* const run = node.runs() + i;
        add_node(offset + run->offset, LayoutNode::run(run[1].before - run->before));
        break;
      }
      default: add_node(offset + node.parts()[i].offset, node.parts()[i].node);
    }
  }
}

// Adds a node, which counts as one run, or lengthens the run before it.
void LayoutBuilder::add_node(std::ptrdiff_t offset, const LayoutNode& node) {
  const bool is_run = node.kind == NodeKind::run;
  if (is_run && parts_.empty()) {
    if (!runs_.empty() && runs_.back().offset + static_cast<std::ptrdiff_t>(runs_.back().bytes) == offset) {
      runs_.back().bytes += node.bytes;
    } else {
      runs_.push_back({offset, node.bytes});
      ++run_count_;
    }
    return;
  }
  for (const Run& run : runs_) parts_.push_back({run.offset, 0, LayoutNode::run(run.bytes)});
  runs_.clear();
  if (is_run && !parts_.empty()) {
    LayoutNode::Part& last = parts_.back();
    if (last.node.kind == NodeKind::run && last.offset + static_cast<std::ptrdiff_t>(last.node.bytes) == offset) {
      last.node = LayoutNode::run(last.node.bytes + node.bytes);
      return;
    }
  }
  parts_.push_back({offset, 0, node});
  ++run_count_;
}

void LayoutBuilder::keep(const std::shared_ptr<const LayoutStorage>& storage) {
  const bool is_new = storage != nullptr && (storage_->below.empty() || storage_->below.back() != storage);
  if (is_new) storage_->below.push_back(storage);
}

Layout LayoutBuilder::finish() && {
  if (is_empty_) return {};
  if (std::ptrdiff_t width; __builtin_sub_overflow(upper_, lower_, &width)) refuse_length();
  Layout layout = parts_.empty() ? finish_runs() : finish_parts();
  layout.lower_ = lower_;
  layout.upper_ = upper_;
  layout.runs_ = layout.is_dense() ? 1 : run_count_;
  return layout;
}

// Makes the layout's node a list.
void LayoutBuilder::list(Layout& layout, NodeKind kind, std::size_t count, std::size_t unit) {
  const void* const entries = kind == NodeKind::spread ? static_cast<const void*>(storage_->offsets.data())
                              : kind == NodeKind::runs ? static_cast<const void*>(storage_->runs.data())
                                                       : static_cast<const void*>(storage_->parts.data());
  layout.node_ = {kind, bytes_, count, unit, 0, entries};
  layout.depth_ = depth_ + 1;
  layout.storage_ = std::move(storage_);
}

Layout LayoutBuilder::finish_runs() {
  const std::size_t count = runs_.size();
  const Run first = runs_.front();
  const bool same = std::ranges::all_of(runs_, [&](const Run& run) { return run.bytes == first.bytes; });
  const std::ptrdiff_t distance = count > 1 ? runs_[1].offset - first.offset : 0;
  bool even = same;
  for (std::size_t i = 1; i < count && even; ++i) even = runs_[i].offset - runs_[i - 1].offset == distance;
  Layout layout;
  layout.first_ = first.offset;
  if (even) {
    layout.node_ = LayoutNode::run(first.bytes);
    layout.node_.repeat(count, distance);
  } else if (same) {
    for (const Run& run : runs_) storage_->offsets.push_back(run.offset - first.offset);
    list(layout, NodeKind::spread, count, first.bytes);
  } else {
    std::size_t before = 0;
    for (const Run& run : runs_) {
      storage_->runs.push_back({run.offset - first.offset, before});
      before += run.bytes;
    }
    storage_->runs.push_back({0, before});
    list(layout, NodeKind::runs, count, 0);
  }
  return layout;
}

Layout LayoutBuilder::finish_parts() {
  const std::size_t count = parts_.size();
  const LayoutNode::Part first = parts_.front();
  const std::ptrdiff_t distance = count > 1 ? parts_[1].offset - first.offset : 0;
  bool even = true;
  for (std::size_t i = 1; i < count && even; ++i) {
    even = parts_[i].node == first.node && parts_[i].offset - parts_[i - 1].offset == distance;
  }
  Layout layout;
  layout.first_ = first.offset;
  if (even) {
    layout.node_ = first.node;
    layout.depth_ = depth_;
    layout.storage_ = std::move(storage_);
    return repeated(layout, count, distance);
  }
  std::size_t before = 0;
  for (LayoutNode::Part& part : parts_) {
    part.offset -= first.offset;
    part.before = std::exchange(before, before + part.node.bytes);
  }
  storage_->parts = std::move(parts_);
  list(layout, NodeKind::joined, count, 0);
  return layout;
}

Layout LayoutBuilder::of_bytes(std::size_t bytes) {
  Layout layout;
  layout.node_ = LayoutNode::run(bytes);
  layout.upper_ = to_signed(bytes);
  layout.runs_ = bytes == 0 ? 0 : 1;
  return layout;
}

// Repeats a layout with data at least once.
Layout LayoutBuilder::repeated(const Layout& element, std::size_t count, std::ptrdiff_t distance) {
  if (count == 1) return element;
  const std::ptrdiff_t last = product(distance, to_signed(count - 1));
  Layout layout = element;
  layout.lower_ = std::min(element.lower_, sum(element.lower_, last));
  layout.upper_ = std::max(element.upper_, sum(element.upper_, last));
  const std::size_t bytes = product(element.node_.bytes, count);
  (void)to_signed(bytes);
  layout.runs_ = element.runs_ * count;
  if (layout.node_.repeat(count, distance)) {
    if (layout.is_dense()) layout.runs_ = 1;
    return layout;
  }
  auto storage = std::make_shared<LayoutStorage>();
  storage->child = element.node_;
  if (element.storage_ != nullptr) storage->below.push_back(element.storage_);
  layout.node_ = {NodeKind::loop, bytes, count, element.node_.bytes, distance, &storage->child};
  layout.storage_ = std::move(storage);
  ++layout.depth_;
  return layout;
}

Layout Layout::bytes(std::size_t size) { return LayoutBuilder::of_bytes(size); }

Layout Layout::contiguous(std::size_t count, const Layout& element, std::ptrdiff_t extent) {
  if (count == 0 || element.size() == 0) return {};
  return LayoutBuilder::repeated(element, count, extent);
}

Layout Layout::strided(std::size_t count, std::size_t block_count, std::ptrdiff_t stride, const Layout& element,
                       std::ptrdiff_t extent) {
  return contiguous(count, contiguous(block_count, element, extent), stride);
}

Layout Layout::listed(std::span<const Piece> pieces, const Layout& element, std::ptrdiff_t extent) {
  if (element.size() == 0) return {};
  std::size_t elements = 0;
  for (const Piece& piece : pieces) elements = sum(elements, piece.count);
  LayoutBuilder builder(static_cast<std::size_t>(to_signed(product(elements, element.size()))));
  if (element.is_dense() && extent == static_cast<std::ptrdiff_t>(element.size())) {
    builder.reserve_runs(pieces.size());
    for (const Piece& piece : pieces) {
      if (piece.count != 0) builder.add_run(sum(piece.offset, element.lower_), piece.count * element.size());
    }
    return std::move(builder).finish();
  }
  Layout repeated;  // pieces of one length share it
  std::size_t count = 0;
  for (const Piece& piece : pieces) {
    if (piece.count == 0) continue;
    if (std::exchange(count, piece.count) != piece.count) repeated = contiguous(count, element, extent);
    builder.add(piece.offset, repeated);
  }
  return std::move(builder).finish();
}

Layout Layout::joined(std::span<const Member> members) {
  std::size_t bytes = 0;
  for (const Member& member : members) bytes = sum(bytes, product(member.count, member.layout->size()));
  LayoutBuilder builder(static_cast<std::size_t>(to_signed(bytes)));
  for (const Member& member : members) {
    const Layout part = contiguous(member.count, *member.layout, member.extent);
    if (part.size() != 0) builder.add(member.offset, part);
  }
  return std::move(builder).finish();
}

}  // namespace tonari::message
