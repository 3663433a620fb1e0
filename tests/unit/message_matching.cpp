
#include "../support/random.hpp"
#include "../support/ranks.hpp"

#include "job/session.hpp"
#include "message/message_runtime.hpp"
#include "message/posted.hpp"
#include "message/unexpected.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <list>
#include <memory>
#include <numeric>
#include <optional>

namespace tonari::message {
namespace {

using fabric::Head;

// The queues of a rank: posted receives and unexpected messages.
struct Queues {
  explicit Queues(std::size_t scan_depth) : unexpected(scan_depth) {}
  Operation* arrive(const Head& head) {
    Operation* const operation = posted.take(head);
    if (operation == nullptr) unexpected.keep(head);
    return operation;
  }
  PostedQueue posted;
  UnexpectedQueue unexpected;
};

// The model of the queues: two lists that are searched from the front.
class Model {
 public:
  static bool meet(const Operation& receive, const Head& head) {
    return receive.call.context_id == head.context &&
           (receive.call.peer == Rank::any || receive.call.peer == static_cast<int>(head.source)) &&
           (receive.call.tag == Tag::any || receive.call.tag == static_cast<int>(head.tag));
  }
  Operation* arrive(const Head& head) {
    const auto found = std::ranges::find_if(posted_, [&](const Operation* each) { return meet(*each, head); });
    if (found == posted_.end()) {
      kept_.push_back(head);
      return nullptr;
    }
    Operation* const operation = *found;
    posted_.erase(found);
    return operation;
  }
  std::optional<std::uint64_t> find(const Operation& receive, bool take) {
    const auto found = std::ranges::find_if(kept_, [&](const Head& head) { return meet(receive, head); });
    if (found == kept_.end()) return std::nullopt;
    const auto number = found->as<std::uint64_t>();
    if (take) kept_.erase(found);
    return number;
  }
  void post(Operation* operation) { posted_.push_back(operation); }
  Operation* withdraw(std::size_t at) {
    auto victim = posted_.begin();
    std::advance(victim, at);
    Operation* const operation = *victim;
    posted_.erase(victim);
    return operation;
  }
  [[nodiscard]] bool holds(std::uint32_t source, std::uint32_t ticket) const {
    return std::ranges::any_of(kept_, [&](const Head& head) {
      return head.kind == Kind::message_announced && head.source == source &&
             head.as<Announced>().ticket.index == ticket;
    });
  }
  [[nodiscard]] const Head& kept_at(std::size_t at) const { return kept_[at]; }
  void forget(std::size_t at) { kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(at)); }
  [[nodiscard]] std::size_t posted() const { return posted_.size(); }
  [[nodiscard]] std::size_t kept() const { return kept_.size(); }

 private:
  std::list<Operation*> posted_;
  std::deque<Head> kept_;
};

Head message(std::uint32_t context, int source, int tag, std::uint64_t number) {
  Head head;
  head.kind = Kind::message_inline;
  head.inline_bytes = sizeof number;
  head.context = context;
  head.source = static_cast<std::uint32_t>(source);
  head.tag = static_cast<std::uint32_t>(tag);
  head.set(number);
  return head;
}

constexpr int any = -1;  // any source, or any tag

class Matching : public testing::TestWithParam<std::size_t> {
 protected:
  std::unique_ptr<Operation> make(std::uint32_t context, int peer, int tag) {
    auto operation = std::make_unique<Operation>(Operation::Kind::receive, context_);
    operation->call.context_id = context;
    operation->call.peer = peer;
    operation->call.tag = tag;
    return operation;
  }

