// One-sided memory: every rank writes into its neighbour's memory and counts in rank 0's, which does not help with
// either.
//
//   tonari run -n 4 ./window

#include <tonari/tonari.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

void expect_ok(tonari::Status status) {
  if (status != tonari::Status::ok) throw std::runtime_error(std::string(tonari::explain(status)));
}

int run() {
  tonari::Job job;
  // Collective: each rank contributes room for two numbers, which begin as zeros.
  tonari::Window window(job, 2 * sizeof(long));
  tonari::View<long> numbers(window);
  const int rank = job.rank();
  const int size = job.size();

  // Number 0 of the next rank: this rank's square.
  const int next = (rank + 1) % size;
  expect_ok(numbers.push(next, 0, long{rank} * rank));

  // Number 1 of rank 0: a counter. All ranks add to it at the same time, and no addition is lost.
  for (int i = 0; i < 1000; ++i) expect_ok(numbers.fetch_add(0, 1, 1L).status);

  expect_ok(window.barrier());  // from here on, each rank sees what the others have written

  const int before = (rank + size - 1) % size;
  long counted = 0;
  expect_ok(numbers.pull(counted, 0, 1));
  std::printf("rank %d: rank %d wrote %ld into my memory; rank 0's counter stands at %ld\n", rank, before,
              numbers.local()[0], counted);

  expect_ok(window.barrier());  // no rank frees its part while another one still reads it
  return numbers.local()[0] == long{before} * before && counted == 1000L * size ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "window: %s\n", error.what());
    return 1;
  }
}
