#pragma once

// Question: how fast is NPB's integer sort with messages, with shared arrays, and with threads?
// Method:   class S, W or A of IS. A step counts each rank's keys per bucket, sums the counts, deals buckets to the
//           ranks, moves the keys there, and ranks them. All cases use the same code (integer_sort.hpp), except for the
//           exchange:
//             message  an all-reduce, an all-to-all, and nonblocking sends and receives of the keys
//             share    counts and keys in shared arrays: each rank writes its counts, and its keys to the place where
//                      their new owner reads them; three barriers
//             openmp   the same in the memory of one process, with threads
//           After ten steps the keys are as at the beginning. Steps are timed in batches of about two milliseconds
//           (steps.hpp).
// Output:   rate in million keys per second against ranks, one sample per batch, of the slowest rank. Check: keys that
//           NPB finds misplaced, five in each step; at the end, keys that are lost or not in order.

#include "kernels/integer_sort.hpp"
#include "kernels/steps.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::is {

using integer_sort::Sort;
using integer_sort::SortClass;
using integer_sort::Sorted;

inline const SortClass& class_of(const Options& options) {
  const auto name = options.text("class", "S");
  const auto* const found = std::ranges::find(integer_sort::sort_classes, name, &SortClass::name);
  if (found == integer_sort::sort_classes.end()) throw std::invalid_argument("is: there is no class " + name);
  return *found;
}

/// The result of a rank. Sent in this layout.
struct Found {
  std::uint64_t misplaced = 0;
  Sorted sorted{};
};

inline std::size_t wrong_of(const std::vector<Found>& ranks) {
  std::vector<Sorted> sorted;
  std::size_t wrong = 0;
  for (const auto& rank : ranks) {
    wrong += rank.misplaced;
    sorted.push_back(rank.sorted);
  }
  return wrong + (is_sorted(sorted) ? 0 : 1);
}

/// Repeats one rank's sort.
template <class Exchange>
class Sorting {
 public:
  Sorting(Exchange& exchange, const SortClass& sort, int rank, int ranks) : sort_(exchange, sort, rank, ranks) {}

  void step() {
    if (iteration_ == integer_sort::iterations_max) {
      sort_.restart();
      iteration_ = 0;
    }
    misplaced_ += static_cast<std::uint64_t>(sort_.iterate(++iteration_));
  }
  [[nodiscard]] Found found() const { return {misplaced_, sort_.sorted()}; }

 private:
  Sort<Exchange> sort_;
  int iteration_ = 0;
  std::uint64_t misplaced_ = 0;
};

/// One Sorting per rank, as a Program for measure_steps().
template <StartedWire W, class Exchange>
class Program {
 public:
  Program(W& wire, Exchange& exchange, const SortClass& sort)
      : wire_(wire), sorting_(exchange, sort, wire.rank(), wire.size()) {}

  void run(std::uint32_t steps) {
    for (; steps != 0; --steps) sorting_.step();
  }
  std::size_t wrong() {
    constexpr int tag_found = 59;
    const auto all = gather_values(wire_, wire_.size(), sorting_.found(), tag_found);
    return wire_.rank() == 0 ? wrong_of(all) : 0;
  }

 private:
  W& wire_;
  Sorting<Exchange> sorting_;
};

/// Exchanges keys by messages.
template <CollectiveWire W>
class WireExchange {
 public:
  explicit WireExchange(W& wire) noexcept : wire_(wire) {}

  void sum(std::vector<std::int64_t>& values) {
    doubles_.assign(values.begin(), values.end());  // exact below 2^53
    wire_.all_reduce(doubles_);
    std::ranges::transform(doubles_, values.begin(), [](double value) { return static_cast<std::int64_t>(value); });
  }
  void all_to_all(const std::vector<std::size_t>& sent, std::vector<std::size_t>& received) {
    wire_.all_to_all(std::as_bytes(std::span(sent)), std::as_writable_bytes(std::span(received)));
  }
  void all_to_all_v(const std::vector<int>& sent, const std::vector<std::size_t>& sent_counts,
                    std::vector<int>& received, const std::vector<std::size_t>& received_counts) {
    constexpr int tag_keys = 58;
    const int size = wire_.size();
    const int rank = wire_.rank();
    for (int distance = 1; distance < size; ++distance) {
      const int source = (rank + size - distance) % size;
      const auto part = part_of(std::span(received), received_counts, source);
      requests_.push_back(wire_.start_receive(std::as_writable_bytes(part), source, tag_keys));
    }
    for (int distance = 1; distance < size; ++distance) {
      const int to = (rank + distance) % size;
      requests_.push_back(wire_.start_send(std::as_bytes(part_of(std::span(sent), sent_counts, to)), to, tag_keys));
    }
    std::ranges::copy(part_of(std::span(sent), sent_counts, rank),
                      part_of(std::span(received), received_counts, rank).begin());
    wire_.wait_all(requests_);
    requests_.clear();
  }

 private:
  template <class T>
  static std::span<T> part_of(std::span<T> all, const std::vector<std::size_t>& counts, int rank) {
    const auto end = counts.begin() + rank;
    return all.subspan(std::accumulate(counts.begin(), end, std::size_t{0}), *end);
  }

  W& wire_;
  std::vector<double> doubles_;
  std::vector<typename W::Request> requests_;
};

inline StepsTask task_of(const Options& options, int ranks) {
  StepsTask task = steps_task(options, ranks);
  task.operations = static_cast<double>(class_of(options).keys());
  task.unit = "Mkeys/s";
  task.a_unit = 1;
  return task;
}

/// The case `message`.
template <CollectiveWire W>
void run(W& wire, const Options& options, Output& output) {
  output.parameter("processors", processors(gather_places(wire)));
  WireExchange<W> exchange(wire);
  Program<W, WireExchange<W>> program(wire, exchange, class_of(options));
  measure_steps(wire, task_of(options, wire.size()), program, output);
}

}  // namespace tonari::bench::is
