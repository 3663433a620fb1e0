// Question: how long does FFTW's transform in three dimensions take of points that are partly local?
// Method:   n x n x n/2 complex points (the DLM paper: 2048 x 2048 x 1024), in place, by FFTW's threads, planned
//           without measuring.
// Output:   time in s of a forward transform; residual: the greatest difference between the input and the backward
//           transform of the result, in ln(points) eps: below 16, as in HPC Challenge.
// Options:  --size=n, even

#include "harness/far_program.hpp"

#include <fftw3.h>

#include <algorithm>
#include <limits>

namespace {

using namespace tonari::bench;
using namespace tonari::bench::far;

struct Size {
  int n;
  [[nodiscard]] std::size_t points() const {
    const auto side = static_cast<std::size_t>(n);
    return side * side * (side / 2);
  }
};

fftw_plan plan(Size size, fftw_complex* data, int direction) {
  return fftw_plan_dft_3d(size.n, size.n, size.n / 2, data, data, direction, FFTW_ESTIMATE);
}

double residual(const fftw_complex* data, Size size) {
  const std::size_t count = size.points();
  const double scale = 1 / static_cast<double>(count);
  double largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest)
  for (std::size_t i = 0; i < count; ++i) {
    const double difference = std::hypot(data[i][0] * scale - fraction(i), data[i][1] * scale - fraction(~i));
    largest = difference <= largest ? largest : difference;  // keeps a NaN
  }
  return largest / (std::log(static_cast<double>(count)) * std::numeric_limits<double>::epsilon());
}

void measure(const Options& options, Output& output) {
  const Size size{static_cast<int>(options.number("size", 256))};
  fftw_init_threads();
  fftw_plan_with_nthreads(static_cast<int>(options.number("threads", 1)));
  const Data memory(options, size.points() * sizeof(fftw_complex));
  auto* const data = memory.array<fftw_complex>(0, 1);
  const auto forwards = plan(size, data, FFTW_FORWARD);
  const auto backwards = plan(size, data, FFTW_BACKWARD);
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < size.points(); ++i) {
    data[i][0] = fraction(i);
    data[i][1] = fraction(~i);
  }

  const double start_s = now_s();
  fftw_execute(forwards);
  const double took_s = now_s() - start_s;

  fftw_execute(backwards);
  Answers answers(options, output, threads_label(options));
  answers.add("time", "s", {took_s});
  answers.check("residual", residual(data, size), 16);
  fftw_destroy_plan(forwards);
  fftw_destroy_plan(backwards);
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv, measure); }
