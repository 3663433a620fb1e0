#pragma once

#include <tonari/job.hpp>
#include <tonari/share.hpp>
#include <tonari/window.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tonari::share {

/// The pages of a heap. Ranks take pages and never give them back. Each rank is the home of one part; a word at that
/// rank has the number of pages taken from the part, and all ranks change it by atomic operations.
///
///   part of rank 0          part of rank 1          ...
///   +---------+------------+---------+------------+
///   | taken   |            | taken   |            |
///   +---------+------------+---------+------------+
///
/// Threads: any; construction and destruction are collective.
class HeapPages {
 public:
  /// Throws SetupError.
  HeapPages(Job& job, std::uint64_t bytes, bool homes_move);

  /// Takes adjacent pages, from this rank's part or else from another. Returns null if no part has so many.
  [[nodiscard]] std::byte* take(std::uint64_t pages) noexcept;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return memory_->bytes(); }
  [[nodiscard]] std::uint64_t pages_a_part() const noexcept { return pages_a_part_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  /// Returns the number of pages taken from all parts. A part whose rank has died counts as taken.
  [[nodiscard]] std::uint64_t pages_taken() noexcept;

 private:
  [[nodiscard]] std::byte* take_in_turn(std::size_t turn, std::uint64_t pages) noexcept;

  const int rank_;
  const std::uint64_t pages_a_part_;
  std::shared_ptr<detail::Memory> memory_;
  const std::size_t parts_;              // one per rank
  Window words_;                         // one word per rank: pages taken from its part
  std::atomic<std::size_t> used_up_{0};  // number of parts, from this rank's on, that have nothing left.
                                         // Relaxed: a thread that sees an old value tries once more
};

}  // namespace tonari::share
