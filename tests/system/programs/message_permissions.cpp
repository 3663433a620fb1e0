// Two ranks exchange messages, also with gaps, while rank 1 takes the permission to copy from and to its memory away
// from other processes, or loses its own permission for theirs. With the third argument "both", both ranks do so, and
// wait for their sends first. The first argument says how (support/permission.hpp), the second is the seed.
#include "../../support/exchange.hpp"
#include "../../support/permission.hpp"
#include "../../support/rank.hpp"

#include <tonari/tonari.hpp>

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace tonari;
using test::require;
using test::require_ok;
using test::take_permission;

// Messages of all lengths in both directions at once, in all combinations of gaps. Rank 1 calls `meanwhile` while
// some of them are under way.
template <class Meanwhile>
void exchange_at_once(Communicator& world, test::Random& random, Meanwhile&& meanwhile) {
  constexpr std::size_t messages = 40;
  const Rank other = world.neighbour(1);
  struct Buffer {
    std::vector<int> ints;
    bool has_gaps;
    [[nodiscard]] std::size_t step() const { return has_gaps ? 2 : 1; }
    [[nodiscard]] Strided<int> every_second() { return {ints, ints.size() / 2, 1, 2}; }
  };
  std::array<std::vector<Buffer>, 2> sent;  // by sending rank
  std::array<std::vector<Buffer>, 2> received;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (std::size_t i = 0; i < messages; ++i) {
      const std::size_t count = test::between(random, 0, test::chance(random, 50) ? 500'000 : 10'000);
      for (auto* const buffers : {&sent[rank], &received[rank]}) {
        const bool has_gaps = test::chance(random, 25);
        buffers->push_back({std::vector<int>(has_gaps ? 2 * count : count), has_gaps});
      }
      for (std::size_t at = 0; at < count; ++at)
        sent[rank][i].ints[at * sent[rank][i].step()] = static_cast<int>(at * 7 + i + rank);
    }
  }
  auto& mine = sent[world.rank().index()];
  auto& theirs = received[other.index()];
  std::vector<Request> requests;
  std::jthread later([&] {
    if (world.rank() == 1) meanwhile();
  });
  for (std::size_t i = 0; i < messages; ++i) {
    const auto mode = test::chance(random, 30) ? SendMode::when_posted : SendMode::standard;
    requests.push_back(mine[i].has_gaps ? world.start_send(mine[i].every_second(), other, Tag{i}, mode)
                                        : world.start_send(mine[i].ints, other, Tag{i}, mode));
    requests.push_back(theirs[i].has_gaps ? world.start_receive(theirs[i].every_second(), other, Tag{i})
                                          : world.start_receive(theirs[i].ints, other, Tag{i}));
  }
  require_ok(wait_all(requests));
  later.join();
  for (std::size_t i = 0; i < messages; ++i) {
    for (std::size_t at = 0; at * theirs[i].step() < theirs[i].ints.size(); ++at) {
      require(theirs[i].ints[at * theirs[i].step()] == static_cast<int>(at * 7 + i + other.index()),
              "a message arrived changed");
    }
  }
}

// Both ranks wait for their sends before their receives, so each must advance its receive while it waits for its send.
void exchange_after_both_lose_it(Communicator& world, const std::string& how) {
  require_ok(world.barrier());
  take_permission(how);
  const Rank other = world.neighbour(1);
  for (const std::size_t count : {30'000UL, 1'000'000UL, 1'000'000UL}) {
    const std::vector<std::size_t> sent(count, world.rank().index());
    std::vector<std::size_t> received(count);
    Request receive = world.start_receive(received, other, Tag{1});
    require_ok(world.send(sent, other, Tag{1}));
    require_ok(receive.wait().status);
    require(received == std::vector<std::size_t>(count, other.index()), "a message arrived changed");
  }
}

void act(Job& job, const std::vector<std::string>& arguments) {
  Communicator world(job);
  if (arguments.size() > 2) return exchange_after_both_lose_it(world, arguments.at(0));
  test::Random random(std::stoull(arguments.at(1)));  // the same on both ranks
  exchange_at_once(world, random, [] {});
  const bool was_direct = job.statistics().bytes_direct != 0;
  const std::size_t delay = test::between(random, 0, 20'000);

  exchange_at_once(world, random, [&] {
    for (std::size_t turn = 0; turn < delay; ++turn) std::this_thread::yield();
    take_permission(arguments.at(0));
  });

  test::exchange_all(world, 0, 1);
  test::exchange_all(world, 1, 0);
  exchange_at_once(world, random, [] {});
  const std::uint64_t direct = job.statistics().bytes_direct;
  exchange_at_once(world, random, [] {});
  require_ok(world.barrier());
  test::say(was_direct ? "copied directly before" : "never copied directly");
  if (job.statistics().bytes_direct == direct) test::say("copies directly no longer");
}

}  // namespace

int main(int argc, char** argv) { return test::run_rank(argc, argv, act); }
