#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tonari::pager {

/// The pager's statistics up to now.
struct Statistics {
  static constexpr std::size_t buckets = 32;

  std::uint64_t resident_bytes = 0;       ///< In regions and in buffers; the limit applies to it.
  std::uint64_t resident_peak_bytes = 0;  ///< The most that was ever resident.
  /// Pages that have come since they were last discarded. Pages of zeros that came along with others count until they
  /// leave, if they are zeros then.
  std::uint64_t touched_bytes = 0;
  std::uint64_t faults = 0;             ///< Faults served, including the ones counted below.
  std::uint64_t faults_by_threads = 0;  ///< The part of `faults` that the program's threads served themselves.
  std::uint64_t faults_met_held = 0;    ///< Had to be repeated, because the block was held. Not in `faults`.
  std::uint64_t faults_late = 0;        ///< The page was present when the fault was read.
  std::uint64_t second_chances = 0;     ///< Pages moved back from a buffer after they were taken out.
  std::uint64_t blocks_read_ahead = 0;
  std::uint64_t read_ahead_hits = 0;  ///< Blocks read ahead that a fault then wanted.
  std::uint64_t bytes_in = 0;         ///< Fetched from sources.
  /// Fetched for blocks that were read ahead, and dropped before a fault wanted them. The pager does not see whether
  /// pages that are in place are used, so more may have been fetched in vain.
  std::uint64_t bytes_in_vain = 0;
  std::uint64_t bytes_in_again = 0;  ///< Pages that were not fetched for the first time since Pager::count_anew().
  std::uint64_t bytes_out = 0;       ///< Stored at sources.
  std::uint64_t pages_clean = 0;     ///< Taken out unchanged: not stored again.
  std::uint64_t pages_of_zeros = 0;  ///< Taken out as zeros: not stored either.
  std::uint64_t pages_kept = 0;      ///< Could not be taken out: pinned, shared with a child, or the source was full.
  std::uint64_t blocks_taken_out = 0;
  std::uint64_t blocks_taken_out_by_faults = 0;  ///< By the fault thread, because no mover had made room.
  std::uint64_t times_over_limit = 0;            ///< Faults served beyond the limit.
  std::uint64_t failures = 0;                    ///< Failures of sources.
  /// Total time that the fault thread spent on `faults`, and on the ones read with them that it had to drop.
  std::uint64_t fault_ns = 0;
  /// Total time that threads waited, from when the fault thread read their faults until they were woken. Also counts
  /// `faults_met_held`. Two wake-ups are not in it, the fault thread's and the waiting thread's.
  std::uint64_t wait_ns = 0;
  /// Total time that threads ran between two waits, if that was so short that most of it went into the two wake-ups
  /// (Pace). With `wait_ns`, the time in which threads got on only from page to page.
  std::uint64_t short_run_ns = 0;
  /// Number of `faults` whose threads waited 2^i to 2^(i + 1) - 1 ns.
  std::array<std::uint64_t, buckets> wait_ns_histogram{};

  Statistics& operator+=(const Statistics& other) noexcept;  ///< Adds another pager's.
};

/// Counts the statistics. All relaxed: nothing depends on a count.
class Counters {
 public:
  using Count = std::atomic<std::uint64_t>;

  Count faults{0};
  Count faults_by_threads{0};
  Count faults_met_held{0};
  Count faults_late{0};
  Count second_chances{0};
  Count blocks_read_ahead{0};
  Count read_ahead_hits{0};
  Count pages_in{0};
  Count pages_in_vain{0};
  Count pages_in_again{0};
  Count pages_out{0};
  Count pages_clean{0};
  Count pages_of_zeros{0};
  Count pages_kept{0};
  Count blocks_taken_out{0};
  Count blocks_taken_out_by_faults{0};
  Count times_over_limit{0};
  Count failures{0};
  Count fault_ns{0};
  Count wait_ns{0};
  Count short_run_ns{0};

  static void add(Count& count, std::uint64_t number = 1) noexcept {
    if (number != 0) count.fetch_add(number, std::memory_order_relaxed);
  }
  /// Counts the time that a thread waited for its page.
  void waited(std::uint64_t ns) noexcept {
    add(wait_ns, ns);
    add_to_histogram(ns);
  }
  void add_to_histogram(std::uint64_t ns) noexcept {
    const auto bucket = static_cast<std::size_t>(std::bit_width(ns | 1) - 1);
    add(histogram_[bucket < Statistics::buckets ? bucket : Statistics::buckets - 1]);
  }
  [[nodiscard]] Statistics read() const noexcept;

 private:
  std::array<Count, Statistics::buckets> histogram_{};
};

}  // namespace tonari::pager
