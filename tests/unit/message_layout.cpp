#include "../support/random.hpp"
#include "../support/ranks.hpp"

#include <array>
#include <limits>
#include <optional>
#include <stdexcept>

namespace tonari {
namespace {

class LayoutOf : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, LayoutOf, testing::ValuesIn(test::variants_and_network()), test::name_of);

// A random layout of elements of type T in its own memory, and the reference: the position of each element, in order.
template <class T>
struct Case {
  std::vector<T> memory;
  std::vector<std::size_t> order;
  Strided<T> strided{};
  std::vector<Block> blocks;  // if empty, the layout is `strided`

  Case(test::Random& random, std::size_t elements) {
    const std::size_t block = test::between(random, 1, 20);
    const std::size_t count = elements / block;
    if (test::chance(random, 50)) {
      const std::size_t stride = block + (test::chance(random, 20) ? 0 : test::between(random, 1, 30));
      memory.resize(count * stride + 7);
      strided = {memory, count, block, stride};
      for (std::size_t i = 0; i < count; ++i) add({i * stride, block});
    } else {
      for (std::size_t i = 0, at = 0; i <= count; ++i) {  // at least one
        blocks.push_back({at + test::between(random, 0, 3), test::between(random, 0, block)});
        at = blocks.back().offset + blocks.back().elements;
        memory.resize(at);
      }
      std::ranges::shuffle(blocks, random);
      for (const Block& each : blocks) add(each);
    }
  }
  void add(const Block& block) {
    for (std::size_t i = 0; i < block.elements; ++i) order.push_back(block.offset + i);
  }
  /// Calls `use` with the layout.
  template <class Use>
  auto with(Use&& use) {
    return blocks.empty() ? use(strided) : use(Indexed{memory, blocks});
  }
};

using Element = std::uint32_t;

Element element(std::size_t seed, std::size_t at) { return static_cast<Element>(seed * 1'000'003 + at * 7 + 1); }

Case<Element> filled(test::Random& random, std::size_t elements, std::size_t seed) {
  Case<Element> made(random, elements);
  for (std::size_t i = 0; i < made.order.size(); ++i) made.memory[made.order[i]] = element(seed, i);
  return made;
}

// Expects that exactly the first `sent` elements were received, in order, and that no other byte was written.
void expect_received(Case<Element>& got, std::size_t sent, std::size_t seed) {
  std::vector<Element> expected(got.memory.size());
  for (std::size_t i = 0; i < std::min(sent, got.order.size()); ++i) expected[got.order[i]] = element(seed, i);
  EXPECT_TRUE(got.memory == expected) << "seed " << seed << ", " << sent << " elements sent";
}

constexpr std::array<std::size_t, 10> lengths{0, 1, 11, 13, 60, 300, 2500, 3300, 6000, 100000};

TEST_P(LayoutOf, OneSideMatchesAnyLayoutOfTheOtherForEveryLength) {
  run(2, [](Communicator& world) {
    test::Random random(test::seed());  // both ranks draw the same numbers
    for (int turn = 0; turn < test::rounds(8); ++turn) {
      for (std::size_t each = 0; each < lengths.size(); ++each) {
        const std::size_t seed = static_cast<std::size_t>(turn) * lengths.size() + each;
        Case<Element> from = filled(random, lengths[each], seed);
        const std::size_t longer = test::chance(random, 30) ? test::between(random, 0, 40) : 0;
        Case<Element> to(random, lengths[each] + longer);
        const auto mode = test::chance(random, 30) ? SendMode::when_posted : SendMode::standard;
        if (world.rank() == 0) {
          ASSERT_EQ(from.with([&](const auto& layout) { return world.send(layout, Rank{1}, Tag{turn}, mode); }),
                    Status::ok);
          continue;
        }
        const Result<Envelope> result = to.with([&](const auto& layout) { return world.receive(layout, Rank{0}); });
        const std::size_t sent = from.order.size();
        ASSERT_EQ(result.status, sent > to.order.size() ? Status::truncated : Status::ok);
        ASSERT_EQ(result.value.bytes, sent * sizeof(Element));
        expect_received(to, sent, seed);
      }
    }
  });
}

TEST_P(LayoutOf, OneSideMatchesABufferOfTheOther) {
  run(2, [](Communicator& world) {
    test::Random random(test::seed());
    for (const std::size_t length : lengths) {
      Case<Element> scattered = filled(random, length, length);
      std::vector<Element> buffer(scattered.order.size());
      if (world.rank() == 0) {
        ASSERT_EQ(scattered.with([&](const auto& layout) { return world.send(layout, Rank{1}); }), Status::ok);
        ASSERT_EQ(world.receive(buffer, Rank{1}).status, Status::ok);
      } else {
        ASSERT_EQ(world.receive(buffer, Rank{0}).status, Status::ok);
        ASSERT_EQ(world.send(buffer, Rank{0}), Status::ok);
      }
      for (std::size_t i = 0; i < buffer.size(); ++i) ASSERT_EQ(buffer[i], element(length, i));
    }
  });
}

TEST_P(LayoutOf, SeveralStartedAtOnceAllArrive) {
  run(2, [](Communicator& world) {
    test::Random random(test::seed() + 1);
    for (int turn = 0; turn < test::rounds(4); ++turn) {
      constexpr std::size_t several = 12;
      std::vector<Case<Element>> from;
      std::vector<Case<Element>> to;
      std::vector<Request> requests;
      for (std::size_t i = 0; i < several; ++i) {
        const std::size_t length = lengths[test::between(random, 0, lengths.size() - 1)];
        from.push_back(filled(random, length, i));
        to.emplace_back(random, length);
      }
      const int peer = 1 - world.rank().value();
      for (std::size_t i = 0; i < several; ++i) {
        const int tag = static_cast<int>(i);
        requests.push_back(
            to[i].with([&](const auto& layout) { return world.start_receive(layout, Rank{peer}, Tag{tag}); }));
        requests.push_back(
            from[i].with([&](const auto& layout) { return world.start_send(layout, Rank{peer}, Tag{tag}); }));
      }
      if (turn % 2 == 0) {
        while (wait_any(requests) != requests.size()) {
        }
      } else {
        (void)wait_all(requests);
      }
      for (std::size_t i = 0; i < several; ++i) {
        ASSERT_EQ(requests[2 * i + 1].wait().status, Status::ok);
        ASSERT_EQ(requests[2 * i].wait().value.bytes, from[i].order.size() * sizeof(Element));
        expect_received(to[i], from[i].order.size(), i);
      }
    }
  });
}

TEST_P(LayoutOf, AReceiveTakesAMatchedMessageAndMayBePersistent) {
  run(2, [](Communicator& world) {
    for (const std::size_t rows : {3, 200, 20000}) {
      constexpr std::size_t columns = 5;
      std::vector<std::uint64_t> matrix(rows * columns);
      const Strided column{std::span(matrix).subspan(3), rows, 1, columns};
      const auto fill = [&](std::uint64_t seed) {
        for (std::size_t i = 0; i < rows; ++i) matrix[i * columns + 3] = seed + i;
      };
      const auto check = [&](std::uint64_t seed) {
        for (std::size_t i = 0; i < matrix.size(); ++i) {
          ASSERT_EQ(matrix[i], i % columns == 3 ? seed + i / columns : 0) << "element " << i << " of " << rows;
        }
      };
      if (world.rank() == 0) {
        fill(10);
        ASSERT_EQ(world.send(column, Rank{1}), Status::ok);
        PersistentRequest send = world.prepare_send(column, Rank{1});
        for (const std::uint64_t seed : {20, 30}) {
          fill(seed);
          ASSERT_TRUE(send.start());
          ASSERT_EQ(send.wait().status, Status::ok);
        }
        continue;
      }
      Message message = world.matched_probe(Rank{0}, Tag::any);
      const Strided beyond{std::span(matrix).subspan(4), rows + 1, 1, columns};
      ASSERT_EQ(message.receive(beyond).status, Status::bounds);  // the message can still be received
      ASSERT_EQ(message.receive(column).status, Status::ok);
      ASSERT_EQ(message.receive(column).status, Status::invalid);
      check(10);
      PersistentRequest receive = world.prepare_receive(column, Rank{0});
      for (const std::uint64_t seed : {20, 30}) {
        ASSERT_TRUE(receive.start());
        ASSERT_EQ(receive.wait().status, Status::ok);
        check(seed);
      }
    }
  });
}

TEST_P(LayoutOf, AMessageThatIsTooLongIsTruncatedWithinAnElement) {
  run(2, [](Communicator& world) {
    const auto sent = test::pattern(2503, 1);
    if (world.rank() == 0) {
      ASSERT_EQ(world.send(std::span(sent).first(19), Rank{1}), Status::ok);
      ASSERT_EQ(world.send(sent, Rank{1}), Status::ok);
      return;
    }
    std::vector<std::uint64_t> received(1000);
    const Strided every_third{received, 300, 1, 3};
    ASSERT_EQ(world.receive(every_third, Rank{0}).status, Status::ok);
    std::array<std::uint64_t, 3> first{};
    std::memcpy(first.data(), sent.data(), 19);
    for (std::size_t i = 0; i < received.size(); ++i) ASSERT_EQ(received[i], i % 3 == 0 && i < 9 ? first[i / 3] : 0);

    const Result<Envelope> cut = world.receive(every_third, Rank{0});

    ASSERT_EQ(cut.status, Status::truncated);
    ASSERT_EQ(cut.value.bytes, sent.size());
    for (std::size_t i = 0; i < received.size(); ++i) {
      std::uint64_t expected = 0;
      if (i % 3 == 0 && i < 900) std::memcpy(&expected, sent.data() + i / 3 * 8, 8);
      ASSERT_EQ(received[i], expected);
    }
  });
}

TEST_P(LayoutOf, ACancelledOrAbandonedReceiveWritesNothing) {
  run(2, [](Communicator& world) {
    if (world.rank() == 0) {
      ASSERT_EQ(world.receive(std::span<int>(), Rank{1}, Tag{1}).status, Status::ok);
      return;
    }
    std::vector<int> received(3000, 7);
    const std::array blocks{Block{2990, 5}, Block{0, 2000}};
    Request cancelled = world.start_receive(Indexed{received, blocks}, Rank{0});
    ASSERT_TRUE(cancelled.cancel());
    ASSERT_EQ(cancelled.wait().status, Status::cancelled);
    EXPECT_THROW(
        {
          Request given_up = world.start_receive(Indexed{received, blocks}, Rank{0});
          throw std::runtime_error("nobody will send");
        },
        std::runtime_error);
    ASSERT_TRUE(std::ranges::all_of(received, [](int each) { return each == 7; }));
    ASSERT_EQ(world.send(std::span<const int>(), Rank{0}, Tag{1}), Status::ok);
  });
}

TEST_P(LayoutOf, AReceiveFromARankThatDiesFailsAndWritesNothing) {
  const auto body = [](Communicator& world) {
    std::vector<int> values(50000, world.rank().value());
    const Strided layout{values, 10000, 1, 5};
    if (world.rank() == 1) {
      ASSERT_EQ(world.receive(std::span<int>(), Rank{0}).status, Status::ok);
      throw std::runtime_error("rank 1 dies");
    }
    Request never_sent = world.start_receive(layout, Rank{1}, Tag{2});
    ASSERT_EQ(world.send(std::span<const int>(), Rank{1}), Status::ok);
    ASSERT_EQ(never_sent.wait().status, Status::peer_gone);
    ASSERT_EQ(world.send(layout, Rank{1}, Tag{3}, SendMode::when_posted), Status::peer_gone);
    ASSERT_TRUE(std::ranges::all_of(values, [](int each) { return each == 0; }));
  };
  EXPECT_THROW(run(2, body), std::runtime_error);
}

TEST(Layout, AWrongOneIsRefusedAndNothingIsStarted) {
  test::as_ranks(1, [](Communicator& world) {
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    std::vector<int> memory(100);
    const auto refusal = [&](const auto& layout) {
      const Status sent = world.send(layout, Rank{0});
      EXPECT_EQ(world.start_send(layout, Rank{0}).wait().status, sent);
      EXPECT_EQ(world.start_receive(layout, Rank{0}).wait().status, sent);
      EXPECT_EQ(world.receive(layout, Rank{0}).status, sent);
      EXPECT_FALSE(world.probe_now(Rank{0}, Tag::any).has_value());
      return sent;
    };
    EXPECT_EQ(refusal(Strided{memory, 11, 1, 10}), Status::bounds);
    EXPECT_EQ(refusal(Strided{memory, 1, 101, 1}), Status::bounds);
    EXPECT_EQ(refusal(Strided{memory, 10, 11, 10}), Status::bounds);
    EXPECT_EQ(refusal(Strided{memory, most, 1, most}), Status::bounds);
    EXPECT_EQ(refusal(Strided{memory, 2, 1, most}), Status::bounds);
    EXPECT_EQ(refusal(Strided{memory, most / 2, 2, 2}), Status::bounds);
    EXPECT_EQ(refusal(Strided{memory, 2, most, 1}), Status::bounds);
    EXPECT_EQ(refusal(Strided{memory, most, 90, 0}), Status::invalid);
    const std::array beyond{Block{0, 5}, Block{90, 11}};
    EXPECT_EQ(refusal(Indexed{memory, beyond}), Status::bounds);
    const std::array far_beyond{Block{most, 2}};
    EXPECT_EQ(refusal(Indexed{memory, far_beyond}), Status::bounds);
    const std::array too_long{Block{2, most}};
    EXPECT_EQ(refusal(Indexed{memory, too_long}), Status::bounds);

    const Strided column{memory, 10, 1, 10};
    EXPECT_EQ(world.send(column, Rank{1}), Status::invalid);
    EXPECT_EQ(world.send(column, Rank{0}, Tag{-1}), Status::invalid);
    EXPECT_EQ(world.start_send(column, Rank{-1}).wait().status, Status::invalid);
    EXPECT_EQ(world.start_receive(column, Rank{1}).wait().status, Status::invalid);
    EXPECT_EQ(world.receive(column, Rank{0}, Tag{-2}).status, Status::invalid);
    EXPECT_EQ(world.receive(Strided{memory, 10, 5, 4}, Rank{0}).status, Status::invalid);  // the columns overlap
    if constexpr (sizeof(std::size_t) == 8) {
      std::vector<int> one(1);
      const Strided more_than_there_is{one, most / 2, 1, 0};
      EXPECT_EQ(world.send(more_than_there_is, Rank{0}), Status::invalid);
    }
    EXPECT_FALSE(world.probe_now(Rank{0}, Tag::any).has_value());
  });
}

TEST(Layout, MayOverlapWhenSentAndAListIsWrittenInOrder) {
  test::as_ranks(1, [](Communicator& world) {
    std::vector<int> numbers{0, 1, 2, 3, 4, 5};
    std::array<int, 9> windows{};
    Request receive = world.start_receive(windows, Rank{0});
    ASSERT_EQ(world.send(Strided{std::as_const(numbers), 3, 3, 1}, Rank{0}), Status::ok);
    ASSERT_EQ(receive.wait().status, Status::ok);
    EXPECT_EQ(windows, (std::array<int, 9>{0, 1, 2, 1, 2, 3, 2, 3, 4}));

    const std::array twice{Block{0, 2}, Block{4, 0}, Block{1, 2}};
    receive = world.start_receive(Indexed{numbers, twice}, Rank{0});
    ASSERT_EQ(world.send(std::array{10, 11, 12, 13}, Rank{0}), Status::ok);
    ASSERT_EQ(receive.wait().status, Status::ok);
    EXPECT_EQ(numbers, (std::vector<int>{10, 12, 13, 3, 4, 5}));
  });
}

TEST(Layout, AnEmptyOneIsAnEmptyMessage) {
  test::as_ranks(1, [](Communicator& world) {
    std::vector<double> none;
    Request receive = world.start_receive(Indexed{none, std::span<const Block>()}, Rank{0});
    ASSERT_EQ(world.send(Strided{none, 0, 3, 8}, Rank{0}), Status::ok);
    const Result<Envelope> result = receive.wait();
    EXPECT_EQ(result.status, Status::ok);
    EXPECT_EQ(result.value.bytes, 0U);
    receive = world.start_receive(none, Rank{0});
    ASSERT_EQ(world.send(Strided{none, 7, 0, 8}, Rank{0}), Status::ok);
    EXPECT_EQ(receive.wait().status, Status::ok);
  });
}

// A layout of constants can be sent, but not received into. A layout is never sent as a value itself.
static_assert(detail::is_layout_of_plain<Strided<const int>> && detail::is_layout_of_plain<Indexed<double>&>);
static_assert(!detail::is_layout_of_plain<Strided<int*>> && !detail::is_layout_of_plain<std::vector<int>>);
static_assert(!Transferable<Strided<int>> && !Transferable<Indexed<const int>> &&
              !Transferable<std::vector<Strided<int>>>);

}  // namespace
}  // namespace tonari
