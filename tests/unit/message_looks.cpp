#include "../support/random.hpp"
#include "../support/ranks.hpp"

#include "message/looks.hpp"
#include "message/message_runtime.hpp"
#include "message/posted.hpp"
#include "message/unexpected.hpp"

#include <algorithm>
#include <numeric>

// How many queue entries a match looks at, and how many operations a wait or a retry, however many there are.
namespace tonari::message {
namespace {

using test::Random;

/// Counts the looks since it was made.
class Looks {
 public:
  explicit Looks(const LookCount& count) : count_(count) {}
  [[nodiscard]] std::uint64_t operator()() const { return count_.value() - before_; }

 private:
  const LookCount& count_;
  const std::uint64_t before_ = count_.value();
};

class LooksAtQueues : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (!looks_are_counted) GTEST_SKIP() << "only builds with assertions count";
  }
  // The receive and the head of message i. Some runs give every second receive any source.
  void fill(Operation& receive, std::size_t i) const {
    const auto number = static_cast<int>(i);
    receive.call.context_id = 2;
    receive.call.peer = with_wildcards_ && i % 2 == 0 ? -1 : number % 8;
    receive.call.tag = number;
  }
  static fabric::Head head(std::size_t i) {
    fabric::Head head;
    head.kind = Kind::message_inline;
    head.inline_bytes = 0;
    head.context = 2;
    head.source = static_cast<std::uint32_t>(i % 8);
    head.tag = static_cast<std::uint32_t>(i);
    return head;
  }
  [[nodiscard]] std::vector<std::size_t> shuffled() {
    std::vector<std::size_t> order(GetParam());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::shuffle(order, random_);
    return order;
  }

  Random random_{test::seed()};
  const bool with_wildcards_ = test::chance(random_, 50);
  Job job_;  // a job of one rank
  Context& context_ = *MessageRuntime::of(job_.session()).world();
};
INSTANTIATE_TEST_SUITE_P(Behind, LooksAtQueues, testing::Values(1, 1000, 100'000), testing::PrintToStringParamName());

// A match looks at its own entry and at few that have the same hash. An index is built anew when the queue has doubled.
constexpr std::uint64_t looks_per_match_max = 12;

TEST_P(LooksAtQueues, AreFewPerUnexpectedMessage) {
  const Looks looks(queue_looks);
  UnexpectedQueue queue(64);
  for (std::size_t i = 0; i < GetParam(); ++i) queue.keep(head(i));
  Operation receive(Operation::Kind::receive, context_);
  for (const std::size_t i : shuffled()) {
    fill(receive, i);
    ASSERT_EQ(queue.take(receive)->tag, i);
  }

  EXPECT_LE(looks(), looks_per_match_max * GetParam());
  EXPECT_GE(looks(), GetParam());
}

TEST_P(LooksAtQueues, AreFewPerPostedReceive) {
  const Looks looks(queue_looks);
  PostedQueue queue;
  std::vector<std::unique_ptr<Operation>> receives;
  for (std::size_t i = 0; i < GetParam(); ++i) {
    receives.push_back(std::make_unique<Operation>(Operation::Kind::receive, context_));
    fill(*receives.back(), i);
    queue.post(*receives.back());
  }
  for (const std::size_t i : shuffled()) ASSERT_EQ(queue.take(head(i)), receives[i].get());

  EXPECT_LE(looks(), looks_per_match_max * GetParam());
  EXPECT_GE(looks(), GetParam());
}

class LooksAtOperations : public test::OnEveryVariant {
 protected:
  void SetUp() override {
    if (!looks_are_counted) GTEST_SKIP() << "only builds with assertions count";
  }
};
INSTANTIATE_TEST_SUITE_P(On, LooksAtOperations, testing::ValuesIn(test::variants_and_network()), test::name_of);

// A wait for a group of 64 looks at up to 64 operations per change, so at 32 per request in the mean, and each request
// is looked at a few times more. A round looks at few operations that are blocked.
constexpr std::uint64_t looks_per_request_max = 40;
constexpr std::uint64_t looks_per_round_max = 4;

// Rank 0 starts more sends than there is room for. Rank 1 receives them in random order.
TEST_P(LooksAtOperations, AreFewPerRequest) {
  constexpr std::size_t count = 40'000;
  const std::uint64_t seed = test::seed();
  const Looks looks(operation_looks);
  const Looks rounds(wait_rounds);
  run(2, [seed](Communicator& world) {
    Random random(seed);
    std::vector<int> tags(count);
    std::iota(tags.begin(), tags.end(), 0);
    std::ranges::shuffle(tags, random);
    const std::vector<std::byte> sent(2000);
    std::vector<std::vector<std::byte>> received;
    std::vector<Request> requests;
    for (int i = 0; const int tag : tags) {
      if (world.rank() == 0) {
        requests.push_back(world.start_send(sent, Rank{1}, Tag{i++}));
      } else {
        received.emplace_back(sent.size());
        requests.push_back(world.start_receive(received.back(), Rank{0}, Tag{tag}));
      }
    }
    ASSERT_EQ(wait_all(requests), Status::ok);
  });

  EXPECT_LE(looks(), looks_per_request_max * 2 * count + looks_per_round_max * rounds());
  EXPECT_GE(looks(), 2 * count);
}

}  // namespace
}  // namespace tonari::message
