// Collectives: rank 0 distributes a question, each rank computes a part of the sum, and all ranks get the sum.
// Every collective is called by all ranks of the communicator, in the same order.
//
//   tonari run -n 4 ./collectives

#include <tonari/tonari.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <vector>

namespace {

int run() {
  tonari::Job job;
  tonari::Communicator world(job);
  const int rank = world.rank().value();
  const int ranks = world.size();

  // check() throws if a call has failed, for example because a rank has died.
  const long limit = tonari::check(world.broadcast_value(rank == 0 ? 1000L : 0L, tonari::Rank{0}));

  // This rank adds up every `ranks`-th number below the limit.
  long mine = 0;
  for (long i = rank; i < limit; i += ranks) mine += i;
  const long sum = tonari::check(world.all_reduce_value(mine));
  const long largest = tonari::check(world.all_reduce_value(mine, [](long a, long b) { return std::max(a, b); }));

  // The sum over this rank and the ranks before it: where this rank's part would end in a common list.
  const long end = tonari::check(world.scan_value(mine));

  // Rank 0 receives the values of all ranks, of which each may contribute a different number.
  const std::vector<long> values(static_cast<std::size_t>(rank) + 1, mine);
  const auto gathered = tonari::check(world.gather_values(values, tonari::Rank{0}));
  if (rank == 0) {
    std::printf("%d ranks: the numbers below %ld add up to %ld; the largest part is %ld; %zu values gathered\n", ranks,
                limit, sum, largest, gathered.values.size());
  }

  tonari::check(world.barrier());
  const bool is_right = sum == limit * (limit - 1) / 2 && end <= sum && (rank < ranks - 1 || end == sum);
  return is_right ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collectives: %s\n", error.what());
    return 1;
  }
}
