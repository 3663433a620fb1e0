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

/// The pages of a heap, of which ranks take some, for ever. Each rank has a part of them, its home; how much of a part
/// is taken stands in a word at that rank, which all ranks change by atomic operations.
///
///   part of rank 0          part of rank 1          ...
///   +---------+------------+---------+------------+
///   | taken   |            | taken   |            |
///   +---------+------------+---------+------------+
///
/// Threads: any, but for construction and destruction, which are collective.
class HeapPages {
 public:
  /// Throws SetupError.
  HeapPages(Job& job, std::uint64_t bytes, bool homes_move);

  /// Pages side by side, of this rank's part or else of another's; null where no part has so many.
  [[nodiscard]] std::byte* take(std::uint64_t pages) noexcept;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return memory_->bytes(); }
  [[nodiscard]] std::uint64_t pages_a_part() const noexcept { return pages_a_part_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  /// Taken of all parts; of those whose rank is gone, all.
  [[nodiscard]] std::uint64_t pages_taken() noexcept;

 private:
  [[nodiscard]] std::byte* take_in_turn(std::size_t turn, std::uint64_t pages) noexcept;

  const int rank_;
  const std::uint64_t pages_a_part_;
  std::shared_ptr<detail::Memory> memory_;
  const std::size_t parts_;              // one a rank
  Window words_;                         // a word a rank: pages taken of its part
  std::atomic<std::size_t> used_up_{0};  // so many parts, this rank's and then the next ones', have nothing left.
                                         // Relaxed: who sees an old value looks there once more
};

}  // namespace tonari::share
