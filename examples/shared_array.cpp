// A shared array: all ranks fill one array and read all of it with ordinary loads and stores, on one host or many.
//
//   tonari run -n 4 ./shared_array
//   tonari run -n 4 --apart memory ./shared_array    each rank as if it were a host of its own: pages travel between
//   them

#include <tonari/tonari.hpp>

#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>

namespace {

namespace share = tonari::share;

void expect_ok(tonari::Status status) {
  if (status != tonari::Status::ok) throw std::runtime_error(std::string(tonari::explain(status)));
}

int run() {
  constexpr std::size_t count = 1'000'000;
  tonari::Job job;
  tonari::shared_array<double> squares(job, count);  // collective; the same address in every rank

  // Each rank fills its part. At the end all ranks wait for each other, and then see the whole array.
  expect_ok(share::parallel_for(job, count, [&](std::size_t i) { squares[i] = static_cast<double>(i * i); }));

  // Each rank adds up the part of another rank, and all receive the sum of these sums.
  const auto backwards = [&](std::size_t i) { return squares[count - 1 - i]; };
  const auto [status, sum] = share::parallel_reduce(job, count, 0.0, std::plus<>(), backwards);
  expect_ok(status);

  if (job.rank() == 0) {
    std::printf("%d ranks on %d hosts filled one array; its last element is %.0f, the sum of all is %.6g\n", job.size(),
                job.hosts(), squares[count - 1], sum);
  }
  return sum > 3.33332e17 && sum < 3.33334e17 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shared_array: %s\n", error.what());
    return 1;
  }
}
