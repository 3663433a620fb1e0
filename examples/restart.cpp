// Heat in a square plate again, on shared arrays, and saved every few steps: killed at any moment and started again, on
// as many ranks as you like, it goes on from there, and ends as if nothing had happened.
//
//   tonari run -n 4 ./restart FILE [rows] [steps] [steps between saves]

#include <tonari/tonari.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <string>

namespace {

constexpr double flow = 0.2;  // of the difference to each neighbour, in one step

void expect_ok(tonari::Status status) {
  if (status == tonari::Status::ok) return;
  throw std::runtime_error(std::string(tonari::explain(status)));
}

/// All of the plate, which all ranks share; its rim stays at 0. The state after an even number of steps is in one
/// array, after an odd number in the other.
class Plate {
 public:
  Plate(tonari::Job& job, std::size_t n) : job_(job), n_(n), even_(job, (n + 2) * (n + 2)), odd_(job, even_.size()) {}

  void warm() {
    expect_ok(tonari::share::parallel_for(job_, n_, [this](std::size_t row) {
      for (std::size_t column = 1; column <= n_; ++column) even_[at(row + 1, column)] = arch(row + 1) * arch(column);
    }));
  }

  /// Returns when all ranks are done with it.
  void step(std::uint64_t number) {
    const auto& now = number % 2 == 0 ? even_ : odd_;
    const auto& then = number % 2 == 0 ? odd_ : even_;
    expect_ok(tonari::share::parallel_for(job_, n_, [&](std::size_t row) {
      for (std::size_t i = at(row + 1, 1); i <= at(row + 1, n_); ++i) {
        const double around = now[i - 1] + now[i + 1] + now[i - n_ - 2] + now[i + n_ + 2];
        then[i] = now[i] + flow * (around - 4 * now[i]);
      }
    }));
  }

  [[nodiscard]] double warmth(std::uint64_t steps) const {
    const auto& now = steps % 2 == 0 ? even_ : odd_;
    return std::accumulate(now.begin(), now.end(), 0.0);
  }

 private:
  [[nodiscard]] std::size_t at(std::size_t row, std::size_t column) const { return row * (n_ + 2) + column; }
  [[nodiscard]] double arch(std::size_t i) const {
    return std::sin(std::numbers::pi * static_cast<double>(i) / static_cast<double>(n_ + 1));
  }

  tonari::Job& job_;
  std::size_t n_;
  tonari::shared_array<double> even_, odd_;
};

int run(int argc, char** argv) {
  tonari::Job job;
  const auto number = [&](int index, std::uint64_t otherwise) {
    return argc > index ? std::strtoull(argv[index], nullptr, 10) : otherwise;
  };
  const std::uint64_t n = number(2, 200);
  const std::uint64_t steps = number(3, 1000);
  const std::uint64_t between_saves = number(4, 100);
  if (argc < 2 || n == 0 || between_saves == 0) {
    if (job.rank() == 0) std::fprintf(stderr, "usage: restart FILE [rows] [steps] [steps between saves]\n");
    return 2;
  }
  const std::string file = argv[1];

  Plate plate(job, n);
  const auto saved = tonari::share::load(job, file);  // nothing: this is the first start
  if (!saved) plate.warm();
  if (saved && job.rank() == 0) std::printf("goes on from step %llu\n", static_cast<unsigned long long>(*saved));

  std::uint64_t step = saved.value_or(0);
  while (step < steps) {
    plate.step(step++);
    if (step % between_saves != 0) continue;
    tonari::share::save(job, file, step);
    if (job.rank() == 0) std::printf("saved step %llu\n", static_cast<unsigned long long>(step));
    std::fflush(stdout);
  }

  if (job.rank() == 0) {
    std::printf("warmth after %llu steps: %.17g\n", static_cast<unsigned long long>(step), plate.warmth(step));
  }
  expect_ok(tonari::share::barrier(job));  // nobody takes the plate away before
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const tonari::SetupError& error) {  // joining, loading or saving failed: the text says why, and what helps
    std::fprintf(stderr, "restart: %s\n", error.what());
    return 1;
  }
}
