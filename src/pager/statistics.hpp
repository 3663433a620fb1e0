#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tonari::pager {

/// What a pager has done so far.
struct Statistics {
  static constexpr std::size_t buckets = 32;

  std::uint64_t resident_bytes = 0;  ///< In regions and in buffers: what the limit is about.
  /// Blocks of 2 MiB of which something ever came, and that have not been discarded as a whole since.
  std::uint64_t touched_bytes = 0;
  std::uint64_t faults = 0;           ///< Answered; those below are among them.
  std::uint64_t faults_met_held = 0;  ///< Had to come again, since somebody was at work on the block. Not answered yet.
  std::uint64_t faults_late = 0;      ///< The page was there when the fault was read.
  std::uint64_t second_chances = 0;   ///< Pages got back from a buffer after they were taken out.
  std::uint64_t blocks_read_ahead = 0;
  std::uint64_t read_ahead_hits = 0;  ///< Of these blocks, those that a fault wanted.
  std::uint64_t bytes_in = 0;         ///< From sources.
  std::uint64_t bytes_out = 0;        ///< To sources.
  std::uint64_t pages_clean = 0;      ///< Taken out and as they are at the source: not sent.
  std::uint64_t pages_of_zeros = 0;   ///< Taken out and zeros: not sent either.
  std::uint64_t pages_kept = 0;  ///< Could not be taken out: pinned, shared with a child, or the source took no more.
  std::uint64_t blocks_taken_out = 0;
  std::uint64_t blocks_taken_out_by_faults = 0;  ///< By the fault thread, since nobody had made room.
  std::uint64_t times_over_limit = 0;            ///< A fault was answered though there was no room.
  std::uint64_t failures = 0;                    ///< Of sources.
  std::uint64_t fault_ns = 0;                    ///< From reading a fault to having answered it, all together.
  /// How many faults took 2^i to 2^(i + 1) - 1 ns.
  std::array<std::uint64_t, buckets> fault_ns_histogram{};

  Statistics& operator+=(const Statistics& other) noexcept;  ///< Of two pagers together.
};

/// The same while it is counted. All relaxed: nothing follows from a count.
class Counters {
 public:
  using Count = std::atomic<std::uint64_t>;

  Count faults{0};
  Count faults_met_held{0};
  Count faults_late{0};
  Count second_chances{0};
  Count blocks_read_ahead{0};
  Count read_ahead_hits{0};
  Count pages_in{0};
  Count pages_out{0};
  Count pages_clean{0};
  Count pages_of_zeros{0};
  Count pages_kept{0};
  Count blocks_taken_out{0};
  Count blocks_taken_out_by_faults{0};
  Count times_over_limit{0};
  Count failures{0};

  static void add(Count& count, std::uint64_t number = 1) noexcept {
    count.fetch_add(number, std::memory_order_relaxed);
  }
  void fault_took(std::uint64_t ns) noexcept {
    add(fault_ns_, ns);
    const auto bucket = static_cast<std::size_t>(std::bit_width(ns | 1) - 1);
    add(histogram_[bucket < Statistics::buckets ? bucket : Statistics::buckets - 1]);
  }
  [[nodiscard]] Statistics read() const noexcept;

 private:
  Count fault_ns_{0};
  std::array<Count, Statistics::buckets> histogram_{};
};

}  // namespace tonari::pager