  Job job_;  // a job of one rank
  Context& context_ = *MessageRuntime::of(job_.session()).world();
  Queues queues_{GetParam()};  // the parameter: up to this length a queue is searched in order
};
INSTANTIATE_TEST_SUITE_P(ScanDepth, Matching, testing::Values(0, 3, 64, 1 << 20), testing::PrintToStringParamName());

TEST_P(Matching, GivesAReceiveTheOldestMatchingMessage) {
  const auto from_any = make(4, any, any);
  const auto tagged = make(4, any, 9);
  UnexpectedQueue& unexpected = queues_.unexpected;
  unexpected.keep(message(6, 1, 9, 0));
  unexpected.keep(message(4, 1, 8, 1));
  unexpected.keep(message(4, 2, 9, 2));
  unexpected.keep(message(4, 1, 9, 3));

  EXPECT_EQ(unexpected.find(*tagged)->as<std::uint64_t>(), 2U);
  EXPECT_EQ(unexpected.take(*tagged)->as<std::uint64_t>(), 2U);
  EXPECT_EQ(unexpected.take(*tagged)->as<std::uint64_t>(), 3U);
  EXPECT_EQ(unexpected.find(*tagged), nullptr);
  EXPECT_EQ(unexpected.take(*from_any)->as<std::uint64_t>(), 1U);
  EXPECT_FALSE(unexpected.take(*from_any).has_value());
  EXPECT_EQ(unexpected.size(), 1U);  // the message of the other communicator
}

TEST_P(Matching, GivesAMessageToTheReceiveThatWasPostedFirst) {
  const auto by_none = make(4, any, any);
  const auto by_source = make(4, 1, any);
  const auto by_tag = make(4, any, 5);
  const auto by_both = make(4, 1, 5);
  std::array order{by_both.get(), by_none.get(), by_tag.get(), by_source.get()};
  std::ranges::sort(order);
  do {
    for (Operation* each : order) queues_.posted.post(*each);
    for (Operation* each : order) ASSERT_EQ(queues_.posted.take(message(4, 1, 5, 0)), each);
    ASSERT_EQ(queues_.posted.size(), 0U);
  } while (std::ranges::next_permutation(order).found);
}

TEST_P(Matching, FindsAnAnnouncedMessageByItsTicket) {
  Head head = message(4, 1, 5, 0);
  head.kind = Kind::message_announced;
  head.set(Announced{100, 0, {7, 3}});
  UnexpectedQueue& unexpected = queues_.unexpected;
  unexpected.keep(head);

  EXPECT_EQ(unexpected.find_announced(2, {7, 3}), nullptr);
  EXPECT_EQ(unexpected.find_announced(1, {6, 3}), nullptr);
  EXPECT_EQ(unexpected.find_announced(1, {7, 2}), nullptr);
  EXPECT_EQ(unexpected.find_announced(1, {70000, 3}), nullptr);  // a peer names a ticket that it has not announced
  EXPECT_EQ(unexpected.find_announced(70000, {7, 3}), nullptr);
  ASSERT_NE(unexpected.find_announced(1, {7, 3}), nullptr);
  EXPECT_EQ(unexpected.find_announced(1, {7, 3})->tag, 5U);
  EXPECT_TRUE(unexpected.forget_announced(1, {7, 3}));
  EXPECT_FALSE(unexpected.forget_announced(1, {7, 3}));
  EXPECT_EQ(unexpected.size(), 0U);
}

TEST_P(Matching, IsTheSameAsWithTwoPlainLists) {
  test::Random random(test::seed());
  Model model;
  std::vector<std::unique_ptr<Operation>> operations;
  std::size_t arrivals = 30;  // percent; it changes, so that sometimes receives and sometimes messages pile up
  for (int step = 0; step < test::rounds(100'000); ++step) {
    if (step % 500 == 0) arrivals = test::between(random, 20, 80);
    const auto context = static_cast<std::uint32_t>(2 * test::between(random, 0, 1));
    const int peer = static_cast<int>(test::between(random, 0, 3));
    const int tag = static_cast<int>(test::between(random, 0, 4));
    const std::size_t dice = test::between(random, 1, 100);
    if (dice <= arrivals) {
      Head head = message(context, peer, tag, static_cast<std::uint64_t>(step));
      const auto ticket = static_cast<std::uint32_t>(test::between(random, 0, 50));
      if (test::chance(random, 30) && !model.holds(head.source, ticket)) {  // a peer uses each ticket once
        head.kind = Kind::message_announced;  // the first word of the head is still its number
        head.set(Announced{static_cast<std::uint64_t>(step), 0, {ticket, static_cast<std::uint32_t>(step)}});
      }
      ASSERT_EQ(queues_.arrive(head), model.arrive(head));
    } else if (test::chance(random, 5) && model.posted() != 0) {
      queues_.posted.withdraw(*model.withdraw(test::between(random, 0, model.posted() - 1)));
    } else if (test::chance(random, 3) && model.kept() != 0) {
      const std::size_t at = test::between(random, 0, model.kept() - 1);
      const Head head = model.kept_at(at);
      if (head.kind == Kind::message_announced) {
        const auto announced = head.as<Announced>();
        ASSERT_TRUE(queues_.unexpected.forget_announced(head.source, announced.ticket));
        model.forget(at);
      }
    } else {
      auto operation = make(context, test::chance(random, 20) ? any : peer, test::chance(random, 20) ? any : tag);
      const Head* const seen = queues_.unexpected.find(*operation);
      ASSERT_EQ(seen == nullptr ? std::nullopt : std::optional(seen->as<std::uint64_t>()),
                model.find(*operation, false));
      if (test::chance(random, 10)) continue;  // this step only probes
      const auto taken = queues_.unexpected.take(*operation);
      ASSERT_EQ(taken ? std::optional(taken->as<std::uint64_t>()) : std::nullopt, model.find(*operation, true));
      if (taken) continue;
      queues_.posted.post(*operation);
      model.post(operation.get());
      operations.push_back(std::move(operation));
    }
    ASSERT_EQ(queues_.posted.size(), model.posted());
    ASSERT_EQ(queues_.unexpected.size(), model.kept());
  }
}

// The queues grow long, with distinct keys and with one key for all entries.
TEST_P(Matching, IsRightForLongQueues) {
  constexpr int messages = 3000;
  test::Random random(test::seed());
  std::vector<int> order(messages);
  std::iota(order.begin(), order.end(), 0);
  for (const int turn : {0, 1}) {
    for (int i = 0; i < messages; ++i)
      queues_.unexpected.keep(message(2, i % 7, 100 + i, static_cast<std::uint64_t>(i)));
    for (int i = 0; i < messages; ++i) queues_.unexpected.keep(message(2, 3, 5, static_cast<std::uint64_t>(i)));
    std::ranges::shuffle(order, random);
    for (const int i : order) {
      const auto receive = make(2, i % 2 == 0 ? any : i % 7, 100 + i);
      const auto taken = queues_.unexpected.take(*receive);
      ASSERT_TRUE(taken.has_value());
      ASSERT_EQ(taken->as<std::uint64_t>(), static_cast<std::uint64_t>(i));
    }
    for (int i = 0; i < messages; ++i) {
      const auto receive = make(2, turn == 0 ? 3 : any, any);
      const auto taken = queues_.unexpected.take(*receive);
      ASSERT_TRUE(taken.has_value());
      ASSERT_EQ(taken->as<std::uint64_t>(), static_cast<std::uint64_t>(i));
    }
    ASSERT_EQ(queues_.unexpected.size(), 0U);
  }
}

}  // namespace
}  // namespace tonari::message

