#include "cli/far_statistics.hpp"

#include "job/memory.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

namespace tonari::cli {

namespace {

using job::memory_text;
using Histogram = decltype(pager::Statistics::wait_ns_histogram);

// Upper end of a bucket of the histogram.
double end_us(std::size_t bucket) { return static_cast<double>(std::uint64_t{2} << bucket) / 1000; }

// A percentile of the threads' waits, rounded up to the end of its bucket.
double wait_us(const Histogram& histogram, double percent) {
  const auto all = static_cast<double>(std::accumulate(histogram.begin(), histogram.end(), std::uint64_t{0}));
  if (all == 0) return 0;
  std::size_t bucket = 0;
  for (std::uint64_t passed = histogram[0]; static_cast<double>(passed) * 100 < all * percent;) {
    passed += histogram[++bucket];
  }
  return end_us(bucket);
}

// The cumulated share of faults at the end of each bucket that has at least 1 % of them.
std::string histogram_text(const Histogram& histogram) {
  const std::uint64_t all = std::accumulate(histogram.begin(), histogram.end(), std::uint64_t{0});
  std::string text;
  std::uint64_t passed = 0;
  for (std::size_t bucket = 0; bucket < histogram.size(); ++bucket) {
    passed += histogram[bucket];
    if (histogram[bucket] == 0 || histogram[bucket] * 100 < all) continue;
    text += fmt::format("{}{:.0f} % in {:.1f} us", text.empty() ? "\nlatency:    " : ", ",
                        100.0 * static_cast<double>(passed) / static_cast<double>(all), end_us(bucket));
  }
  return text;
}

std::string packed_text(const far::Statistics& all) {
  if (all.packed_bytes_out == 0) return {};
  return fmt::format("\npacked:     kept {} in {} (lz4); all pages that were sent took {}", memory_text(all.kept_bytes),
                     memory_text(all.packed_bytes), memory_text(all.packed_bytes_out));
}

std::string file_text(const far::Statistics& all) {
  if (all.in_file == 0 || all.capacity_bytes == 0) return {};
  return fmt::format("\nfile:       keeps cold pages: {} were written, {} were read", memory_text(all.bytes_to_file),
                     memory_text(all.bytes_from_file));
}

std::string processes_text(const far::Statistics& all) {
  return all.processes < 2 ? std::string() : fmt::format("; used by {} processes", all.processes);
}

// Says how much data there was, if it took much more room.
std::string sparse_text(std::uint64_t data_bytes, std::uint64_t used_bytes) {
  if (data_bytes == 0 || used_bytes / 2 <= data_bytes) return {};
  return fmt::format(" (in pieces of 2 MiB, for {} of sparse data)", memory_text(data_bytes));
}

// Says where the program's other pages were.
std::string stored_text(const far::Statistics& all) {
  std::string in_file;
  if (all.in_file != 0) {
    in_file = fmt::format("{} of disk space in a file{}", memory_text(all.file_peak_bytes),
                          sparse_text(all.file_data_peak_bytes, all.file_peak_bytes));
  }
  if (all.in_file != 0 && all.capacity_bytes == 0) return in_file;
  return fmt::format("{} of {} at {} server{}{}{}{}", memory_text(all.stored_peak_bytes),
                     memory_text(all.capacity_bytes), all.servers, all.servers == 1 ? "" : "s",
                     sparse_text(all.stored_data_peak_bytes, all.stored_peak_bytes), in_file.empty() ? "" : ", ",
                     in_file);
}

// A limit in percent follows the memory that is touched, and falls when that is freed.
std::string limit_text(const far::Statistics& all) {
  if (all.limit_bytes == all.limit_peak_bytes) return fmt::format("limit {}", memory_text(all.limit_bytes));
  return fmt::format("limit at most {}, at the end {}", memory_text(all.limit_peak_bytes),
                     memory_text(all.limit_bytes));
}

double seconds_of(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

double mean_us(const pager::Statistics& of) {
  return of.faults == 0 ? 0 : static_cast<double>(of.wait_ns) / 1000 / static_cast<double>(of.faults);
}

}  // namespace

std::string statistics_text(const far::Statistics& all) {
  const pager::Statistics& pager = all.pager;
  return fmt::format(
      "far memory: at most {} in use, {} local ({}), {}{}\n"
      "faults:     {}; threads waited {:.3f} s for pages, {:.1f} us per fault: half within {:.1f} us, 99 % within "
      "{:.1f} us{}\n"
      "read ahead: {} blocks of 2 MiB, {} of them used, {} fetched in vain; {} pages were used again before they had "
      "been sent\n"
      "moved:      {} in, {} out; {} unchanged pages and {} pages of zeros were not sent{}{}",
      memory_text(all.in_use_peak_bytes), memory_text(pager.resident_peak_bytes), limit_text(all), stored_text(all),
      processes_text(all), pager.faults, seconds_of(pager.wait_ns), mean_us(pager),
      wait_us(pager.wait_ns_histogram, 50), wait_us(pager.wait_ns_histogram, 99),
      histogram_text(pager.wait_ns_histogram), pager.blocks_read_ahead, pager.read_ahead_hits,
      memory_text(pager.bytes_in_vain), pager.second_chances, memory_text(pager.bytes_in), memory_text(pager.bytes_out),
      pager.pages_clean, pager.pages_of_zeros, packed_text(all), file_text(all));
}

std::string statistics_as_json(const far::Statistics& all) {
  const pager::Statistics& pager = all.pager;
  nlohmann::ordered_json json{{"in_use_bytes", all.in_use_bytes},
                              {"in_use_peak_bytes", all.in_use_peak_bytes},
                              {"touched_bytes", pager.touched_bytes},
                              {"resident_bytes", pager.resident_bytes},
                              {"resident_peak_bytes", pager.resident_peak_bytes},
                              {"limit_bytes", all.limit_bytes},
                              {"limit_peak_bytes", all.limit_peak_bytes},
                              {"stored_bytes", all.stored_bytes},
                              {"stored_peak_bytes", all.stored_peak_bytes},
                              {"stored_data_peak_bytes", all.stored_data_peak_bytes},
                              {"capacity_bytes", all.capacity_bytes},
                              {"kept_bytes", all.kept_bytes},
                              {"packed_bytes", all.packed_bytes},
                              {"packed_bytes_out", all.packed_bytes_out},
                              {"in_file", all.in_file != 0},
                              {"file_bytes", all.file_bytes},
                              {"file_peak_bytes", all.file_peak_bytes},
                              {"file_data_peak_bytes", all.file_data_peak_bytes},
                              {"bytes_to_file", all.bytes_to_file},
                              {"bytes_from_file", all.bytes_from_file},
                              {"servers", all.servers},
                              {"processes", all.processes},
                              {"system_calls_fault", all.reaches_everything != 0},
                              {"faults", pager.faults},
                              {"faults_by_threads", pager.faults_by_threads},
                              {"fault_seconds", seconds_of(pager.fault_ns)},
                              {"wait_seconds", seconds_of(pager.wait_ns)},
                              {"wait_us_mean", mean_us(pager)},
                              {"wait_ns_histogram", pager.wait_ns_histogram},
                              {"blocks_read_ahead", pager.blocks_read_ahead},
                              {"read_ahead_hits", pager.read_ahead_hits},
                              {"second_chances", pager.second_chances},
                              {"bytes_in", pager.bytes_in},
                              {"bytes_in_vain", pager.bytes_in_vain},
                              {"bytes_out", pager.bytes_out},
                              {"pages_clean", pager.pages_clean},
                              {"pages_of_zeros", pager.pages_of_zeros},
                              {"pages_kept", pager.pages_kept},
                              {"blocks_taken_out", pager.blocks_taken_out},
                              {"blocks_taken_out_by_faults", pager.blocks_taken_out_by_faults},
                              {"times_over_limit", pager.times_over_limit},
                              {"failures", pager.failures}};
  return json.dump();
}

std::string progress_text(const far::Statistics& now, const far::Statistics& before) {
  const pager::Statistics& pager = now.pager;
  Histogram waits{};
  std::ranges::transform(pager.wait_ns_histogram, before.pager.wait_ns_histogram, waits.begin(), std::minus{});
  return fmt::format(
      "{} local of {} in use (limit {}); in the last second {} faults, waits of {:.0f} ms, 99 % within {:.1f} us, {} "
      "blocks "
      "read ahead used, {} in, {} out",
      memory_text(pager.resident_bytes), memory_text(now.in_use_bytes), memory_text(now.limit_bytes),
      pager.faults - before.pager.faults, seconds_of(pager.wait_ns - before.pager.wait_ns) * 1000, wait_us(waits, 99),
      pager.read_ahead_hits - before.pager.read_ahead_hits, memory_text(pager.bytes_in - before.pager.bytes_in),
      memory_text(pager.bytes_out - before.pager.bytes_out));
}

}  // namespace tonari::cli
