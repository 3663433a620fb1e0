#include "measure.hpp"

#include "harness/registry.hpp"
#include "kernels/guarded_lines.hpp"
#include "kernels/shared_lines.hpp"
#include "kernels/steps_ways.hpp"

namespace tonari::bench::jacobi {

namespace {

/// The case `share`: two shared arrays, and a barrier per step.
class Shared {
 public:
  Shared(Job& job, std::size_t n, const Sharing& sharing)
      : job_(job), n_(n), bands_(bands_of(n, job.size())), band_(bands_.of(job.rank().value())), grids_([&] {
          return SharedLines<double>(job, bands_, sharing);
        }) {
    for (auto* const grid : {&grids_.now(), &grids_.next()}) {
      fill(grid->lines(), bands_.owned(job.rank().value()), bands_.width);
      grid->wrote_all();
    }
    require(share::barrier(job));
  }

  void run(std::uint32_t steps) {
    for (; steps != 0; --steps, grids_.step()) {
      sweep(grids_.now().lines(), grids_.next().lines(), band_, n_);
      grids_.next().wrote_edges();
      require(share::barrier(job_));
      grids_.next().prefetch_neighbours();
    }
  }

  /// Rank 0 reads the elements that all ranks wrote.
  std::size_t wrong() {
    grids_.now().wrote_all();
    require(share::barrier(job_));
    if (job_.rank() != 0) return 0;
    const auto expected = serial_result(n_, grids_.steps());
    return differing(grids_.now().lines(), {0, bands_.lines()}, expected.lines(), bands_.width);
  }

 private:
  Job& job_;
  std::size_t n_;
  Bands bands_;
  Band band_;
  Grids<SharedLines<double>> grids_;
};

/// The case `guarded`: grids with guarded edges, and a barrier per step.
class Guarded {
 public:
  Guarded(Job& job, TonariWire& wire, std::size_t n)
      : wire_(wire), n_(n), bands_(bands_of(n, wire.size())), band_(bands_.of(wire.rank())), grids_([&] {
          return GuardedLines<double>(job, bands_);
        }) {
    for (auto* const grid : {&grids_.now(), &grids_.next()}) {
      const auto locks = grid->write();
      fill(grid->lines(), bands_.owned(wire.rank()), bands_.width);
    }
    wire.barrier();
  }

  void run(std::uint32_t steps) {
    for (; steps != 0; --steps, grids_.step()) {
      step(grids_.now(), grids_.next());
      wire_.barrier();
    }
  }

  std::size_t wrong() {
    const auto locks = grids_.now().read();
    if (wire_.rank() != 0) return differing_of_all<TonariWire, double>(wire_, bands_, grids_.now().lines(), {});
    return differing_of_all(wire_, bands_, grids_.now().lines(), serial_result(n_, grids_.steps()).lines());
  }

 private:
  void step(GuardedLines<double>& from, GuardedLines<double>& to) {
    const auto reading = from.read();
    {
      const auto writing = to.write();
      sweep(from.lines(), to.lines(), {band_.first, band_.first + 1}, n_);
      if (band_.first + 1 != band_.end) sweep(from.lines(), to.lines(), {band_.end - 1, band_.end}, n_);
    }
    sweep(from.lines(), to.lines(), {band_.first + 1, band_.end - 1}, n_);  // while the edges travel
  }

  TonariWire& wire_;
  std::size_t n_;
  Bands bands_;
  Band band_;
  Grids<GuardedLines<double>> grids_;
};

/// The case `openmp`: threads of this process, one band each.
class Threads {
 public:
  Threads(std::size_t n, int threads)
      : n_(n), bands_(bands_of(n, threads)), grids_([&] { return LocalLines<double>(bands_); }) {
    in_threads(bands_.ranks, [&](int thread) {
      for (auto* const grid : {&grids_.now(), &grids_.next()}) {
        fill(grid->lines(), bands_.owned(thread), bands_.width);
      }
    });
  }

  void run(std::uint32_t steps) {
    for (; steps != 0; --steps, grids_.step()) {
      in_threads(bands_.ranks,
                 [&](int thread) { sweep(grids_.now().lines(), grids_.next().lines(), bands_.of(thread), n_); });
    }
  }

  std::size_t wrong() {
    const auto expected = serial_result(n_, grids_.steps());
    return differing(grids_.now().lines(), {0, bands_.lines()}, expected.lines(), bands_.width);
  }

 private:
  std::size_t n_;
  Bands bands_;
  Grids<LocalLines<double>> grids_;
};

void run_worker(const Options& options) {
  const StepsWays ways{
      .message = run<TonariWire>,
      .share =
          [](Job& job, TonariWire& wire, const Options& of, Output& output) {
            Shared program(job, order(of), sharing_of(of));
            measure_steps(wire, task_of(of, job.size()), program, output);
          },
      .guarded =
          [](Job& job, TonariWire& wire, const Options& of, Output& output) {
            Guarded program(job, wire, order(of));
            measure_steps(wire, task_of(of, wire.size()), program, output);
          },
      .threads =
          [](TonariWire& wire, const Options& of, Output& output) {
            const int threads = threads_of(of);
            Threads program(order(of), threads);
            measure_steps(wire, task_of(of, threads), program, output);
          },
  };
  run_steps(options, ways);
}

const Measurement of_tonari("jacobi", "tonari", run_worker);

}  // namespace

}  // namespace tonari::bench::jacobi
