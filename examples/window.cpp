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

long square_of(tonari::JobRank rank) { return long{rank.value()} * rank.value(); }

int run() {
  tonari::Job job;
  // Collective: each rank contributes room for two numbers, which begin as zeros.
  tonari::Window window(job, 2 * sizeof(long));
  tonari::View<long> numbers(window);
  const tonari::JobRank rank = job.rank();
  const tonari::JobRank next = (rank + 1) % job.size();
  const tonari::JobRank before = (rank + job.size() - 1) % job.size();

  // Number 0 of the next rank: this rank's square.
  expect_ok(numbers.push(next, 0, square_of(rank)));

  // Number 1 of rank 0: a counter. All ranks add to it at the same time, and no addition is lost.
  for (int i = 0; i < 1000; ++i) expect_ok(numbers.fetch_add(tonari::JobRank{0}, 1, 1L).status);

  expect_ok(window.barrier());  // from here on, each rank sees what the others have written

  long counted = 0;
  expect_ok(numbers.pull(counted, tonari::JobRank{0}, 1));
  std::printf("rank %d: rank %d wrote %ld into my memory; rank 0's counter stands at %ld\n", rank.value(),
              before.value(), numbers.local()[0], counted);

  expect_ok(window.barrier());  // no rank frees its part while another one still reads it
  return numbers.local()[0] == square_of(before) && counted == 1000L * job.size() ? 0 : 1;
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
