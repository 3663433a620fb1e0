#include "share/heap/heap_pages.hpp"

#include "share/array/page_block.hpp"

#include <algorithm>

namespace tonari::share {

namespace {

std::uint64_t pages_of_part(std::uint64_t bytes, int ranks) noexcept {
  const std::uint64_t step = static_cast<std::uint64_t>(ranks) * page_bytes;
  return std::max<std::uint64_t>(bytes / step + (bytes % step != 0 ? 1 : 0), 1);
}

// Rounds up to equal parts. Sizes that would overflow stay as they are, and are refused later.
std::uint64_t bytes_of_all(std::uint64_t bytes, std::uint64_t pages_a_part, int ranks) noexcept {
  return std::max(pages_a_part * static_cast<std::uint64_t>(ranks) * page_bytes, bytes);
}

ArrayOptions options_of(bool homes_move) {
  ArrayOptions options;
  options.placement = Placement::block;
  options.homes_move = homes_move;
  return options;
}

}  // namespace

HeapPages::HeapPages(Job& job, std::uint64_t bytes, bool homes_move)
    : rank_(job.rank().value()),
      pages_a_part_(pages_of_part(bytes, job.size())),
      memory_(detail::make_memory(job, bytes_of_all(bytes, pages_a_part_, job.size()), options_of(homes_move))),
      parts_(static_cast<std::size_t>(job.size())),
      words_(job, sizeof(std::uint64_t), WindowOptions{.locks = 0, .notifications = 0}) {}

std::byte* HeapPages::take(std::uint64_t pages) noexcept {
  for (std::size_t turn = used_up_.load(std::memory_order_relaxed); turn < parts_; ++turn) {
    if (std::byte* const taken = take_in_turn(turn, pages)) return taken;
  }
  return nullptr;
}

// Takes pages from this rank's part in turn 0, and from the next ranks' parts in later turns.
std::byte* HeapPages::take_in_turn(std::size_t turn, std::uint64_t pages) noexcept {
  const std::size_t rank = (static_cast<std::size_t>(rank_) + turn) % parts_;
  std::uint64_t taken = 0;  // a guess: the first compare-and-swap returns the value
  while (pages <= pages_a_part_ - taken) {
    const auto [status, before] = words_.compare_and_swap(words_.at(JobRank{rank}), taken, taken + pages);
    if (status != Status::ok) return nullptr;  // the rank has died, and its part is lost
    if (before == taken) return bytes().data() + (rank * pages_a_part_ + taken) * page_bytes;
    taken = before;
  }
  if (taken == pages_a_part_) used_up_.compare_exchange_strong(turn, turn + 1, std::memory_order_relaxed);
  return nullptr;
}

std::uint64_t HeapPages::pages_taken() noexcept {
  std::uint64_t sum = 0;
  for (std::size_t rank = 0; rank < parts_; ++rank) {
    const auto [status, taken] = words_.fetch_add(words_.at(JobRank{rank}), std::uint64_t{0});
    sum += status == Status::ok ? taken : pages_a_part_;
  }
  return sum;
}

}  // namespace tonari::share
