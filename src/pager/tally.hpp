#pragma once

#include "pager/page.hpp"
#include "pager/statistics.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tonari::pager {

/// The limit of pages in memory, and the marks derived from it.
struct Marks {
  static constexpr Marks of(std::size_t limit) noexcept {
    const std::size_t margin = std::clamp<std::size_t>(limit / 64, 16, 4 * block_pages);
    return {limit, limit - margin, limit - 2 * margin};
  }

  std::size_t limit;  // not exceeded, if possible
  std::size_t high;   // above this, room is made in the background
  std::size_t low;    // down to this
};

/// A pager's limit, its pages in memory, and its statistics. Where threads of the address space serve their own faults,
/// it is in memory that they share with the pager.
///
/// Threads: any.
class Tally {
 public:
  Counters counters;

  void set_limit(std::size_t pages) noexcept { limit_.store(pages, std::memory_order_relaxed); }
  [[nodiscard]] Marks marks() const noexcept { return Marks::of(limit_.load(std::memory_order_relaxed)); }
  void set_scattered(bool scattered) noexcept { scattered_.store(scattered, std::memory_order_relaxed); }
  /// Returns true if streams may read whole blocks. Each then holds some, and one buffer is kept ready for the next. If
  /// most faults are scattered, that is too much of a small memory.
  [[nodiscard]] bool has_room_for_blocks() const noexcept {
    constexpr std::size_t some = 16 * block_pages;
    constexpr std::size_t plenty = 64 * block_pages;
    return marks().limit >= (scattered_.load(std::memory_order_relaxed) ? plenty : some);
  }

  [[nodiscard]] std::size_t resident() const noexcept { return resident_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t resident_peak() const noexcept { return resident_peak_.load(std::memory_order_relaxed); }
  void add_resident(std::size_t pages) noexcept {
    const std::size_t now = resident_.fetch_add(pages, std::memory_order_relaxed) + pages;
    if (now > resident_peak()) resident_peak_.store(now, std::memory_order_relaxed);
  }
  void remove_resident(std::size_t pages) noexcept { resident_.fetch_sub(pages, std::memory_order_relaxed); }

  [[nodiscard]] std::size_t touched() const noexcept { return touched_.load(std::memory_order_relaxed); }
  /// The number may be negative: the sum wraps around.
  void add_touched(std::size_t pages) noexcept { touched_.fetch_add(pages, std::memory_order_relaxed); }

  /// Makes `pages_in_again` count only pages that come more than once from now on.
  void count_anew() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

  // Threads that serve their own faults tell the pager that there is too little room.

  /// Returns true if the thread must wake the pager; false if that has been done, and the pager has not made room yet.
  [[nodiscard]] bool wish_for_room() noexcept {
    Wish none = Wish::none;
    return wish_.load(std::memory_order_relaxed) == none &&
           wish_.compare_exchange_strong(none, Wish::told, std::memory_order_relaxed);
  }
  [[nodiscard]] bool has_wish() const noexcept { return wish_.load(std::memory_order_relaxed) == Wish::told; }
  /// Returns true if there is a wish that the pager has not taken yet.
  [[nodiscard]] bool take_wish() noexcept {
    Wish told = Wish::told;
    return has_wish() && wish_.compare_exchange_strong(told, Wish::taken, std::memory_order_relaxed);
  }
  void made_room() noexcept {
    Wish taken = Wish::taken;
    if (wish_.load(std::memory_order_relaxed) != taken) return;
    wish_.compare_exchange_strong(taken, Wish::none, std::memory_order_relaxed);
  }

 private:
  // Relaxed: each limit is used on its own, and a change that is seen late takes effect late.
  std::atomic<std::size_t> limit_{0};          // in pages
  std::atomic<bool> scattered_{false};         // relaxed: as the limit
  std::atomic<std::size_t> resident_{0};       // relaxed: in pages; the limit may be applied a page early or late
  std::atomic<std::size_t> resident_peak_{0};  // relaxed: a statistic; threads at once may miss some pages
  std::atomic<std::size_t> touched_{0};        // relaxed: in pages; a statistic
  std::atomic<std::uint32_t> count_{1};        // relaxed: see count_anew()
  enum class Wish : std::uint8_t { none, told, taken };
  // Relaxed: a wish that comes too early is repeated by the next fault; at the limit, the pager serves all faults.
  std::atomic<Wish> wish_{Wish::none};
};

}  // namespace tonari::pager
