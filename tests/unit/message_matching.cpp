#include "message/matching.hpp"

#include "../support/random.hpp"
#include "../support/ranks.hpp"

#include "job/session.hpp"
#include "message/runtime.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <list>
#include <memory>
#include <optional>

namespace tonari::message {
namespace {

using fabric::Head;
using fabric::Kind;

class MatchingOrder : public testing::Test {
 protected:
  std::unique_ptr<Operation> make(Operation::Kind kind, std::uint32_t context, int peer, int tag) {
    auto operation = std::make_unique<Operation>(kind, context_);
    operation->context_id = context;
    operation->peer = peer;
    operation->tag = tag;
    return operation;
  }
  static Head message(std::uint32_t context, int source, int tag, std::uint8_t number) {
    Head head;
    head.kind = Kind::message_inline;
    head.context = context;
    head.source = static_cast<std::uint32_t>(source);
    head.tag = static_cast<std::uint32_t>(tag);
    head.inline_bytes = number;  // tells messages apart
    return head;
  }
  Operation* arrive(const Head& head, std::vector<Operation*>& probed) {
    Operation* operation = matching_.match_posted(head, [&](Operation& probe) { probed.push_back(&probe); });
    if (operation == nullptr) matching_.keep(head);
    return operation;
  }

  Job job_;  // of one rank
  Context& context_ = *Runtime::of(job_.session()).world();
  Matching matching_;
};

TEST_F(MatchingOrder, TakesTheOldestMessageThatAReceiveMatches) {
  const auto from_any = make(Operation::Kind::receive, 4, any_source, any_tag);
  const auto tagged = make(Operation::Kind::receive, 4, any_source, 9);
  matching_.keep(message(6, 1, 9, 0));
  matching_.keep(message(4, 1, 8, 1));
  matching_.keep(message(4, 2, 9, 2));
  matching_.keep(message(4, 1, 9, 3));

  EXPECT_EQ(matching_.find_unexpected(*tagged)->inline_bytes, 2);
  EXPECT_EQ(matching_.take_unexpected(*tagged)->inline_bytes, 2);
  EXPECT_EQ(matching_.take_unexpected(*tagged)->inline_bytes, 3);
  EXPECT_EQ(matching_.find_unexpected(*tagged), nullptr);
  EXPECT_EQ(matching_.take_unexpected(*from_any)->inline_bytes, 1);
  EXPECT_FALSE(matching_.take_unexpected(*from_any).has_value());
  EXPECT_EQ(matching_.unexpected(), 1U);  // the other communicator's
}

TEST_F(MatchingOrder, TellsProbesAndGivesTheMessageToTheReceiveBehindThem) {
  const auto probe = make(Operation::Kind::probe, 4, 1, any_tag);
  const auto receive = make(Operation::Kind::receive, 4, any_source, 5);
  const auto late_probe = make(Operation::Kind::probe, 4, 1, 5);
  for (const auto* each : {&probe, &receive, &late_probe}) matching_.post(**each);
  std::vector<Operation*> probed;

  EXPECT_EQ(arrive(message(4, 1, 5, 0), probed), receive.get());

  EXPECT_EQ(probed, std::vector<Operation*>{probe.get()});
  EXPECT_EQ(matching_.posted(), 1U);
  matching_.withdraw(*late_probe);
  EXPECT_EQ(matching_.posted(), 0U);
}

TEST_F(MatchingOrder, FindsWhatWasAnnouncedByItsTicketAlone) {
  Head head = message(4, 1, 5, 0);
  head.kind = Kind::message_announced;
  head.set(fabric::Announced{100, 0, 7, 3});
  matching_.keep(head);

  EXPECT_EQ(matching_.find_announced(2, 7, 3), nullptr);
  EXPECT_EQ(matching_.find_announced(1, 6, 3), nullptr);
  EXPECT_EQ(matching_.find_announced(1, 7, 2), nullptr);
  ASSERT_NE(matching_.find_announced(1, 7, 3), nullptr);
  EXPECT_EQ(matching_.find_announced(1, 7, 3)->tag, 5U);
}

// The same in the plainest way: two lists, searched from the front.
class Model {
 public:
  struct Posted {
    Operation* operation;
    std::uint32_t context;
    int peer;
    int tag;
    bool is_probe;
  };
  static bool meet(const Posted& posted, const Head& head) {
    return posted.context == head.context &&
           (posted.peer == any_source || posted.peer == static_cast<int>(head.source)) &&
           (posted.tag == any_tag || posted.tag == static_cast<int>(head.tag));
  }
  Operation* arrive(const Head& head, std::vector<Operation*>& probed) {
    for (auto each = posted_.begin(); each != posted_.end();) {
      if (!meet(*each, head)) {
        ++each;
        continue;
      }
      Operation* const operation = each->operation;
      const bool is_probe = each->is_probe;
      each = posted_.erase(each);
      if (!is_probe) return operation;
      probed.push_back(operation);
    }
    kept_.push_back(head);
    return nullptr;
  }
  std::optional<std::uint8_t> find(const Posted& posted, bool take) {
    const auto found = std::ranges::find_if(kept_, [&](const Head& head) { return meet(posted, head); });
    if (found == kept_.end()) return std::nullopt;
    const std::uint8_t number = found->inline_bytes;
    if (take) kept_.erase(found);
    return number;
  }
  void post(const Posted& posted) { posted_.push_back(posted); }
  void withdraw(const Operation* operation) {
    std::erase_if(posted_, [operation](const Posted& each) { return each.operation == operation; });
  }
  [[nodiscard]] const std::list<Posted>& posted() const { return posted_; }
  [[nodiscard]] std::size_t kept() const { return kept_.size(); }

