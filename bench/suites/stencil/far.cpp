// Question: how long does a stencil with a wide mask take over a picture that is partly local?
// Method:   each number of an n x n picture becomes the weighted sum of its 15 x 15 neighbourhood, except in the seven
//           outermost rows and columns. Rows are dealt to the threads in blocks.
// Output:   time in s, one sample per sweep; residual: the picture is a plane, which a symmetric mask with sum one does
//           not change. The residual is the greatest change in eps of the greatest number: below 1000.
// Options:  --size=n

#include "harness/far_program.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace {

using namespace tonari::bench;
using namespace tonari::bench::far;

constexpr std::size_t reach = 7;
constexpr std::size_t width = 2 * reach + 1;
constexpr std::size_t strip = 64;  // numbers of a row that are summed together

using Mask = std::array<double, width * width>;

/// A cone, scaled to sum one.
Mask make_mask() {
  Mask mask{};
  double sum = 0;
  for (std::size_t y = 0; y < width; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      const double dx = static_cast<double>(x) - reach;
      const double dy = static_cast<double>(y) - reach;
      sum += mask[y * width + x] = 1 / (1 + dx * dx + dy * dy);
    }
  }
  for (double& weight : mask) weight /= sum;
  return mask;
}

double plane(std::size_t x, std::size_t y) { return 1 + static_cast<double>(x) + 2 * static_cast<double>(y); }

/// `count` numbers of a row, from `to` on; `from` is where their masks' first row begins.
void sweep_strip(const double* from, double* to, std::size_t count, std::size_t n, const Mask& mask) {
  double sums[strip] = {};
  for (std::size_t dy = 0; dy < width; ++dy) {
    for (std::size_t dx = 0; dx < width; ++dx) {
      const double weight = mask[dy * width + dx];
      const double* const row = from + dy * n + dx;
      for (std::size_t i = 0; i < count; ++i) sums[i] += weight * row[i];
    }
  }
  for (std::size_t i = 0; i < count; ++i) to[i] = sums[i];
}

void sweep(const double* from, double* to, std::size_t n, const Mask& mask) {
#pragma omp parallel for schedule(static)
  for (std::size_t y = reach; y < n - reach; ++y) {
    std::size_t x = reach;
    for (; x + strip <= n - reach; x += strip) {
      sweep_strip(from + (y - reach) * n + x - reach, to + y * n + x, strip, n, mask);
    }
    sweep_strip(from + (y - reach) * n + x - reach, to + y * n + x, n - reach - x, n, mask);
  }
}

double residual(const double* swept, std::size_t n) {
  double largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest)
  for (std::size_t y = reach; y < n - reach; ++y) {
    for (std::size_t x = reach; x < n - reach; ++x) {
      const double difference = std::fabs(swept[y * n + x] - plane(x, y));
      largest = difference <= largest ? largest : difference;  // keeps a NaN
    }
  }
  return largest / (plane(n, n) * std::numeric_limits<double>::epsilon());
}

void measure(const Options& options, Output& output) {
  const auto n = static_cast<std::size_t>(options.number("size", 4096));
  const double budget_s = options.number("budget-s", 0);
  const Data data(options, 2 * n * n * sizeof(double));
  auto* const from = data.array<double>(0, 2);
  auto* const to = data.array<double>(1, 2);
#pragma omp parallel for schedule(static)
  for (std::size_t y = 0; y < n; ++y) {
    for (std::size_t x = 0; x < n; ++x) from[y * n + x] = plane(x, y);
  }
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < n * n; ++i) to[i] = 0;

  const Mask mask = make_mask();
  std::vector<double> times;
  for (double spent_s = 0; times.empty() || spent_s < budget_s; spent_s += times.back()) {
    const double start_s = now_s();
    sweep(from, to, n, mask);
    times.push_back(now_s() - start_s);
  }

  Answers answers(options, output, threads_label(options));
  answers.add("time", "s", times);
  answers.check("residual", residual(to, n), 1000);
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv, measure); }
