#pragma once

#include <cstdint>

namespace tonari::pager {

/// Tells whether scattered faults or streams prevail lately, by the pages that they bring.
///
/// Threads: one.
class FaultMix {
 public:
  void add_stream(std::uint64_t pages) noexcept { add(streamed_, pages); }
  void add_scattered() noexcept { add(scattered_, 1); }
  /// `total`: the faults that threads have served themselves until now. They count as scattered: faults that lead from
  /// one to the next are passed to the pager, and of many streams at a time each needs only its last pages.
  void see_faults_by_threads(std::uint64_t total) noexcept {
    add(scattered_, total - by_threads_);
    by_threads_ = total;
  }
  [[nodiscard]] bool is_scattered() const noexcept { return scattered_ > streamed_ + pages_remembered / 8; }

 private:
  static constexpr std::uint64_t pages_remembered = 1 << 15;

  void add(std::uint64_t& pages, std::uint64_t more) noexcept {
    pages += more;
    for (; scattered_ + streamed_ > pages_remembered; scattered_ /= 2) streamed_ /= 2;
  }

  std::uint64_t scattered_ = 0;
  std::uint64_t streamed_ = 0;
  std::uint64_t by_threads_ = 0;
};

}  // namespace tonari::pager
