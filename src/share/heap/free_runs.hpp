#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace tonari::share {

/// Free pages, as runs that are not adjacent to each other. Stored outside of these pages.
///
/// Threads: one at a time.
class FreeRuns {
 public:
  /// Returns the first run of adjacent pages that is long enough, or null.
  [[nodiscard]] std::byte* take(std::uint64_t pages) noexcept;
  /// Throws std::bad_alloc; then the pages are not stored.
  void add(std::byte* start, std::uint64_t pages);

 private:
  std::map<std::byte*, std::uint64_t> pages_{};  // start of each run, and its pages
};

}  // namespace tonari::share