namespace tonari {
namespace {

TEST(Wildcards, TakeMessagesInTheOrderTheyCame) {
  test::as_ranks(3, [](Communicator& world) {
    constexpr int messages = 200;
    if (world.rank() != 0) {
      for (int i = 0; i < messages; ++i) ASSERT_EQ(world.send(i, Rank{0}, Tag{i % 3}), Status::ok);
      return;
    }
    std::array<int, 3> next{};
    for (int i = 0; i < 2 * messages; ++i) {
      int value = -1;
      const Result<Envelope> result = world.receive(value, Rank::any, Tag::any);
      ASSERT_EQ(result.status, Status::ok);
      int& expected = next.at(result.value.source.index());
      ASSERT_EQ(value, expected);
      ASSERT_EQ(result.value.tag, value % 3);
      ++expected;
    }
  });
}

TEST(Requests, StayCompleteAndReturnTheSameResultAgain) {
  test::as_ranks(2, [](Communicator& world) {
    if (world.rank() == 1) {
      for (int i : {2, 0, 1}) {
        int go = 0;
        ASSERT_EQ(world.receive(go, Rank{0}).status, Status::ok);
        ASSERT_EQ(world.send(i + 10, Rank{0}, Tag{i}), Status::ok);
      }
      return;
    }
    std::array<int, 3> values{};
    std::array<Request, 4> requests;  // the last request is empty, so it is complete from the start
    for (int i = 0; i < 3; ++i) {
      auto& at = requests.at(static_cast<std::size_t>(i));
      at = world.start_receive(values.at(static_cast<std::size_t>(i)), Rank{1}, Tag{i});
      ASSERT_FALSE(at.test().has_value());
      ASSERT_FALSE(at.complete());
    }
    for (const std::size_t expected : {2, 0, 1}) {
      ASSERT_EQ(world.send(0, Rank{1}), Status::ok);
      ASSERT_EQ(wait_any(requests), expected);
      ASSERT_TRUE(requests.at(expected).complete());
      ASSERT_EQ(requests.at(expected).wait().value.tag, static_cast<int>(expected));
      ASSERT_EQ(requests.at(expected).test()->value.bytes, sizeof(int));
      ASSERT_EQ(values.at(expected), static_cast<int>(expected) + 10);
    }
    ASSERT_EQ(wait_any(requests), requests.size());
    ASSERT_EQ(wait_all(requests), Status::ok);
  });
}

}  // namespace
}  // namespace tonari
