#pragma once

// Question: how fast is Himeno's benchmark with messages, with shared arrays or guarded planes, and with threads?
// Method:   the benchmark's sizes S (64 x 64 x 128) and M (128 x 128 x 256), single precision. A step computes a new
//           pressure from the old one and ten coefficients per element, and copies it back. Planes are dealt to the
//           ranks in bands; coefficients and the new pressure are private. All cases use one function to compute a
//           plane:
//             message  a rank has its band; the outermost planes are copied back first, and exchanged while the others
//                      are copied
//             share    the pressure is a shared array, the home of a band is its rank; a barrier before planes are
//                      copied back, and one after
//             guarded  a rank has its band; the outermost planes are guarded data, which are copied back first; the
//                      same barriers
//             openmp   threads of one process
//           Steps are timed in batches of about two milliseconds (steps.hpp). gosa is summed over the ranks only at the
//           end, not in each step.
// Output:   rate in MFLOPS (34 operations per changing element, as the benchmark counts) against ranks, one sample per
//           batch, of the slowest rank. gosa of the last step. Check: elements of the pressure that differ in any bit
//           from the same steps on one rank; and one more if gosa differs by a relative 1e-6.

#include "kernels/bands.hpp"
#include "kernels/steps.hpp"
#include "planes.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tonari::bench::himeno {

/// The result of a rank.
struct Done {
  std::uint64_t steps = 0;
  double gosa = 0;
};

struct SerialResult {
  LocalLines<float> pressure;
  double gosa;
};

/// The result of this many steps on one rank.
inline SerialResult serial_result(const Shape& shape, std::uint64_t steps) {
  const Bands bands = shape.bands(1);
  SerialResult result{LocalLines<float>(bands), 0};
  fill(result.pressure.lines(), bands.owned(0), shape);
  Planes planes(shape, bands.of(0));
  for (; steps != 0; --steps) {
    result.gosa = planes.relax(result.pressure.lines());
    planes.copy_back(result.pressure.lines(), bands.of(0));
  }
  return result;
}

inline bool is_near(double gosa, double expected) noexcept { return std::fabs(gosa - expected) <= 1e-6 * expected; }

/// The case `message`: each rank has its band, and exchanges planes.
template <StartedWire W>
class Messages {
 public:
  Messages(W& wire, const Shape& shape)
      : wire_(wire),
        shape_(shape),
        bands_(shape.bands(wire.size())),
        band_(bands_.of(wire.rank())),
        pressure_(wire, bands_),
        planes_(shape, band_) {
    fill(pressure_.lines(), {band_.first - 1, band_.end + 1}, shape);
  }

  void run(std::uint32_t steps) {
    const Lines<float>& pressure = pressure_.lines();
    for (; steps != 0; --steps, ++done_.steps) {
      done_.gosa = planes_.relax(pressure);
      planes_.copy_back(pressure, {band_.first, band_.first + 1});
      planes_.copy_back(pressure, {band_.end - 1, band_.end});
      pressure_.start_exchange();
      planes_.copy_back(pressure, {band_.first + 1, band_.end - 1});
      pressure_.finish_exchange();
    }
  }

  [[nodiscard]] double gosa() const noexcept { return done_.gosa; }

  std::size_t wrong(double gosa) {
    if (wire_.rank() != 0) return differing_of_all<W, float>(wire_, bands_, pressure_.lines(), {});
    const auto expected = serial_result(shape_, done_.steps);
    return differing_of_all(wire_, bands_, pressure_.lines(), expected.pressure.lines()) +
           (is_near(gosa, expected.gosa) ? 0 : 1);
  }

 private:
  W& wire_;
  Shape shape_;
  Bands bands_;
  Band band_;
  MessageLines<W, float> pressure_;
  Planes planes_;
  Done done_;
};

/// Measures with measure_steps(), and sums all ranks' gosa.
template <StartedWire W, class Program>
class WithGosa {
 public:
  WithGosa(W& wire, Program& program) : wire_(wire), program_(program) {}

  void run(std::uint32_t steps) { program_.run(steps); }
  std::size_t wrong() {
    constexpr int tag_gosa = 54;
    for (const double gosa : gather_values(wire_, wire_.size(), program_.gosa(), tag_gosa)) sum_ += gosa;
    return program_.wrong(sum_);
  }
  [[nodiscard]] double sum() const noexcept { return sum_; }

 private:
  W& wire_;
  Program& program_;
  double sum_ = 0;
};

/// `parallel` is the number of ranks or threads.
template <StartedWire W, class Program>
void measure(W& wire, const Shape& shape, int parallel, const Options& options, Program& program, Output& output) {
  StepsTask task = steps_task(options, parallel);
  task.operations = operations_an_element * shape.inner_elements();
  task.unit = "MFLOPS";
  task.a_unit = 1;
  WithGosa<W, Program> with_gosa(wire, program);
  measure_steps(wire, task, with_gosa, output);
  output.samples({task.label, "gosa", "", "ranks"}, task.at, {with_gosa.sum()});
}

/// The case `message`.
template <StartedWire W>
void run(W& wire, const Options& options, Output& output) {
  output.parameter("processors", processors(gather_places(wire)));
  const Shape shape = shape_of(options.text("size", "S"));
  Messages<W> program(wire, shape);
  measure(wire, shape, wire.size(), options, program, output);
}

}  // namespace tonari::bench::himeno
