// Heat in a square plate, cut into bands of rows, one a rank: a whole program in the shape that most have.
// Each step needs a row of either neighbour; the receives are started, the inside is computed while they come.
//
//   tonari run -n 4 ./heat [rows] [steps]

#include <tonari/tonari.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr double share = 0.2;  // of the difference to each neighbour that flows in one step

void expect_ok(tonari::Status status) {
  if (status == tonari::Status::ok) return;
  throw std::runtime_error(std::string(tonari::explain(status)));
}

/// The rows of one rank, with a row above and below that mirror the neighbours'. The rim of the plate stays at 0.
class Band {
 public:
  Band(tonari::Communicator& world, int n)
      : world_(world),
        n_(n),
        first_(static_cast<int>(static_cast<long>(n) * world.rank().value() / world.size())),
        rows_(static_cast<int>(static_cast<long>(n) * (world.rank().value() + 1) / world.size()) - first_),
        now_(static_cast<std::size_t>((rows_ + 2) * (n + 2))),
        then_(now_) {}

  /// The warm middle: one arch of a sine both ways. This shape keeps, and shrinks by a known factor in each step.
  void warm() {
    for (int row = 1; row <= rows_; ++row) {
      for (int column = 1; column <= n_; ++column) now_[at(row, column)] = arch(first_ + row) * arch(column);
    }
  }

  void step() {
    // At the rim there is no neighbour: such a request stays complete.
    tonari::Request from_above, from_below, to_above, to_below;
    const tonari::Rank above = world_.rank() - 1;
    const tonari::Rank below = world_.rank() + 1;
    if (above >= 0) from_above = world_.start_receive(row(0), above);
    if (below < world_.size()) from_below = world_.start_receive(row(rows_ + 1), below);
    if (above >= 0) to_above = world_.start_send(row(1), above);
    if (below < world_.size()) to_below = world_.start_send(row(rows_), below);

    compute(2, rows_ - 1);  // needs no neighbour
    expect_ok(from_above.wait().status);
    expect_ok(from_below.wait().status);
    compute(1, 1);
    if (rows_ > 1) compute(rows_, rows_);
    expect_ok(to_above.wait().status);  // before the rows change
    expect_ok(to_below.wait().status);
    now_.swap(then_);
  }

  /// The largest difference, over all ranks, to the warm shape times `factor`.
  double error(double factor) {
    double largest = 0;
    for (int row = 1; row <= rows_; ++row) {
      for (int column = 1; column <= n_; ++column) {
        const double exact = factor * arch(first_ + row) * arch(column);
        largest = std::max(largest, std::fabs(now_[at(row, column)] - exact));
      }
    }
    expect_ok(world_.all_reduce(largest, [](double left, double right) { return std::max(left, right); }));
    return largest;
  }

 private:
  [[nodiscard]] std::size_t at(int row, int column) const { return static_cast<std::size_t>(row * (n_ + 2) + column); }
  [[nodiscard]] double arch(int i) const { return std::sin(std::numbers::pi * i / (n_ + 1)); }
  [[nodiscard]] std::span<double> row(int i) {
    return std::span(now_).subspan(at(i, 0), static_cast<std::size_t>(n_ + 2));
  }

  void compute(int first, int last) {
    for (int row = first; row <= last; ++row) {
      for (int column = 1; column <= n_; ++column) {
        const double here = now_[at(row, column)];
        const double around = now_[at(row - 1, column)] + now_[at(row + 1, column)] + now_[at(row, column - 1)] +
                              now_[at(row, column + 1)];
        then_[at(row, column)] = here + share * (around - 4 * here);
      }
    }
  }

  tonari::Communicator& world_;
  int n_;
  int first_;  // rows of the plate above this band
  int rows_;
  std::vector<double> now_, then_;
};

int run(int argc, char** argv) {
  tonari::Job job;
  tonari::Communicator world(job);
  const int n = argc > 1 ? std::atoi(argv[1]) : 200;
  const int steps = argc > 2 ? std::atoi(argv[2]) : 500;
  if (n < world.size() || steps < 0) {
    if (world.rank() == 0) std::fprintf(stderr, "usage: heat [rows] [steps], with at least a row for each rank\n");
    return 2;
  }

  Band band(world, n);
  band.warm();
  for (int i = 0; i < steps; ++i) band.step();

  const double factor_a_step = 1 - 4 * share * (1 - std::cos(std::numbers::pi / (n + 1)));
  const double left = std::pow(factor_a_step, steps);
  const double error = band.error(left);
  if (world.rank() == 0) {
    std::printf("heat: %d x %d on %d ranks, %d steps: %.1f %% of the warmth is left; largest error %.1e\n", n, n,
                world.size(), steps, 100 * left, error);
  }
  return error < 1e-12 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const tonari::SetupError& error) {  // the job cannot be joined: the text says why, and what helps
    std::fprintf(stderr, "heat: %s\n", error.what());
    return 1;
  }
}
