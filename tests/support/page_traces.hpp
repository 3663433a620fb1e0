#pragma once

#include "pager/page.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

// The pages that a program touches, in order, and how many of them a policy would have fetched.
namespace tonari::test {

/// Records the pages that are touched. Adjacent touches of the same page count as one.
class PageTrace {
 public:
  /// Pages are numbered from `start`.
  explicit PageTrace(const std::byte* start) : start_(start) {}

  void touch(const void* at) {
    const auto page = static_cast<std::uint32_t>(static_cast<std::size_t>(static_cast<const std::byte*>(at) - start_) /
                                                 pager::page_bytes);
    if (page == last_) return;
    last_ = page;
    pages_.push_back(page);
  }
  [[nodiscard]] std::span<const std::uint32_t> pages() const noexcept { return pages_; }

 private:
  const std::byte* start_;
  std::uint32_t last_ = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> pages_;
};

/// Pages in the order of their last use.
class UseOrder {
 public:
  explicit UseOrder(std::size_t pages) : links_(pages + 1), end_(pages) { links_[end_] = {end_, end_}; }

  void append(std::size_t page) noexcept {
    const std::size_t before = links_[end_].before;
    links_[page] = {before, end_};
    links_[before].after = links_[end_].before = page;
  }
  void remove(std::size_t page) noexcept {
    const auto [before, after] = links_[page];
    links_[before].after = after;
    links_[after].before = before;
  }
  [[nodiscard]] std::size_t oldest() const noexcept { return links_[end_].after; }

 private:
  struct Link {
    std::size_t before = 0;
    std::size_t after = 0;
  };
  std::vector<Link> links_;
  std::size_t end_;  // the place before the oldest page and after the newest one
};

inline std::size_t pages_in(std::span<const std::uint32_t> trace) {
  return trace.empty() ? 0 : std::size_t{1} + *std::ranges::max_element(trace);
}

/// Returns how many pages come again after they have left, if `local_max` pages have room, and the page that was not
/// used for longest leaves. The first touch of a page costs no fetch.
inline std::size_t fetches_of_lru(std::span<const std::uint32_t> trace, std::size_t local_max) {
  enum class State : std::uint8_t { untouched, local, away };
  std::vector<State> states(pages_in(trace), State::untouched);
  UseOrder order(states.size());
  std::size_t local = 0;
  std::size_t fetches = 0;
  for (const std::uint32_t page : trace) {
    if (states[page] == State::local) {
      order.remove(page);
    } else {
      if (states[page] == State::away) ++fetches;
      if (local == local_max) {
        states[order.oldest()] = State::away;
        order.remove(order.oldest());
      } else {
        ++local;
      }
      states[page] = State::local;
    }
    order.append(page);
  }
  return fetches;
}

/// Returns for each access when its page is accessed next, or trace.size() if never.
inline std::vector<std::uint32_t> next_uses(std::span<const std::uint32_t> trace) {
  const auto never = static_cast<std::uint32_t>(trace.size());
  std::vector<std::uint32_t> next_of_page(pages_in(trace), never);
  std::vector<std::uint32_t> result(trace.size());
  for (std::uint32_t now = never; now-- > 0;) result[now] = std::exchange(next_of_page[trace[now]], now);
  return result;
}

/// The same as fetches_of_lru(), but the page leaves that is used again last (Belady's OPT). No policy that fetches
/// pages only when they are touched fetches fewer.
inline std::size_t fetches_of_opt(std::span<const std::uint32_t> trace, std::size_t local_max) {
  struct Use {
    std::uint32_t next;
    std::uint32_t page;
    bool operator<(const Use& other) const noexcept { return next < other.next; }
  };
  enum class State : std::uint8_t { untouched, local, away };
  const std::vector<std::uint32_t> next = next_uses(trace);
  std::vector<State> states(pages_in(trace), State::untouched);
  // A heap of the next use of each local page, and of past uses. All past ones are below the future ones.
  std::vector<Use> uses;
  std::size_t local = 0;
  std::size_t fetches = 0;
  for (std::uint32_t now = 0; now < trace.size(); ++now) {
    const std::uint32_t page = trace[now];
    if (states[page] != State::local) {
      if (states[page] == State::away) ++fetches;
      if (local == local_max) {
        states[uses.front().page] = State::away;
        std::pop_heap(uses.begin(), uses.end());
        uses.pop_back();
      } else {
        ++local;
      }
      states[page] = State::local;
    }
    if (uses.size() > 4 * local_max) {
      std::erase_if(uses, [&](const Use& each) { return each.next <= now; });
      std::make_heap(uses.begin(), uses.end());
    }
    uses.push_back({next[now], page});
    std::push_heap(uses.begin(), uses.end());
  }
  return fetches;
}

}  // namespace tonari::test
