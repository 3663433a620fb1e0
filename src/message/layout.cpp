#include "message/layout.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
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

  /// Makes room for this number of entries.
  void reserve(std::size_t count) { runs_.reserve(count + 1); }
  /// Adds a run of at least one byte.
  void add_run(std::ptrdiff_t offset, std::size_t bytes);
  /// Adds a layout with data, with its origin at `offset`.
  void add(std::ptrdiff_t offset, const Layout& layout);
  Layout finish() &&;

  static Layout of_bytes(std::size_t bytes);
  static Layout repeated(const Layout& element, std::size_t count, std::ptrdiff_t distance);
  /// Dense blocks, evenly spaced or far from each other. Returns nothing if some touch the next one in the list, or if
  /// there is one block only.
  static std::optional<Layout> spread(std::vector<std::ptrdiff_t>& offsets, const Layout& block);

 private:
  static constexpr std::size_t short_list = 16;
  static constexpr unsigned deep = 16;

  void cover(std::ptrdiff_t lower, std::ptrdiff_t upper) noexcept;
  [[nodiscard]] bool takes_apart(const Layout& layout) const noexcept;
  void add_entries(std::ptrdiff_t offset, const LayoutNode& node);
  void add_node(std::ptrdiff_t offset, const LayoutNode& node);
  void move_runs_to_parts();
  void keep(const std::shared_ptr<const LayoutStorage>& storage);
  Layout finish_runs();
  Layout finish_parts();
  static void list(Layout& layout, NodeKind kind, std::size_t bytes, std::size_t count, std::size_t unit,
                   LayoutStorage storage);

  std::size_t bytes_;
  std::vector<LayoutNode::Run> runs_;    // all parts, as long as they are runs; each ends where the next one begins
  std::size_t run_bytes_ = 0;            // of all of them
  std::vector<LayoutNode::Part> parts_;  // otherwise; `before` is set at the end
  LayoutStorage storage_;
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
    const bool touches =
        !runs_.empty() && runs_.back().offset + static_cast<std::ptrdiff_t>(run_bytes_ - runs_.back().before) == offset;
    if (!touches) {
      runs_.push_back({offset, run_bytes_});
      ++run_count_;
    }
    run_bytes_ += node.bytes;
    return;
  }
  if (parts_.empty()) move_runs_to_parts();
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

void LayoutBuilder::move_runs_to_parts() {
  parts_.reserve(runs_.capacity());
  runs_.push_back({0, run_bytes_});
  for (std::size_t i = 0; i + 1 < runs_.size(); ++i) {
    parts_.push_back({runs_[i].offset, 0, LayoutNode::run(runs_[i + 1].before - runs_[i].before)});
  }
  runs_ = {};
}

