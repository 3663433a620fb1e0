#include "measure.hpp"

#include "harness/registry.hpp"
#include "kernels/shared_lines.hpp"
#include "kernels/steps_ways.hpp"

#include <barrier>
#include <memory>

namespace tonari::bench::is {

namespace {

/// The counts of each rank, and the keys, in memory that all ranks access.
struct Common {
  std::vector<std::int64_t*> rows;  // per rank: values to sum, then the number of its keys for each rank
  std::size_t summed;
  int* keys;

  static std::size_t summed_of(const SortClass& sort) { return sort.buckets() + sort.test_index.size(); }
  static std::size_t row_elements(const SortClass& sort, int ranks) {
    return summed_of(sort) + static_cast<std::size_t>(ranks);
  }
  [[nodiscard]] std::size_t keys_for(std::size_t from, std::size_t to) const noexcept {
    return static_cast<std::size_t>(rows[from][summed + to]);
  }
};

/// Exchanges keys in common memory. `Meeting` has wrote_row(first, count), wrote_keys(first, count), and barrier().
template <class Meeting>
class CommonExchange {
 public:
  CommonExchange(const Common& common, Meeting& meeting, int rank)
      : common_(common), meeting_(meeting), rank_(static_cast<std::size_t>(rank)) {}

  void sum(std::vector<std::int64_t>& values) {
    write_row(values, 0);
    std::ranges::fill(values, 0);
    for (const auto* const row : common_.rows) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += row[i];
    }
  }
  void all_to_all(const std::vector<std::size_t>& sent, std::vector<std::size_t>& received) {
    write_row(sent, common_.summed);
    for (std::size_t rank = 0; rank < received.size(); ++rank) received[rank] = common_.keys_for(rank, rank_);
  }
  /// The keys for one rank are contiguous, in the order of their source ranks.
  void all_to_all_v(const std::vector<int>& sent, const std::vector<std::size_t>& sent_counts,
                    std::vector<int>& received, const std::vector<std::size_t>&) {
    std::size_t place = 0;
    std::size_t mine = 0;
    const int* from = sent.data();
    for (std::size_t to = 0; to < sent_counts.size(); ++to) {
      if (to == rank_) mine = place;
      for (std::size_t rank = 0; rank < sent_counts.size(); ++rank) {
        if (rank == rank_) {
          std::copy_n(from, sent_counts[to], common_.keys + place);
          meeting_.wrote_keys(place, sent_counts[to]);
          from += sent_counts[to];
        }
        place += common_.keys_for(rank, to);
      }
    }
    meeting_.barrier();
    std::copy_n(common_.keys + mine, received.size(), received.data());
  }

 private:
  template <class T>
  void write_row(const std::vector<T>& values, std::size_t first) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      common_.rows[rank_][first + i] = static_cast<std::int64_t>(values[i]);
    }
    meeting_.wrote_row(first, values.size());
    meeting_.barrier();
  }

  const Common& common_;
  Meeting& meeting_;
  std::size_t rank_;
};