 private:
  std::list<Posted> posted_;
  std::deque<Head> kept_;
};

TEST_F(MatchingOrder, IsThatOfTwoPlainLists) {
  TONARI_TRACE_SEED();
  test::Random random(test::seed());
  Model model;
  std::vector<std::unique_ptr<Operation>> operations;
  unsigned arrivals = 30;  // percent; swings, so that now receives and now messages pile up
  for (int step = 0; step < test::rounds(40000); ++step) {
    if (step % 500 == 0) arrivals = static_cast<unsigned>(test::between(random, 20, 80));
    const auto context = static_cast<std::uint32_t>(2 * test::between(random, 0, 1));
    const int peer = static_cast<int>(test::between(random, 0, 3));
    const int tag = static_cast<int>(test::between(random, 0, 4));
    if (test::chance(random, arrivals)) {
      const Head head = message(context, peer, tag, static_cast<std::uint8_t>(step));
      std::vector<Operation*> probed;
      std::vector<Operation*> probed_in_model;
      ASSERT_EQ(arrive(head, probed), model.arrive(head, probed_in_model));
      ASSERT_EQ(probed, probed_in_model);
    } else if (test::chance(random, 5) && !model.posted().empty()) {
      auto victim = model.posted().begin();
      std::advance(victim, test::between(random, 0, model.posted().size() - 1));
      matching_.withdraw(*victim->operation);
      model.withdraw(victim->operation);
    } else {
      const bool is_probe = test::chance(random, 10);
      auto operation = make(is_probe ? Operation::Kind::probe : Operation::Kind::receive, context,
                            test::chance(random, 20) ? any_source : peer, test::chance(random, 20) ? any_tag : tag);
      const Model::Posted posted{operation.get(), context, operation->peer, operation->tag, is_probe};
      const Head* const seen = matching_.find_unexpected(*operation);
      ASSERT_EQ(seen == nullptr ? std::nullopt : std::optional(seen->inline_bytes), model.find(posted, false));
      if (is_probe && seen != nullptr) continue;
      const auto taken = matching_.take_unexpected(*operation);
      ASSERT_EQ(taken ? std::optional(taken->inline_bytes) : std::nullopt, model.find(posted, true));
      if (taken) continue;
      matching_.post(*operation);
      model.post(posted);
      operations.push_back(std::move(operation));
    }
    ASSERT_EQ(matching_.posted(), model.posted().size());
    ASSERT_EQ(matching_.unexpected(), model.kept());
  }
}

TEST(OperationLinks, KeepTheOrderOfALinkedListWhateverIsPutInOrTakenOut) {
  TONARI_TRACE_SEED();
  test::Random random(test::seed());
  Job job;
  Context& context = *Runtime::of(job.session()).world();
  std::vector<std::unique_ptr<Operation>> operations;
  for (int i = 0; i < 20; ++i) operations.push_back(std::make_unique<Operation>(Operation::Kind::send, context));
  std::vector<Operation*> outside;
  for (const auto& each : operations) outside.push_back(each.get());
  OperationList list;
  std::vector<Operation*> model;
  for (int step = 0; step < test::rounds(5000); ++step) {
    if (!outside.empty() && test::chance(random, 50)) {
      Operation* const operation = outside.back();
      outside.pop_back();
      const std::size_t at = test::between(random, 0, model.size());
      if (at == model.size() && test::chance(random, 50)) {
        list.push_back(*operation);
      } else {
        list.insert_after(at == 0 ? nullptr : model[at - 1], *operation);
      }
      model.insert(model.begin() + static_cast<std::ptrdiff_t>(at), operation);
    } else if (!model.empty()) {
      const std::size_t at = test::between(random, 0, model.size() - 1);
      list.remove(*model[at]);
      outside.push_back(model[at]);
      model.erase(model.begin() + static_cast<std::ptrdiff_t>(at));
    }
    std::vector<Operation*> forwards;
    Operation* last = nullptr;
    for (Operation* each = list.front(); each != nullptr; last = each, each = each->next) {
      ASSERT_EQ(each->previous, last);
      forwards.push_back(each);
    }
    ASSERT_EQ(forwards, model);
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
      for (int i = 0; i < messages; ++i) ASSERT_EQ(world.send(i, 0, i % 3), Status::ok);
      return;
    }
    std::array<int, 3> next{};
    for (int i = 0; i < 2 * messages; ++i) {
      int value = -1;
      const Result result = world.receive(value, any_source, any_tag);
      ASSERT_EQ(result.status, Status::ok);
      int& expected = next.at(static_cast<std::size_t>(result.envelope.source));
      ASSERT_EQ(value, expected);
      ASSERT_EQ(result.envelope.tag, value % 3);
      ++expected;
    }
  });
}

