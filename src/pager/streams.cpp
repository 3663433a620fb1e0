#include "pager/streams.hpp"

#include <algorithm>
#include <cstdlib>

namespace tonari::pager {

namespace {

constexpr std::int64_t distance(std::uint64_t from, std::uint64_t to) noexcept {
  return static_cast<std::int64_t>(to - from);
}
constexpr std::uint64_t round_down(std::uint64_t page, std::uint64_t to) noexcept { return page / to * to; }

}  // namespace

Advice Streams::fault(std::uint64_t page, std::uint32_t thread, bool by_block) noexcept {
  ++faults_;
  if (Stream* const stream = find(page, thread)) return go_on(*stream, page, by_block);
  if (Stream* const stream = find_strided(page, thread)) return go_on_in_strides(*stream, page);
  if (Stream* const stream = find_returned_to(page, thread)) return go_on(*stream, page, by_block);
  find_third(page, thread);
  begin(page, thread);
  return {.first = page};
}

bool Streams::Stream::is_strided() const noexcept { return std::abs(step) > static_cast<std::int64_t>(slack_pages); }

// Returns true if it is a long walk in short strides, which needs only their pages.
bool Streams::Stream::is_sparse() const noexcept {
  return std::abs(step) > 2 && !is_strided() && !is_dense && high - low >= walk_pages_max;
}

// Returns true if `page` is where the stream continues, `gap` pages away from the pages that were brought.
bool Streams::Stream::is_next(std::uint64_t page, std::uint64_t gap) const noexcept {
  return gap == 0 || (gap < static_cast<std::uint64_t>(std::abs(step)) && distance(last, page) % step == 0);
}

// Finds a stream that continues here or, for the same thread, a little before here.
Streams::Stream* Streams::find(std::uint64_t page, std::uint32_t thread) noexcept {
  const auto goes_on = [&](const Stream& each) {
    if (!each.exists || each.is_strided()) return false;
    if (faults_ - each.used > faults_until_old) return false;
    const bool forwards = page >= each.high;
    if (!forwards && page >= each.low) return false;
    const std::uint64_t gap = forwards ? page - each.high : each.low - 1 - page;
    if (each.thread != thread) return gap == 0;
    if (gap <= slack_pages) return each.run > 1 || each.is_next(page, gap);
    // Blocks that are still here from an earlier time are crossed without a fault.
    const std::uint64_t in_block = page % block_pages;
    const bool enters_block = (forwards ? in_block : block_pages - 1 - in_block) < slack_pages;
    return enters_block && each.run == block_pages && gap <= slack_pages_by_blocks;
  };
  if (const auto found = std::ranges::find_if(proven_, goes_on); found != proven_.end()) return &*found;
  const auto found = std::ranges::find_if(candidates_, goes_on);
  if (found == candidates_.end()) return nullptr;
  Stream& place = promote(*found);
  *found = {};
  return &place;
}

// Finds a strided stream of this thread that arrives here: at the next page not read ahead, or earlier, if the
// read-ahead was too slow.
Streams::Stream* Streams::find_strided(std::uint64_t page, std::uint32_t thread) noexcept {
  const auto comes_by = [&](const Stream& each) {
    if (!each.exists || !each.is_strided() || each.thread != thread) return false;
    const std::int64_t came = distance(each.last, page);
    const std::int64_t steps = came / each.step;
    return came % each.step == 0 && steps > 0 && steps <= distance(each.last, each.read_ahead_to) / each.step + 1;
  };
  const auto found = std::ranges::find_if(proven_, comes_by);
  return found != proven_.end() ? &*found : nullptr;
}

// Finds a long walk in short strides that has returned here, to a page between two of its last strides. From now on it
// brings such pages, too.
Streams::Stream* Streams::find_returned_to(std::uint64_t page, std::uint32_t thread) noexcept {
  const auto has_returned = [&](const Stream& each) {
    if (!each.exists || !each.is_sparse() || each.thread != thread) return false;
    const std::int64_t back = each.step > 0 ? distance(page, each.last) : distance(each.last, page);
    return back > 0 && back < static_cast<std::int64_t>(walk_pages_max) && back % each.step != 0;
  };
  const auto found = std::ranges::find_if(proven_, has_returned);
  if (found == proven_.end()) return nullptr;
  found->is_dense = true;
  found->low = found->high = found->step > 0 ? page : page + 1;
  return &*found;
}

// Looks for two earlier faults of this thread that lead here in equal strides. That may be chance, so only the fourth
// fault reads ahead.
void Streams::find_third(std::uint64_t page, std::uint32_t thread) noexcept {
  for (const Stream& second : candidates_) {
    const std::int64_t step = distance(second.last, page);
    if (!second.exists || second.thread != thread || step == 0 || std::abs(step) > stride_pages_max) continue;
    const std::uint64_t start = second.last - static_cast<std::uint64_t>(step);
    const auto is_first = [&](const Stream& each) {
      return each.exists && each.thread == thread && each.last == start && each.used < second.used;
    };
    if (std::ranges::none_of(candidates_, is_first)) continue;
    Stream strided = second;
    strided.step = step;
    strided.last = strided.read_ahead_to = strided.low = page;
    strided.high = page + 1;
    (void)promote(strided);
    return;
  }
}

// Replaces the stream that has been quiet for longest.
Streams::Stream& Streams::promote(const Stream& stream) noexcept {
  Stream& place = *std::ranges::min_element(proven_, {}, &Stream::used);
  return place = stream;
}

void Streams::begin(std::uint64_t page, std::uint32_t thread) noexcept {
  *std::ranges::min_element(candidates_, {}, &Stream::used) = {.exists = true,
                                                               .thread = thread,
                                                               .used = faults_,
                                                               .last = page,
                                                               .low = page,
                                                               .high = page + 1,
                                                               .step = 1,
                                                               .read_ahead_to = 0,
                                                               .run = 1,
                                                               .depth = 0,
                                                               .is_dense = false};
}

Advice Streams::go_on(Stream& stream, std::uint64_t page, bool by_block) noexcept {
  Advice advice;
  advice.backwards = page < stream.low;
  const std::uint64_t gap = advice.backwards ? stream.low - 1 - page : page - stream.high;
  const bool goes_on = stream.is_next(page, gap) || stream.run == block_pages;
  const bool is_sparse = stream.is_sparse();
  const unsigned run_max = is_sparse ? block_pages / 2 : block_pages;
  stream.run = goes_on ? std::min(stream.run * 2, run_max) : std::max(stream.run / 2, 1U);
  advice.by_block = by_block && stream.run == block_pages;
  if (is_sparse) advice.every = static_cast<unsigned>(std::abs(stream.step));
  const std::uint64_t unit = by_block ? stream.run : std::min<unsigned>(stream.run, slice_pages);
  std::uint64_t first = round_down(page, unit);
  std::uint64_t end = first + unit;
  if (!advice.by_block) {
    const std::uint64_t block = round_down(page, block_pages);
    // pages skipped by a short stride: wanted soon
    const std::uint64_t between = goes_on && gap <= slack_pages && !is_sparse ? gap : 0;
    if (advice.backwards) {
      end = std::min(page + 1 + between, block + block_pages);
    } else {
      first = std::max(page - between, block);
    }
  }
  advice.first = first;
  advice.pages = static_cast<unsigned>(end - first);

  if (advice.by_block) {
    stream.depth = std::clamp(stream.depth * 2, 1U, blocks_ahead_max);
    advice.step = advice.backwards ? -static_cast<std::int64_t>(block_pages) : static_cast<std::int64_t>(block_pages);
    advice.ahead = first + static_cast<std::uint64_t>(advice.step);
    advice.count = stream.depth;
  }
  // The stream has entered another block: it is done with the previous one.
  if (round_down(stream.last, block_pages) != round_down(page, block_pages)) advice.passed = stream.last;
  stream.last = page;
  // Others may have brought some of these pages; only the place where the next fault is expected matters.
  if (advice.backwards) {
    stream.low = first;
  } else {
    stream.high = end;
  }
  stream.used = faults_;
  return advice;
}

Advice Streams::go_on_in_strides(Stream& stream, std::uint64_t page) noexcept {
  stream.used = faults_;
  // Earlier than the first page after the read-ahead: it was too slow, or the match is chance.
  const bool is_next = page == stream.read_ahead_to + static_cast<std::uint64_t>(stream.step);
  if (is_next) stream.depth = std::clamp(stream.depth * 2, 2U, strides_ahead_max);
  const std::uint64_t from = distance(page, stream.read_ahead_to) / stream.step > 0 ? stream.read_ahead_to : page;
  const std::uint64_t to = page + static_cast<std::uint64_t>(stream.step * static_cast<std::int64_t>(stream.depth));
  stream.last = page;
  if (distance(from, to) / stream.step > 0) stream.read_ahead_to = to;

  Advice advice{.first = page};
  advice.step = stream.step;
  advice.ahead = from + static_cast<std::uint64_t>(stream.step);
  advice.count = static_cast<unsigned>(std::max<std::int64_t>(distance(from, to) / stream.step, 0));
  return advice;
}

}  // namespace tonari::pager
