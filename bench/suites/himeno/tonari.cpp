#include "measure.hpp"

#include "harness/registry.hpp"
#include "kernels/guarded_lines.hpp"
#include "kernels/shared_lines.hpp"
#include "kernels/steps_ways.hpp"

#include <memory>
#include <numeric>

namespace tonari::bench::himeno {

namespace {

/// The case `share`: the pressure is a shared array.
class Shared {
 public:
  Shared(Job& job, const Shape& shape, const Sharing& sharing)
      : job_(job),
        shape_(shape),
        bands_(shape.bands(job.size())),
        band_(bands_.of(job.rank().value())),
        pressure_(job, bands_, sharing),
        planes_(shape, band_) {
    fill(pressure_.lines(), bands_.owned(job.rank().value()), shape);
    pressure_.wrote_all();
    require(share::barrier(job));
  }

  void run(std::uint32_t steps) {
    for (; steps != 0; --steps, ++done_.steps) {
      done_.gosa = planes_.relax(pressure_.lines());
      require(share::barrier(job_));  // all ranks have read the old pressure
      planes_.copy_back(pressure_.lines(), band_);
      pressure_.wrote_edges();
      require(share::barrier(job_));
      pressure_.prefetch_neighbours();
    }
  }

  [[nodiscard]] double gosa() const noexcept { return done_.gosa; }

  /// Rank 0 reads the elements that all ranks wrote.
  std::size_t wrong(double gosa) {
    pressure_.wrote_all();
    require(share::barrier(job_));
    if (job_.rank() != 0) return 0;
    const auto expected = serial_result(shape_, done_.steps);
    return differing(pressure_.lines(), {0, bands_.lines()}, expected.pressure.lines(), bands_.width) +
           (is_near(gosa, expected.gosa) ? 0 : 1);
  }

 private:
  Job& job_;
  Shape shape_;
  Bands bands_;
  Band band_;
  SharedLines<float> pressure_;
  Planes planes_;
  Done done_;
};

/// The case `guarded`: the outermost planes of each band are guarded.
class Guarded {
 public:
  Guarded(Job& job, TonariWire& wire, const Shape& shape)
      : wire_(wire),
        shape_(shape),
        bands_(shape.bands(wire.size())),
        band_(bands_.of(wire.rank())),
        pressure_(job, bands_),
        planes_(shape, band_) {
    {
      const auto locks = pressure_.write();
      fill(pressure_.lines(), bands_.owned(wire.rank()), shape);
    }
    wire.barrier();
  }

  void run(std::uint32_t steps) {
    for (; steps != 0; --steps, ++done_.steps) {
      relax();
      wire_.barrier();  // all ranks have read the old pressure
      copy_back();
      wire_.barrier();
    }
  }

  [[nodiscard]] double gosa() const noexcept { return done_.gosa; }

  std::size_t wrong(double gosa) {
    const auto locks = pressure_.read();
    if (wire_.rank() != 0) return differing_of_all<TonariWire, float>(wire_, bands_, pressure_.lines(), {});
    const auto expected = serial_result(shape_, done_.steps);
    return differing_of_all(wire_, bands_, pressure_.lines(), expected.pressure.lines()) +
           (is_near(gosa, expected.gosa) ? 0 : 1);
  }

 private:
  void relax() {
    const auto reading = pressure_.read();
    done_.gosa = planes_.relax(pressure_.lines());
  }
  void copy_back() {
    {
      const auto writing = pressure_.write();
      planes_.copy_back(pressure_.lines(), {band_.first, band_.first + 1});
      planes_.copy_back(pressure_.lines(), {band_.end - 1, band_.end});
    }
    planes_.copy_back(pressure_.lines(), {band_.first + 1, band_.end - 1});  // while the edges travel
  }

  TonariWire& wire_;
  Shape shape_;
  Bands bands_;
  Band band_;
  GuardedLines<float> pressure_;
  Planes planes_;
  Done done_;
};

/// The case `openmp`: threads of this process, one band each.
class Threads {
 public:
  Threads(const Shape& shape, int threads) : shape_(shape), bands_(shape.bands(threads)), pressure_(bands_) {
    planes_.resize(static_cast<std::size_t>(threads));
    gosas_.resize(planes_.size());
    in_threads(threads, [&](int thread) {
      planes_[static_cast<std::size_t>(thread)] = std::make_unique<Planes>(shape_, bands_.of(thread));
      fill(pressure_.lines(), bands_.owned(thread), shape_);
    });
  }

  void run(std::uint32_t steps) {
    for (; steps != 0; --steps, ++steps_) {
      in_threads(bands_.ranks, [&](int thread) {
        const auto i = static_cast<std::size_t>(thread);
        gosas_[i] = planes_[i]->relax(pressure_.lines());
      });
      in_threads(bands_.ranks, [&](int thread) {
        planes_[static_cast<std::size_t>(thread)]->copy_back(pressure_.lines(), bands_.of(thread));
      });
    }
  }

  [[nodiscard]] double gosa() const noexcept { return std::accumulate(gosas_.begin(), gosas_.end(), 0.0); }

  std::size_t wrong(double gosa) {
    const auto expected = serial_result(shape_, steps_);
    return differing(pressure_.lines(), {0, bands_.lines()}, expected.pressure.lines(), bands_.width) +
           (is_near(gosa, expected.gosa) ? 0 : 1);
  }

 private:
  Shape shape_;
  Bands bands_;
  LocalLines<float> pressure_;
  std::vector<std::unique_ptr<Planes>> planes_;
  std::vector<double> gosas_;
  std::uint64_t steps_ = 0;
};

void run_worker(const Options& options) {
  const Shape shape = shape_of(options.text("size", "S"));
  const StepsWays ways{
      .message = run<TonariWire>,
      .share =
          [&](Job& job, TonariWire& wire, const Options& of, Output& output) {
            Shared program(job, shape, sharing_of(of));
            measure(wire, shape, job.size(), of, program, output);
          },
      .guarded =
          [&](Job& job, TonariWire& wire, const Options& of, Output& output) {
            Guarded program(job, wire, shape);
            measure(wire, shape, wire.size(), of, program, output);
          },
      .threads =
          [&](TonariWire& wire, const Options& of, Output& output) {
            Threads program(shape, threads_of(of));
            measure(wire, shape, threads_of(of), of, program, output);
          },
  };
  run_steps(options, ways);
}

const Measurement of_tonari("himeno", "tonari", run_worker);

}  // namespace

}  // namespace tonari::bench::himeno
