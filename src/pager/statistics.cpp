#include "pager/statistics.hpp"

#include "pager/page.hpp"

namespace tonari::pager {

Statistics& Statistics::operator+=(const Statistics& other) noexcept {
  resident_bytes += other.resident_bytes;
  resident_peak_bytes += other.resident_peak_bytes;
  touched_bytes += other.touched_bytes;
  faults += other.faults;
  faults_by_threads += other.faults_by_threads;
  faults_met_held += other.faults_met_held;
  faults_late += other.faults_late;
  second_chances += other.second_chances;
  blocks_read_ahead += other.blocks_read_ahead;
  read_ahead_hits += other.read_ahead_hits;
  bytes_in += other.bytes_in;
  bytes_in_vain += other.bytes_in_vain;
  bytes_in_again += other.bytes_in_again;
  bytes_out += other.bytes_out;
  pages_clean += other.pages_clean;
  pages_of_zeros += other.pages_of_zeros;
  pages_kept += other.pages_kept;
  blocks_taken_out += other.blocks_taken_out;
  blocks_taken_out_by_faults += other.blocks_taken_out_by_faults;
  times_over_limit += other.times_over_limit;
  failures += other.failures;
  fault_ns += other.fault_ns;
  wait_ns += other.wait_ns;
  short_run_ns += other.short_run_ns;
  for (std::size_t i = 0; i < buckets; ++i) wait_ns_histogram[i] += other.wait_ns_histogram[i];
  return *this;
}

Statistics Counters::read() const noexcept {
  const auto get = [](const Count& count) { return count.load(std::memory_order_relaxed); };
  Statistics result;
  result.faults = get(faults);
  result.faults_by_threads = get(faults_by_threads);
  result.faults_met_held = get(faults_met_held);
  result.faults_late = get(faults_late);
  result.second_chances = get(second_chances);
  result.blocks_read_ahead = get(blocks_read_ahead);
  result.read_ahead_hits = get(read_ahead_hits);
  result.bytes_in = get(pages_in) * page_bytes;
  result.bytes_in_vain = get(pages_in_vain) * page_bytes;
  result.bytes_in_again = get(pages_in_again) * page_bytes;
  result.bytes_out = get(pages_out) * page_bytes;
  result.pages_clean = get(pages_clean);
  result.pages_of_zeros = get(pages_of_zeros);
  result.pages_kept = get(pages_kept);
  result.blocks_taken_out = get(blocks_taken_out);
  result.blocks_taken_out_by_faults = get(blocks_taken_out_by_faults);
  result.times_over_limit = get(times_over_limit);
  result.failures = get(failures);
  result.fault_ns = get(fault_ns);
  result.wait_ns = get(wait_ns);
  result.short_run_ns = get(short_run_ns);
  for (std::size_t i = 0; i < histogram_.size(); ++i) result.wait_ns_histogram[i] = get(histogram_[i]);
  return result;
}

}  // namespace tonari::pager
