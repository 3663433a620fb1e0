#include "message/typed.hpp"

#include "../support/layouts.hpp"
#include "../support/ranks.hpp"
#include "message/collectives.hpp"
#include "message/message_runtime.hpp"

#include <array>
#include <cmath>
#include <optional>

namespace tonari {
namespace {

using message::Context;
using message::LayoutCursor;
using message::MessageRuntime;
using test::LayoutMaker;
using test::LayoutMemory;
using test::ModelledLayout;

/// Runs `body(world, context)` in ranks that are threads, under every variant.
class TypedMessages : public testing::TestWithParam<test::Variant> {
 protected:
  static void run(int ranks, const std::function<void(Communicator&, Context&)>& body) {
    test::as_jobs(
        ranks,
        [&body](Job& job) {
          Communicator world(job);
          body(world, *MessageRuntime::of(job.session()).world());
        },
        GetParam().settings);
  }
};
INSTANTIATE_TEST_SUITE_P(On, TypedMessages, testing::ValuesIn(test::variants_and_network()), test::name_of);

constexpr std::size_t element_bytes_max = 3000;
constexpr double message_bytes_max = 1 << 20;

/// Memory for any number of elements of a random layout, with about `bytes` data bytes.
LayoutMemory memory_for(test::Random& random, std::size_t bytes) {
  LayoutMaker maker(random, element_bytes_max);
  ModelledLayout element = maker.make(static_cast<unsigned>(test::between(random, 0, 4)), false);
  while (element.bytes.empty()) element = maker.make(0, false);
  const std::size_t count = std::max<std::size_t>(bytes / element.bytes.size(), 1);
  return {element, count, maker.distance(element)};
}

/// A length from 1 byte to 1 MiB; each order of magnitude is as likely as another.
std::size_t any_length(test::Random& random) {
  return static_cast<std::size_t>(std::pow(message_bytes_max, std::uniform_real_distribution<double>(0, 1)(random)));
}

// The same message in the memory of the sender and of the receiver, and the memory of the receiver afterwards.
struct Case {
  LayoutMemory from;
  LayoutMemory to;
  std::vector<std::byte> data;
  std::vector<std::byte> expected;

  static Case make(test::Random& random) {
    const std::size_t bytes = any_length(random);
    Case made{
        memory_for(random, bytes), memory_for(random, test::chance(random, 70) ? bytes : any_length(random)), {}, {}};
    made.data = test::pattern(made.from.bytes(), random());
    made.from.set(0, made.data);
    LayoutMemory filled = made.to;
    filled.set(0, std::span(made.data).first(made.received()));
    made.expected = filled.memory();
    return made;
  }
  [[nodiscard]] std::size_t received() const { return std::min(from.bytes(), to.bytes()); }
  [[nodiscard]] Status status() const { return from.bytes() > to.bytes() ? Status::truncated : Status::ok; }
};

TEST_P(TypedMessages, FillExactlyTheDataOfAnyLayoutFromAnyOther) {
  run(2, [](Communicator& world, Context& context) {
    test::Random random(test::seed());  // both ranks draw the same numbers
    for (int turn = 0; turn < test::rounds(12); ++turn) {
      Case each = Case::make(random);
      const auto mode = test::chance(random, 30) ? SendMode::when_posted : SendMode::standard;
      const bool matched = test::chance(random, 25);
      const bool sends_started = test::chance(random, 50);
      const bool receives_started = test::chance(random, 50);
      LayoutCursor from = each.from.cursor();
      LayoutCursor to = each.to.cursor();
      if (world.rank() == 0) {
        const Status sent = sends_started ? message::start_send(context, from, 1, turn, mode).wait().status
                                          : message::send(context, from, 1, turn, mode);
        ASSERT_EQ(sent, Status::ok);
        continue;
      }
      Result<Envelope> result;
      if (matched) {
        Message message = world.matched_probe(Rank{0}, Tag{turn});
        result = message::start_receive(message, to).wait();
        ASSERT_EQ(message::start_receive(message, to).wait().status, Status::invalid);
      } else {
        result = receives_started ? message::start_receive(context, to, -1, turn).wait()
                                  : message::receive(context, to, -1, turn);
      }
      ASSERT_EQ(result.status, each.status());
      ASSERT_EQ(result.value.bytes, each.from.bytes());
      ASSERT_EQ(result.value.source, 0);
      ASSERT_TRUE(each.to.memory() == each.expected) << "turn " << turn << " of seed " << test::seed();
    }
  });
}

TEST_P(TypedMessages, TravelInBothDirectionsAtOnce) {
  run(2, [](Communicator& world, Context& context) {
    test::Random random(test::seed() + 1);
    for (int turn = 0; turn < test::rounds(3); ++turn) {
      constexpr std::size_t several = 6;
      std::vector<Case> cases;
      std::vector<Request> requests;
      const int me = world.rank().value();
      for (std::size_t i = 0; i < 2 * several; ++i)
        cases.push_back(Case::make(random));  // the sends of rank 0 come first
      for (std::size_t i = 0; i < 2 * several; ++i) {
        const bool sends = (i < several) == (me == 0);
        const int tag = static_cast<int>(i);
        requests.push_back(sends ? message::start_send(context, cases[i].from.cursor(), 1 - me, tag)
                                 : message::start_receive(context, cases[i].to.cursor(), 1 - me, tag));
      }
      (void)wait_all(requests);
      for (std::size_t i = 0; i < 2 * several; ++i) {
        const bool sends = (i < several) == (me == 0);
        ASSERT_EQ(requests[i].wait().status, sends ? Status::ok : cases[i].status());
        ASSERT_TRUE(sends || cases[i].to.memory() == cases[i].expected) << "seed " << test::seed();
      }
    }
  });
}

// Otherwise both ranks wait for ever.
TEST_P(TypedMessages, AreSentWhileTheirSenderWaitsForTheReply) {
  run(2, [](Communicator& world, Context& context) {
    test::Random random(test::seed() + 4);
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{10'000}, std::size_t{100'000}}) {
      LayoutMemory memory = memory_for(random, bytes);
      const std::vector<std::byte> data = test::pattern(memory.bytes(), random());
      std::array<std::byte, 1> reply{};
      if (world.rank() == 0) {
        memory.set(0, data);
        Request sending = message::start_send(context, memory.cursor(), 1, 0);
        ASSERT_EQ(message::start_receive(context, reply, 1, 1).wait().status, Status::ok);
        ASSERT_EQ(sending.wait().status, Status::ok);
      } else {
        std::vector<std::byte> received(data.size());
        ASSERT_EQ(message::start_receive(context, received, 0, 0).wait().status, Status::ok);
        ASSERT_EQ(received, data) << "seed " << test::seed();
        ASSERT_EQ(message::start_send(context, reply, 0, 1).wait().status, Status::ok);
      }
    }
  });
}