/// The case `share`: shared arrays, as `Common` and `Meeting`.
class SharedArrays {
 public:
  SharedArrays(Job& job, const SortClass& sort, const Sharing& sharing)
      : job_(job),
        named_(sharing.named),
        pitch_(pages_of(Common::row_elements(sort, job.size()))),
        rows_(job, pitch_ * static_cast<std::size_t>(job.size()), by_rank(sharing)),
        keys_(job, sort.keys(), {.writes_are_named = sharing.named}),
        common_{{}, Common::summed_of(sort), keys_.data()} {
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(job.size()); ++rank) {
      common_.rows.push_back(rows_.data() + rank * pitch_);
    }
  }

  [[nodiscard]] const Common& common() const noexcept { return common_; }

  void wrote_row(std::size_t first, std::size_t count) const {
    if (named_) rows_.wrote(job_.rank().index() * pitch_ + first, count);
  }
  void wrote_keys(std::size_t first, std::size_t count) const {
    if (named_ && count != 0) keys_.wrote(first, count);
  }
  void barrier() const { require(share::barrier(job_)); }

 private:
  static std::size_t pages_of(std::size_t elements) noexcept {
    constexpr std::size_t page_elements = 4096 / sizeof(std::int64_t);
    return (elements + page_elements - 1) / page_elements * page_elements;
  }
  [[nodiscard]] ArrayOptions by_rank(const Sharing& sharing) const {
    return {.placement = Placement::by_function,
            .home = [this](std::uint64_t offset) { return JobRank{offset / sizeof(std::int64_t) / pitch_}; },
            .writes_are_named = sharing.named};
  }

  Job& job_;
  bool named_;
  std::size_t pitch_;  // elements from row to row: entire pages
  shared_array<std::int64_t> rows_;
  shared_array<int> keys_;
  Common common_;
};

/// The same for threads of this process.
class ThreadMeeting {
 public:
  explicit ThreadMeeting(int threads) : barrier_(threads) {}

  void wrote_row(std::size_t, std::size_t) const noexcept {}
  void wrote_keys(std::size_t, std::size_t) const noexcept {}
  void barrier() { barrier_.arrive_and_wait(); }

 private:
  std::barrier<> barrier_;
};

/// The case `openmp`: one Sorting per thread.
class Threads {
 public:
  Threads(const SortClass& sort, int threads)
      : meeting_(threads),
        rows_(static_cast<std::size_t>(threads)),
        keys_(sort.keys()),
        common_{{}, Common::summed_of(sort), keys_.data()} {
    for (int thread = 0; thread < threads; ++thread) {
      auto& row = rows_[static_cast<std::size_t>(thread)];
      row.resize(Common::row_elements(sort, threads));
      common_.rows.push_back(row.data());
      exchanges_.push_back(std::make_unique<Exchange>(common_, meeting_, thread));
      sortings_.push_back(std::make_unique<Sorting<Exchange>>(*exchanges_.back(), sort, thread, threads));
    }
  }

  void run(std::uint32_t steps) {
    in_threads(static_cast<int>(sortings_.size()), [&](int thread) {
      for (std::uint32_t step = 0; step < steps; ++step) sortings_[static_cast<std::size_t>(thread)]->step();
    });
  }
  [[nodiscard]] std::size_t wrong() const {
    std::vector<Found> found;
    for (const auto& sorting : sortings_) found.push_back(sorting->found());
    return wrong_of(found);
  }

 private:
  using Exchange = CommonExchange<ThreadMeeting>;

  ThreadMeeting meeting_;
  std::vector<std::vector<std::int64_t>> rows_;
  std::vector<int> keys_;
  Common common_;
  std::vector<std::unique_ptr<Exchange>> exchanges_;
  std::vector<std::unique_ptr<Sorting<Exchange>>> sortings_;
};

inline void run_shared(Job& job, TonariWire& wire, const Options& options, Output& output) {
  const auto& sort = class_of(options);
  SharedArrays arrays(job, sort, sharing_of(options));
  CommonExchange<SharedArrays> exchange(arrays.common(), arrays, job.rank().value());
  Program<TonariWire, CommonExchange<SharedArrays>> program(wire, exchange, sort);
  measure_steps(wire, task_of(options, job.size()), program, output);
}

void run_worker(const Options& options) {
  const StepsWays ways{
      .message = run<TonariWire>,
      .share = run_shared,
      .threads =
          [](TonariWire& wire, const Options& of, Output& output) {
            Threads program(class_of(of), threads_of(of));
            measure_steps(wire, task_of(of, threads_of(of)), program, output);
          },
  };
  run_steps(options, ways);
}

const Measurement of_tonari("is", "tonari", run_worker);

}  // namespace

}  // namespace tonari::bench::is
