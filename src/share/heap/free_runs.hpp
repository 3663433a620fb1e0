#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace tonari::share {

/// Pages that are free, as runs of neighbours: no two of them touch. Remembered apart from the pages themselves.
///
/// Threads: one at a time.
class FreeRuns {
 public:
  /// The first that are there side by side, or null.
  [[nodiscard]] std::byte* take(std::uint64_t pages) noexcept;
  /// Throws std::bad_alloc: then they are not remembered.
  void add(std::byte* start, std::uint64_t pages);

 private:
  std::map<std::byte*, std::uint64_t> pages_{};  // by where a run begins
};

}  // namespace tonari::share