TEST(Probe, TellsTheLengthAndLeavesTheMessage) {
  test::as_ranks(2, [](Communicator& world) {
    for (const std::size_t bytes : {0, 10, 1000, 50000}) {
      const auto sent = test::pattern(bytes, bytes);
      if (world.rank() == 0) {
        ASSERT_EQ(world.send(sent, 1, 4), Status::ok);
        ASSERT_EQ(world.receive(std::span<int>(), 1).status, Status::ok);
        continue;
      }
      const Result found = world.probe(any_source, any_tag);
      ASSERT_EQ(found.status, Status::ok);
      ASSERT_EQ(found.envelope.source, 0);
      ASSERT_EQ(found.envelope.tag, 4);
      const auto again = world.probe_now(0, 4);
      ASSERT_TRUE(again.has_value());
      ASSERT_FALSE(world.probe_now(0, 5).has_value());

      std::vector<std::byte> received(again->bytes);

      ASSERT_EQ(world.receive(received, again->source, again->tag).status, Status::ok);
      ASSERT_TRUE(received == sent);
      ASSERT_FALSE(world.probe_now(any_source, any_tag).has_value());
      ASSERT_EQ(world.send(std::span<const int>(), 0), Status::ok);
    }
  });
}

TEST(Requests, AreCompleteOnceAndTellTheSameAgain) {
  test::as_ranks(2, [](Communicator& world) {
    if (world.rank() == 1) {
      for (int i : {2, 0, 1}) {
        int go = 0;
        ASSERT_EQ(world.receive(go, 0).status, Status::ok);
        ASSERT_EQ(world.send(i + 10, 0, i), Status::ok);
      }
      return;
    }
    std::array<int, 3> values{};
    std::array<Request, 4> requests;  // the last is complete from the start
    for (int i = 0; i < 3; ++i) {
      auto& at = requests.at(static_cast<std::size_t>(i));
      at = world.start_receive(values.at(static_cast<std::size_t>(i)), 1, i);
      ASSERT_FALSE(at.test().has_value());
      ASSERT_FALSE(at.complete());
    }
    for (const std::size_t expected : {2, 0, 1}) {
      ASSERT_EQ(world.send(0, 1), Status::ok);
      ASSERT_EQ(wait_any(requests), expected);
      ASSERT_TRUE(requests.at(expected).complete());
      ASSERT_EQ(requests.at(expected).wait().envelope.tag, static_cast<int>(expected));
      ASSERT_EQ(requests.at(expected).test()->envelope.bytes, sizeof(int));
      ASSERT_EQ(values.at(expected), static_cast<int>(expected) + 10);
    }
    ASSERT_EQ(wait_any(requests), requests.size());
    ASSERT_EQ(wait_all(requests), Status::ok);
  });
}

}  // namespace
}  // namespace tonari
