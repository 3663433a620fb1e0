#include "../support/random.hpp"
#include "../support/ranks.hpp"

#include <algorithm>
#include <map>
#include <thread>

namespace tonari {
namespace {

using test::pattern;

class Traffic : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, Traffic, testing::ValuesIn(test::variants()), test::name_of);

std::size_t random_bytes(test::Random& random) {
  const std::size_t kind = test::between(random, 0, 9);
  return test::between(random, 0, kind < 5 ? 64 : kind < 9 ? 9000 : 150000);
}

// What every rank sends, known to all: so each can tell what it must receive, in which order from each peer.
struct Plan {
  struct Message {
    int to;
    int tag;
    std::size_t bytes;
    std::size_t number;
  };
  std::vector<std::vector<Message>> by_sender;

  Plan(int ranks, int messages, std::uint64_t seed) : by_sender(static_cast<std::size_t>(ranks)) {
    test::Random random(seed);
    std::size_t number = 0;
    for (auto& messages_of_one : by_sender) {
      for (int i = 0; i < messages; ++i) {
        const int to = static_cast<int>(test::between(random, 0, static_cast<std::size_t>(ranks) - 1));
        const int tag = static_cast<int>(test::between(random, 0, 2));
        messages_of_one.push_back({to, tag, random_bytes(random), number++});
      }
    }
  }
};

// Sends this rank's part, receives what the others send to it, in an order of its own: blocking and started, by name
// and by wildcard.
void play(Communicator& world, const Plan& plan, std::uint64_t seed) {
  test::Random random(seed * 31 + static_cast<std::uint64_t>(world.rank()));
  const auto me = static_cast<std::size_t>(world.rank());
  std::vector<std::vector<Plan::Message>> due;  // by sender, in order
  std::size_t left = 0;
  for (const auto& sent : plan.by_sender) {
    auto& from_one = due.emplace_back();
    std::ranges::copy_if(sent, std::back_inserter(from_one), [&](const auto& each) { return each.to == world.rank(); });
    std::ranges::reverse(from_one);  // so that the next one is at the back
    left += from_one.size();
  }
  std::vector<std::vector<std::byte>> buffers;
  std::vector<Request> sends;
  auto next_send = plan.by_sender[me].begin();
  const auto send_some = [&](std::size_t count) {
    for (; count > 0 && next_send != plan.by_sender[me].end(); --count, ++next_send) {
      buffers.push_back(pattern(next_send->bytes, next_send->number));
      const auto mode = test::chance(random, 20) ? SendMode::when_posted : SendMode::standard;
      sends.push_back(world.start_send(buffers.back(), next_send->to, next_send->tag, mode));
    }
  };
  std::vector<std::byte> received(150000);
  while (left > 0 || next_send != plan.by_sender[me].end()) {
    send_some(test::between(random, 0, 8));
    if (left == 0) continue;
    const bool by_name = test::chance(random, 50);
    int source = any_source;
    if (by_name) {
      do {
        source = static_cast<int>(test::between(random, 0, due.size() - 1));
      } while (due[static_cast<std::size_t>(source)].empty());
    }
    Request request = world.start_receive(received, source);
    while (!request.test().has_value()) {
      if (next_send == plan.by_sender[me].end()) {
        (void)request.wait();
      } else {
        send_some(1);  // what we wait for may depend on it
      }
    }
    const Result result = request.wait();
    ASSERT_EQ(result.status, Status::ok);
    auto& from_one = due.at(static_cast<std::size_t>(result.envelope.source));
    ASSERT_FALSE(from_one.empty());
    const Plan::Message expected = from_one.back();
    from_one.pop_back();
    --left;
    ASSERT_EQ(result.envelope.tag, expected.tag);
    ASSERT_EQ(result.envelope.bytes, expected.bytes);
    const auto content = pattern(expected.bytes, expected.number);
    ASSERT_TRUE(std::equal(content.begin(), content.end(), received.begin())) << "message " << expected.number;
  }
  ASSERT_EQ(wait_all(sends), Status::ok);
}

TEST_P(Traffic, OfEightRanksAtRandomArrivesWholeAndInOrder) {
  TONARI_TRACE_SEED();
  constexpr int ranks = 8;
  for (int turn = 0; turn < test::rounds(2); ++turn) {
    const std::uint64_t seed = test::seed() * 1000 + static_cast<std::uint64_t>(turn);
    const Plan plan(ranks, 150, seed);
    test::as_ranks(
        ranks,
        [&](Communicator& world) {
          ASSERT_NO_FATAL_FAILURE(play(world, plan, seed));
          ASSERT_EQ(world.barrier(), Status::ok);
          long sum = world.rank();
          ASSERT_EQ(world.all_reduce(sum), Status::ok);
          ASSERT_EQ(sum, ranks * (ranks - 1) / 2);
          ASSERT_FALSE(world.probe_now(any_source, any_tag).has_value());
        },
        GetParam().settings);
  }
}

}  // namespace
}  // namespace tonari