// Keeps each storage once, if not many others have come between.
void LayoutBuilder::keep(const std::shared_ptr<const LayoutStorage>& storage) {
  constexpr std::size_t looked_at = 8;
  if (storage == nullptr) return;
  auto& below = storage_.below;
  const std::size_t skipped = below.size() - std::min(below.size(), looked_at);
  if (std::find(below.begin() + static_cast<std::ptrdiff_t>(skipped), below.end(), storage) != below.end()) return;
  below.push_back(storage);
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
void LayoutBuilder::list(Layout& layout, NodeKind kind, std::size_t bytes, std::size_t count, std::size_t unit,
                         LayoutStorage storage) {
  const void* const entries = kind == NodeKind::spread ? static_cast<const void*>(storage.offsets.data())
                              : kind == NodeKind::runs ? static_cast<const void*>(storage.runs.data())
                                                       : static_cast<const void*>(storage.parts.data());
  layout.node_ = {kind, bytes, count, unit, 0, entries};  // the entries stay where they are
  layout.storage_ = std::make_shared<const LayoutStorage>(std::move(storage));
}

Layout LayoutBuilder::finish_runs() {
  const std::size_t count = runs_.size();
  const std::ptrdiff_t first = runs_.front().offset;
  runs_.push_back({first, run_bytes_});
  const std::size_t unit = runs_[1].before;
  const std::ptrdiff_t distance = runs_[1].offset - first;
  bool same = true;  // all runs have the length of the first
  for (std::size_t i = 1; i <= count && same; ++i) same = runs_[i].before == i * unit;
  bool even = same;
  for (std::size_t i = 1; i < count && even; ++i) even = runs_[i].offset - runs_[i - 1].offset == distance;
  Layout layout;
  layout.first_ = first;
  if (even) {
    layout.node_ = LayoutNode::run(unit);
    layout.node_.repeat(count, distance);
    return layout;
  }
  layout.depth_ = depth_ + 1;
  if (same) {
    storage_.offsets.resize(count);
    for (std::size_t i = 0; i < count; ++i) storage_.offsets[i] = runs_[i].offset - first;
    list(layout, NodeKind::spread, bytes_, count, unit, std::move(storage_));
  } else {
    for (LayoutNode::Run& run : runs_) run.offset -= first;
    storage_.runs = std::move(runs_);
    list(layout, NodeKind::runs, bytes_, count, 0, std::move(storage_));
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
    if (!storage_.below.empty()) layout.storage_ = std::make_shared<const LayoutStorage>(std::move(storage_));
    return repeated(layout, count, distance);
  }
  std::size_t before = 0;
  for (LayoutNode::Part& part : parts_) {
    part.offset -= first.offset;
    part.before = std::exchange(before, before + part.node.bytes);
  }
  storage_.parts = std::move(parts_);
  layout.depth_ = depth_ + 1;
  list(layout, NodeKind::joined, bytes_, count, 0, std::move(storage_));
  return layout;
}

std::optional<Layout> LayoutBuilder::spread(std::vector<std::ptrdiff_t>& offsets, const Layout& block) {
  const std::size_t count = offsets.size();
  if (count < 2) return {};
  const auto [least, most] = std::ranges::minmax(offsets);
  Layout layout;
  layout.lower_ = sum(least, block.lower_);
  layout.upper_ = sum(most, block.upper_);
  if (std::ptrdiff_t width; __builtin_sub_overflow(layout.upper_, layout.lower_, &width)) refuse_length();
  // Plain loops without exits, which compilers vectorise.
  const std::size_t bytes = block.size();
  const std::ptrdiff_t first = offsets[0];
  const std::ptrdiff_t distance = offsets[1] - first;
  std::size_t touching = 0;
  std::size_t uneven = 0;
  for (std::size_t i = 1; i < count; ++i) {
    const std::ptrdiff_t step = offsets[i] - offsets[i - 1];
    touching += step == static_cast<std::ptrdiff_t>(bytes) ? 1 : 0;
    uneven += step != distance ? 1 : 0;
  }
  if (uneven == 0) {
    Layout even = repeated(block, count, distance);
    even.first_ += first;
    even.lower_ += first;
    even.upper_ += first;
    return even;
  }
  if (touching != 0) return {};
  for (std::ptrdiff_t& offset : offsets) offset -= first;
  layout.first_ = first + block.first_;
  layout.runs_ = count;
  LayoutStorage storage;
  storage.offsets = std::move(offsets);
  list(layout, NodeKind::spread, bytes * count, count, bytes, std::move(storage));
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
    builder.reserve(pieces.size());
    for (const Piece& piece : pieces) {
      if (piece.count != 0) builder.add_run(sum(piece.offset, element.lower_), piece.count * element.size());
    }
    return std::move(builder).finish();
  }
  // Pieces of one length share a layout. A few are remembered, each at a place that its length says.
  struct Remembered {
    std::size_t count = 0;
    Layout layout;
  };
  std::array<Remembered, 8> remembered;
  builder.reserve(pieces.size());
  for (const Piece& piece : pieces) {
    if (piece.count == 0) continue;
    Remembered& known = remembered[piece.count % remembered.size()];
    if (known.count != piece.count) known = {piece.count, contiguous(piece.count, element, extent)};
    builder.add(piece.offset, known.layout);
  }
  return std::move(builder).finish();
}

Layout Layout::blocks(std::vector<std::ptrdiff_t> offsets, std::size_t block_count, const Layout& element,
                      std::ptrdiff_t extent) {
  const Layout block = contiguous(block_count, element, extent);
  if (offsets.empty() || block.size() == 0) return {};
  LayoutBuilder builder(static_cast<std::size_t>(to_signed(product(offsets.size(), block.size()))));
  if (block.is_dense()) {
    if (auto made = LayoutBuilder::spread(offsets, block)) return *std::move(made);
  }
  builder.reserve(offsets.size());
  for (const std::ptrdiff_t offset : offsets) builder.add(offset, block);
  return std::move(builder).finish();
}

Layout Layout::joined(std::span<const Member> members) {
  std::size_t bytes = 0;
  for (const Member& member : members) bytes = sum(bytes, product(member.count, member.layout->size()));
  LayoutBuilder builder(static_cast<std::size_t>(to_signed(bytes)));
  builder.reserve(members.size());
  for (const Member& member : members) {
    const Layout& element = *member.layout;
    if (member.count == 0 || element.size() == 0) continue;
    const bool is_run =
        element.is_dense() && (member.count == 1 || member.extent == static_cast<std::ptrdiff_t>(element.size()));
    if (is_run) {
      builder.add_run(sum(member.offset, element.lower_), member.count * element.size());
    } else {
      builder.add(member.offset, contiguous(member.count, element, member.extent));
    }
  }
  return std::move(builder).finish();
}

}  // namespace tonari::message
