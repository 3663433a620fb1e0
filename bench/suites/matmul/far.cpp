// Question: how long does a blocked matrix product take whose matrices are partly local?
// Method:   C = A B of order n, blocks of 16 x 16; rows of blocks of C are dealt to the threads. For each block of A, a
//           row of blocks of B is read from left to right. So B is read as a stream, once per row of blocks of C. (The
//           DLM paper gives no order. If B were read downwards, each block of C would need all of it.)
// Output:   time in s, one sample per product; residual |C x - A (B x)| / (n |C x| eps), x random: below 30.
// Options:  --size=n, a multiple of 16

#include "harness/far_program.hpp"

#include <algorithm>
#include <limits>

namespace {

using namespace tonari::bench;
using namespace tonari::bench::far;

constexpr std::size_t side = 16;

void multiply_blocks(const double* a, const double* b, double* c, std::size_t n) {
  for (std::size_t i = 0; i < side; ++i) {
    double sums[side];
    for (std::size_t j = 0; j < side; ++j) sums[j] = c[i * n + j];
    for (std::size_t k = 0; k < side; ++k) {
      const double factor = a[i * n + k];
      for (std::size_t j = 0; j < side; ++j) sums[j] += factor * b[k * n + j];
    }
    for (std::size_t j = 0; j < side; ++j) c[i * n + j] = sums[j];
  }
}

void multiply(const double* a, const double* b, double* c, std::size_t n) {
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < n; i += side) {
    std::fill_n(c + i * n, side * n, 0);
    for (std::size_t k = 0; k < n; k += side) {
      for (std::size_t j = 0; j < n; j += side) multiply_blocks(a + i * n + k, b + k * n + j, c + i * n + j, n);
    }
  }
}

std::vector<double> times_vector(const double* matrix, const std::vector<double>& x) {
  const std::size_t n = x.size();
  std::vector<double> y(n);
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) sum += matrix[i * n + j] * x[j];
    y[i] = sum;
  }
  return y;
}

double residual(const double* a, const double* b, const double* c, std::size_t n) {
  std::vector<double> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = fraction(i) - 0.5;
  const auto expected = times_vector(a, times_vector(b, x));
  const auto found = times_vector(c, x);
  double difference = 0;
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    difference = std::max(
        difference, std::isnan(found[i]) ? std::numeric_limits<double>::infinity() : std::fabs(found[i] - expected[i]));
    largest = std::max(largest, std::fabs(expected[i]));
  }
  return difference / (static_cast<double>(n) * largest * std::numeric_limits<double>::epsilon());
}

void measure(const Options& options, Output& output) {
  const auto n = static_cast<std::size_t>(options.number("size", 3072));
  const double budget_s = options.number("budget-s", 0);
  const Data data(options, 3 * n * n * sizeof(double));
  auto* const a = data.array<double>(0, 3);
  auto* const b = data.array<double>(1, 3);
  auto* const c = data.array<double>(2, 3);
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < n * n; ++i) a[i] = fraction(i) - 0.5;
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < n * n; ++i) b[i] = fraction(~i) - 0.5;

  std::vector<double> times;
  for (double spent_s = 0; times.empty() || spent_s < budget_s; spent_s += times.back()) {
    const double start_s = now_s();
    multiply(a, b, c, n);
    times.push_back(now_s() - start_s);
  }

  Answers answers(options, output, threads_label(options));
  answers.add("time", "s", times);
  answers.check("residual", residual(a, b, c, n), 30);
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv, measure); }
