#pragma once

#include "pager/page.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::pager {

/// Faults that threads have met, and pass on to the pager. The thread holds the page's block, for the pager, and is
/// counted as waiting for it: it goes on when the pager lets go of the block.
///
///   free --thread: add()--> written --thread--> ready --pager: take()--> free
///
/// All bytes 0 mean empty. It may be in memory that several processes map.
///
/// Threads: any may add; one takes.
class PassedFaults {
 public:
  static constexpr std::size_t faults_max = 64;
  struct Fault {
    Address address = 0;
    std::uint32_t thread = 0;
  };

  /// Calls yield() while all places are in use, each only until the pager reads it.
  template <class Yield>
  void add(const Fault& fault, Yield yield) noexcept {
    for (std::uint64_t used = used_.load(std::memory_order_relaxed);;) {
      const std::uint64_t place = ~used & (used + 1);  // the lowest bit that is 0
      if (place == 0) {
        yield();
        used = used_.load(std::memory_order_relaxed);
        // (1) acquire: the pager has read the place's last fault. Pairs with (2).
      } else if (used_.compare_exchange_weak(used, used | place, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
        faults_[static_cast<std::size_t>(std::countr_zero(place))] = fault;
        ready_.fetch_or(place, std::memory_order_release);  // (3) publishes the fault to take()
        return;
      }
    }
  }

  [[nodiscard]] bool is_empty() const noexcept { return ready_.load(std::memory_order_relaxed) == 0; }

  /// Moves all faults to the beginning of `to`, and returns their number.
  std::size_t take(std::span<Fault, faults_max> to) noexcept {
    if (is_empty()) return 0;
    const std::uint64_t ready = ready_.exchange(0, std::memory_order_acquire);  // pairs with (3)
    std::size_t count = 0;
    for (std::uint64_t rest = ready; rest != 0; rest &= rest - 1) {
      to[count++] = faults_[static_cast<std::size_t>(std::countr_zero(rest))];
    }
    used_.fetch_and(~ready, std::memory_order_release);  // (2) they have been read
    return count;
  }

  /// The futex on which the pager sleeps.
  std::atomic<std::uint32_t> doorbell{0};

 private:
  std::atomic<std::uint64_t> used_{0};
  alignas(64) std::atomic<std::uint64_t> ready_{0};
  std::array<Fault, faults_max> faults_{};
};

}  // namespace tonari::pager
