#include "share/heap/free_runs.hpp"

#include "share/array/page_block.hpp"

#include <algorithm>
#include <iterator>

namespace tonari::share {

// Takes pages from the end of a run, so that its key in the map stays.
std::byte* FreeRuns::take(std::uint64_t pages) noexcept {
  const auto run = std::ranges::find_if(pages_, [pages](const auto& each) { return each.second >= pages; });
  if (run == pages_.end()) return nullptr;
  run->second -= pages;
  std::byte* const taken = run->first + run->second * page_bytes;
  if (run->second == 0) pages_.erase(run);
  return taken;
}

void FreeRuns::add(std::byte* start, std::uint64_t pages) {
  auto run = pages_.emplace(start, pages).first;
  if (const auto next = std::next(run); next != pages_.end() && start + pages * page_bytes == next->first) {
    run->second += next->second;
    pages_.erase(next);
  }
  if (run == pages_.begin()) return;
  const auto before = std::prev(run);
  if (before->first + before->second * page_bytes != start) return;
  before->second += run->second;
  pages_.erase(run);
}

}  // namespace tonari::share