TEST_P(TypedMessages, ArePartOfSchedules) {
  run(3, [](Communicator& world, Context& context) {
    test::Random random(test::seed() + 2);
    for (int turn = 0; turn < test::rounds(4); ++turn) {
      // In round 1 each rank sends its data to the next rank; in round 2 it forwards the data from a copy.
      const std::size_t bytes = any_length(random);
      const ModelledLayout element = LayoutMaker(random, element_bytes_max).make(3, false);
      LayoutMaker maker(random, element_bytes_max);
      const std::size_t count = element.bytes.empty() ? 3 : bytes / element.bytes.size() + 1;
      std::array<std::optional<LayoutMemory>, 4> memories;
      for (auto& memory : memories) memory.emplace(element, count, maker.distance(element));
      auto& [own, first, copied, second] = memories;
      const auto data_of = [&](int rank) { return test::pattern(own->bytes(), static_cast<std::size_t>(rank + 3)); };
      own->set(0, data_of(world.rank().value()));
      const int next = (world.rank().value() + 1) % 3;
      const int previous = (world.rank().value() + 2) % 3;

      Request request = start_collective(context, job::Wait::all_to_all, [&](message::Schedule& schedule) {
        schedule.send(own->cursor(), next);
        schedule.receive(first->cursor(), previous);
        schedule.copy(copied->cursor(), first->cursor());
        schedule.next_round();
        schedule.send(copied->cursor(), next);
        schedule.receive(second->cursor(), previous);
      });

      ASSERT_EQ(request.wait().status, Status::ok);
      ASSERT_TRUE(first->data() == data_of(previous)) << "seed " << test::seed();
      ASSERT_TRUE(second->data() == data_of(next)) << "seed " << test::seed();  // two ranks before, of three
    }
  });
}

TEST_P(TypedMessages, FailOnBothSidesOfAScheduleThatDisagrees) {
  run(2, [](Communicator& world, Context& context) {
    for (const std::size_t count : {std::size_t{3}, std::size_t{30'000}}) {
      std::vector<std::byte> memory(16 * count + 16);
      const auto cursor = [&](std::size_t elements) {
        return LayoutCursor(memory.data(), message::Layout::bytes(8), elements, 16);
      };
      const int peer = 1 - world.rank().value();
      Request request = start_collective(context, job::Wait::all_to_all, [&](message::Schedule& schedule) {
        if (world.rank() == 0) schedule.send(cursor(count - 1), peer);
        if (world.rank() == 1) schedule.receive(cursor(count), peer);
        schedule.next_round();
        if (world.rank() == 1) schedule.send(cursor(count), peer);
        if (world.rank() == 0) schedule.receive(cursor(count), peer);
      });
      ASSERT_EQ(request.wait().status, Status::invalid);
    }
  });
}

TEST(TypedMessage, WithWrongArgumentsIsRefused) {
  test::as_jobs(1, [](Job& job) {
    Context& context = *MessageRuntime::of(job.session()).world();
    std::array<std::byte, 64> memory{};
    LayoutCursor cursor(memory.data(), message::Layout::bytes(4), 4, 16);
    EXPECT_EQ(message::send(context, cursor, 1, 0), Status::invalid);
    EXPECT_EQ(message::send(context, cursor, 0, -1), Status::invalid);
    EXPECT_EQ(message::receive(context, cursor, 1, 0).status, Status::invalid);
    EXPECT_EQ(message::receive(context, cursor, 0, -2).status, Status::invalid);
    EXPECT_EQ(message::start_send(context, cursor, 1, 0).wait().status, Status::invalid);
    EXPECT_EQ(message::start_send(context, cursor, -1, 0).wait().status, Status::invalid);
    EXPECT_EQ(message::start_send(context, cursor, 0, -1).wait().status, Status::invalid);
    EXPECT_EQ(message::start_receive(context, cursor, 1, 0).wait().status, Status::invalid);
    EXPECT_EQ(message::start_receive(context, cursor, 0, -2).wait().status, Status::invalid);
  });
}

}  // namespace
}  // namespace tonari
