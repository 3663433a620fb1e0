#include "measure.hpp"

#include "harness/registry.hpp"
#include "kernels/shared_lines.hpp"
#include "kernels/steps_ways.hpp"

#include <tonari/guarded.hpp>

#include <vector>

namespace tonari::bench::sor {

namespace {

/// One shared array.
class Shared {
 public:
  Shared(Job& job, std::size_t n, const Sharing& sharing, bool by_rows)
      : job_(job),
        n_(n),
        named_(sharing.named),
        bands_(bands_of(n, job.size())),
        part_{by_rows ? bands_.of(job.rank().value()) : Band{1, n + 1},
              by_rows ? Band{1, n + 1} : bands_.of(job.rank().value())},
        grid_(job, bands_, sharing) {
    const Band own = bands_.owned(job.rank().value());
    for (std::size_t row = own.first; row < own.end; ++row) {
      for (std::size_t column = 0; column < n + 2; ++column) grid_.lines()[row][column] = start_value(row, column);
    }
    grid_.wrote_all();
    require(share::barrier(job));
  }

  void run(std::uint32_t steps) {
    for (; steps != 0; --steps, ++steps_) {
      for (const std::size_t colour : {0, 1}) {
        half_step(grid_.lines(), part_, colour);
        if (named_) name_part();
        require(share::barrier(job_));
      }
    }
  }

  /// Rank 0 reads the elements that all ranks wrote.
  std::size_t wrong() {
    if (job_.rank() != 0) return 0;
    const auto expected = serial_result(n_, steps_);
    return differing(grid_.lines(), {0, bands_.lines()}, expected.lines(), n_ + 2);
  }

 private:
  void name_part() const {
    for (std::size_t row = part_.rows.first; row < part_.rows.end; ++row) {
      grid_.wrote(row, part_.columns.first, part_.columns.end - part_.columns.first);
    }
  }

  Job& job_;
  std::size_t n_;
  bool named_;
  Bands bands_;
  Part part_;
  SharedLines<double> grid_;
  std::uint64_t steps_ = 0;
};

/// Each rank has its columns; the outermost, packed, are guarded.
class Guarded {
 public:
  Guarded(Job& job, TonariWire& wire, std::size_t n) : wire_(wire), columns_(n, wire.rank(), wire.size()) {
    for (int rank = 0; rank < wire.size(); ++rank) {
      for (int of_rank = 0; of_rank < 4; ++of_rank) {
        edges_.emplace_back(job, n, GuardedOptions{.on_write = OnWrite::update, .home = JobRank{rank}});
      }
    }
  }

  void run(std::uint32_t steps) {
    for (; steps != 0; --steps, ++steps_) {
      for (const std::size_t colour : {0, 1}) {
        columns_.relax(colour);
        exchange(colour);
      }
    }
  }

  std::size_t wrong() { return columns_.wrong(wire_, steps_); }

 private:
  static constexpr std::size_t left = 0;
  static constexpr std::size_t right = 1;

  // Nobody writes an edge again before all have passed the barrier of the other colour, and so have read it.
  void exchange(std::size_t colour) {
    const int rank = wire_.rank();
    const bool has_left = rank != 0;
    const bool has_right = rank + 1 != wire_.size();
    if (has_left) columns_.pack(1, edge(rank, left, colour).write().span());
    if (has_right) columns_.pack(columns_.count(), edge(rank, right, colour).write().span());
    wire_.barrier();
    if (has_left) columns_.unpack(0, edge(rank - 1, right, colour).read().span());
    if (has_right) columns_.unpack(columns_.count() + 1, edge(rank + 1, left, colour).read().span());
  }
  guarded_span<double>& edge(int rank, std::size_t side, std::size_t colour) {
    return edges_[static_cast<std::size_t>(rank) * 4 + side * 2 + colour];
  }

  TonariWire& wire_;
  Columns columns_;
  std::vector<guarded_span<double>> edges_;
  std::uint64_t steps_ = 0;
};

/// Threads of this process, some columns each.
class Threads {
 public:
  Threads(std::size_t n, int threads) : n_(n), bands_(bands_of(n, threads)), grid_(serial_result(n, 0)) {}

  void run(std::uint32_t steps) {
    for (; steps != 0; --steps, ++steps_) {
      for (const std::size_t colour : {0, 1}) {
        in_threads(bands_.ranks, [&](int thread) {
          half_step(grid_.lines(), {{1, n_ + 1}, bands_.of(thread)}, colour);
        });
      }
    }
  }

  std::size_t wrong() {
    const auto expected = serial_result(n_, steps_);
    return differing(grid_.lines(), {0, bands_.lines()}, expected.lines(), n_ + 2);
  }

 private:
  std::size_t n_;
  Bands bands_;
  LocalLines<double> grid_;
  std::uint64_t steps_ = 0;
};

void run_worker(const Options& options) {
  const StepsWays ways{
      .message = run<TonariWire>,
      .share =
          [](Job& job, TonariWire& wire, const Options& of, Output& output) {
            Shared program(job, order(of), sharing_of(of), of.text("deal", "columns") == "rows");
            measure_steps(wire, task_of(of, job.size()), program, output);
          },
      .guarded =
          [](Job& job, TonariWire& wire, const Options& of, Output& output) {
            Guarded program(job, wire, order(of));
            measure_steps(wire, task_of(of, wire.size()), program, output);
          },
      .threads =
          [](TonariWire& wire, const Options& of, Output& output) {
            Threads program(order(of), threads_of(of));
            measure_steps(wire, task_of(of, threads_of(of)), program, output);
          },
  };
  run_steps(options, ways);
}

const Measurement of_tonari("sor", "tonari", run_worker);

}  // namespace

}  // namespace tonari::bench::sor
