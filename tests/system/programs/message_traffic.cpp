// Messages between processes, checked. The first argument is one of the following, the second the seed (default 1):
//
//   exchange     every size in every manner from rank 0 to rank 1, and back
//   traffic      random messages between all ranks, then collectives
//   threads      the same traffic four times at once, by four threads each with a communicator of its own
//   storm        as traffic, with a death handler: the last rank is killed at a random moment, the others finish theirs
#include "../../support/collective.hpp"
#include "../../support/exchange.hpp"
#include "../../support/traffic.hpp"

#include <tonari/tonari.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>

namespace {

using namespace tonari;

constexpr int messages = 200;

void exchange(Communicator& world) {
  test::exchange_all(world, 0, 1);
  test::exchange_all(world, 1, 0);
}

void traffic(Communicator& world, std::uint64_t seed) {
  const test::Plan plan(world.size(), messages, seed);
  test::Player(world, plan, seed).play([](int) { return true; });
  for (std::size_t i = 0; i < 8; ++i) test::require_ok(test::collective(world, i, i * 5000));
}

void threads(Communicator& world, std::uint64_t seed) {
  std::vector<Communicator> own;
  for (int i = 0; i < 4; ++i) own.push_back(world.duplicate());
  std::vector<std::jthread> running;
  for (Communicator& each : own) running.emplace_back([&each, seed] { traffic(each, seed); });
}

void storm(Job& job, Communicator& world, std::uint64_t seed) {
  job.on_death([](const Death&) {});
  Communicator untouched = world.duplicate();  // in which nothing from the dead waits to be received
  test::require_ok(world.barrier());
  if (world.rank() == world.size() - 1) {
    test::Random random(seed);
    const std::size_t looks = test::between(random, 0, 20000);
    std::thread([looks] {
      for (std::size_t i = 0; i < looks; ++i) std::this_thread::yield();
      std::raise(SIGKILL);
    }).detach();
  }
  const test::Plan plan(world.size(), 5 * messages, seed);
  test::Player(world, plan, seed).play([&job](int rank) { return job.alive(JobRank{rank}); });
  // It may have been killed only now.
  Status status = Status::ok;
  for (std::size_t i = 0; status == Status::ok; ++i) status = test::collective(world, i, i % 3000);
  test::require(status == Status::peer_gone, "a collective returned " + std::string(to_string(status)));
  const test::Plan last(world.size() - 1, messages, seed + 1);
  test::Player(untouched, last, seed).play([](int) { return true; });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "exchange";
  const std::uint64_t seed = argc > 2 ? std::stoull(argv[2]) : 1;
  try {
    Job job;
    Communicator world(job);
    if (what == "exchange") exchange(world);
    if (what == "traffic") traffic(world, seed);
    if (what == "threads") threads(world, seed);
    if (what == "storm") storm(job, world, seed);
    std::printf("rank %d did it\n", world.rank().value());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
