#include "../support/ranks.hpp"
#include "../support/windows.hpp"

#include <tonari/tonari.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

// Calls that are made of other public calls: results by value, receives that allocate, typed places in windows.
namespace tonari {
namespace {

using test::as_jobs;
using test::as_ranks;

static_assert(Rank{1} + 1 == 2 && (Rank{3} + 1) % 4 == 0 && Rank{3} - Rank{1} == 2 && Rank{2} < 3U);
static_assert((Rank{0} - 1) % 4 == 3 && (Rank{0} - 5) % 4 == 3);
static_assert(Rank{std::size_t{1} << 32} < 0 && Rank{std::size_t{1} << 32} != Rank::any);
static_assert(detail::neighbour(Rank{0}, -1, 4) == 3 && detail::neighbour(Rank{3}, 9, 4) == 0);
static_assert(sizeof(Rank) == sizeof(int) && std::is_trivially_copyable_v<Envelope>);
static_assert(!std::is_convertible_v<int, Rank> && !std::is_convertible_v<Rank, int>);
static_assert(!std::is_constructible_v<Rank, JobRank> && !std::is_constructible_v<Rank, Tag>);

TEST(Check, ReturnsTheValueOrThrowsTheStatus) {
  EXPECT_NO_THROW(check(Status::ok, "a barrier"));
  EXPECT_EQ(check(Result<int>{Status::ok, 7}), 7);
  try {
    check(Status::peer_gone, "a barrier");
    ADD_FAILURE() << "check() did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.status, Status::peer_gone);
    EXPECT_EQ(std::string(error.what()), "a barrier: " + std::string(explain(Status::peer_gone)));
  }
  EXPECT_THROW((void)check(Result<int>{Status::bounds, 7}), Error);
}

TEST(Ranks, FormARangeAndARing) {
  as_ranks(3, [](Communicator& world) {
    int sum = 0;
    for (const Rank rank : world.ranks()) sum += rank.value();
    EXPECT_EQ(sum, 3);
    EXPECT_EQ(world.neighbour(+1), (world.rank() + 1) % 3);
    EXPECT_EQ(world.neighbour(-1), (world.rank() + 2) % 3);
    EXPECT_EQ(world.neighbour(-6), world.rank());
  });
}

TEST(Ranks, MapFromACommunicatorToTheJob) {
  as_ranks(4, [](Communicator& world) {
    const auto half = world.split(world.rank().value() % 2, -world.rank().value());
    ASSERT_TRUE(half.has_value());
    EXPECT_EQ(half->job_rank(half->rank()).value(), world.rank().value());
    EXPECT_EQ(half->group().position(half->job_rank(Rank{1})), Rank{1});
    EXPECT_EQ(half->group().position(JobRank{1 - world.rank().value() % 2}), std::nullopt);
  });
}

TEST(Receive, AllocatesRoomForAMessageOfAnyLength) {
  as_ranks(2, [](Communicator& world) {
    if (world.rank() == 0) {
      check(world.send(std::vector<double>{3, 1, 4}, Rank{1}, Tag{1}));
      check(world.send(std::string("good morning"), Rank{1}, Tag{2}));
      check(world.send(7, Rank{1}, Tag{3}));
      check(world.send(std::array<char, 5>{}, Rank{1}, Tag{4}));
      check(world.send(std::vector<int>(), Rank{1}, Tag{5}));
      check(world.send(std::array<int, 2>{}, Rank{1}, Tag{6}));
    } else {
      EXPECT_EQ(check(world.receive<std::vector<double>>(Rank{0}, Tag{1})), (std::vector<double>{3, 1, 4}));
      EXPECT_EQ(check(world.receive<std::string>(Rank{0}, Tag{2})), "good morning");
      EXPECT_EQ(check(world.receive<int>(Rank{0}, Tag{3})), 7);
      EXPECT_EQ(world.receive<std::vector<int>>(Rank{0}, Tag{4}).status, Status::invalid)
          << "5 bytes are not a whole number of ints";
      EXPECT_TRUE(check(world.receive<std::vector<int>>(Rank{0}, Tag{5})).empty());
      EXPECT_EQ(world.receive<int>(Rank{0}, Tag{6}).status, Status::invalid)
          << "a message of two ints must not be received as one int";
    }
    EXPECT_EQ(world.receive<int>(Rank{2}).status, Status::invalid);
  });
}

TEST(Receive, TakesEachMessageOnceInSeveralThreads) {
  constexpr int each = 200;
  as_ranks(2, [](Communicator& world) {
    if (world.rank() == 0) {
      for (int i = 0; i < 2 * each; ++i)
        check(world.send(std::vector<int>(static_cast<std::size_t>(i % 7), i), Rank{1}));
      return;
    }
    std::array<std::size_t, 2> lengths{};
    test::in_threads(2, [&](int thread) {
      for (int i = 0; i < each; ++i) {
        const auto numbers = check(world.receive<std::vector<int>>());
        for (const int number : numbers) ASSERT_EQ(static_cast<std::size_t>(number % 7), numbers.size());
        lengths[static_cast<std::size_t>(thread)] += numbers.size();
      }
    });
    std::size_t expected = 0;
    for (int i = 0; i < 2 * each; ++i) expected += static_cast<std::size_t>(i % 7);
    EXPECT_EQ(lengths[0] + lengths[1], expected);
  });
}

TEST(SendReceive, PassesLongMessagesRoundTheRing) {
  as_ranks(3, [](Communicator& world) {
    const std::vector<int> sent(1'000'000, world.rank().value());
    std::vector<int> received(sent.size());
    const Envelope envelope =
        check(world.send_receive(sent, world.neighbour(+1), received, world.neighbour(-1), Tag{4}));
    EXPECT_EQ(envelope.source, world.neighbour(-1));
    EXPECT_EQ(envelope.tag, Tag{4});
    EXPECT_EQ(received, std::vector<int>(sent.size(), world.neighbour(-1).value()));
  });
}

TEST(SendReceive, ReturnsTheFailureOfTheSendAndReceivesNothing) {
  as_ranks(1, [](Communicator& world) {
    int number = 5;
    EXPECT_EQ(world.send_receive(1, Rank{1}, number, Rank{0}).status, Status::invalid);
    EXPECT_EQ(number, 5);
  });
}

TEST(CollectiveValues, AreReturnedByTheCalls) {
  as_ranks(4, [](Communicator& world) {
    const int rank = world.rank().value();
    EXPECT_EQ(check(world.all_reduce_value(rank + 1)), 10);
    EXPECT_EQ(check(world.all_reduce_value(rank, [](int a, int b) { return std::max(a, b); })), 3);
    EXPECT_EQ(check(world.reduce_value(rank + 1, Rank{2})), rank == 2 ? 10 : rank + 1);
    EXPECT_EQ(check(world.broadcast_value(rank * 11, Rank{3})), 33);
    EXPECT_EQ(check(world.scan_value(rank + 1)), (rank + 1) * (rank + 2) / 2);
    EXPECT_EQ(check(world.exclusive_scan_value(rank + 1)), rank == 0 ? 1 : rank * (rank + 1) / 2);
    EXPECT_EQ(world.broadcast_value(rank, Rank{4}).status, Status::invalid);
    using Pair = std::array<int, 2>;
    const auto add = [](const Pair& a, const Pair& b) { return Pair{a[0] + b[0], a[1] * b[1]}; };
    const std::vector<Pair> pairs{{rank, rank + 1}};
    Pair pair = pairs[0];
    ASSERT_EQ(world.all_reduce(std::span(&pair, 1), add), Status::ok);
    EXPECT_EQ(pair, (Pair{6, 24}));
  });
}

TEST(GatheredValues, NeedNoCounts) {
  as_ranks(4, [](Communicator& world) {
    const auto rank = static_cast<std::size_t>(world.rank().value());
    const std::vector<std::size_t> mine(rank * 3, rank);
    const auto all = check(world.all_gather_values(mine));
    EXPECT_EQ(all.counts, (std::vector<std::size_t>{0, 3, 6, 9}));
    ASSERT_EQ(all.values.size(), 18U);
    for (const Rank each : world.ranks()) {
      for (const std::size_t value : all.of(each)) EXPECT_EQ(value, each.index());
      EXPECT_EQ(all.of(each).size(), 3 * each.index());
    }
    const auto at_root = check(world.gather_values(mine, Rank{1}));
    EXPECT_EQ(at_root.values, world.rank() == 1 ? all.values : std::vector<std::size_t>());
    EXPECT_EQ(check(world.gather_values(7 * world.rank().value(), Rank{0})).values,
              world.rank() == 0 ? (std::vector{0, 7, 14, 21}) : std::vector<int>());
    EXPECT_EQ(world.gather_values(mine, Rank{9}).status, Status::invalid);
  });
}

// An element whose vectors get no memory in threads that refuse it.
struct Scarce {
  int value = 0;
  static inline thread_local bool refused = false;
};

}  // namespace
}  // namespace tonari

template <>
struct std::allocator<tonari::Scarce> {
  using value_type = tonari::Scarce;
  tonari::Scarce* allocate(std::size_t count) {
    if (tonari::Scarce::refused) throw std::bad_alloc();
    return static_cast<tonari::Scarce*>(::operator new(count * sizeof(tonari::Scarce)));
  }
  void deallocate(tonari::Scarce* from, std::size_t) noexcept { ::operator delete(from); }
  friend bool operator==(const allocator&, const allocator&) = default;
};

namespace tonari {
namespace {

TEST(GatheredValues, LeaveNoRankWaitingForOneWithoutMemory) {
  as_ranks(4, [](Communicator& world) {
    const std::array<Scarce, 3> mine{};
    const bool is_poor = world.rank() == 1;
    Scarce::refused = is_poor;
    const auto at_root = world.gather_values(mine, Rank{1});
    EXPECT_EQ(at_root.status, is_poor ? Status::no_memory : Status::ok);
    EXPECT_TRUE(at_root.value.values.empty());
    const auto everywhere = world.all_gather_values(mine);
    EXPECT_EQ(everywhere.status, is_poor ? Status::no_memory : Status::invalid);
    Scarce::refused = false;

    EXPECT_EQ(check(world.all_gather_values(mine)).values.size(), 12U);  // the next collectives are not disturbed
  });
}

TEST(WaitSome, ReturnsAllThatAreCompleteAndNoneTwice) {
  as_ranks(2, [](Communicator& world) {
    if (world.rank() == 0) {
      bool go = false;
      for (const int tag : {3, 1, 0, 2}) {
        check(world.send(tag * 10, Rank{1}, Tag{tag}));
        check(world.receive(go, Rank{1}).status);
      }
      return;
    }
    std::array<int, 4> numbers{};
    std::vector<Request> requests;
    for (int tag = 0; tag < 4; ++tag) {
      requests.push_back(world.start_receive(numbers[static_cast<std::size_t>(tag)], Rank{0}, Tag{tag}));
    }
    std::array<std::size_t, 4> completed{};
    std::vector<std::size_t> order;
    while (const std::size_t count = wait_some(requests, completed)) {
      for (std::size_t i = 0; i < count; ++i) {
        order.push_back(completed[i]);
        EXPECT_EQ(numbers[completed[i]], static_cast<int>(completed[i]) * 10);
        check(world.send(true, Rank{0}));
      }
    }
    EXPECT_EQ(order, (std::vector<std::size_t>{3, 1, 0, 2}));
  });
}

using Numbers = View<std::uint64_t>;

TEST(GlobalPointer, CountsInElementsAndStaysInvalidAfterLeavingItsRange) {
  constexpr global_ptr<std::uint64_t> first(GlobalAddress{7, JobRank{3}, 64});
  static_assert((first + 2).address().offset == 80 && (first - 2).address().offset == 48 && (first + 5) - first == 5);
  static_assert(first - 9 == first - 100 && (first - 9) + 9 != first && (first + 1) - 1 == first);
  static_assert(first && !global_ptr<int>() && first.rank() == 3 && first < first + 1);
  EXPECT_EQ((first - 9).address().offset, GlobalAddress::nowhere);
}

TEST(GlobalPointer, NamesAPlaceForAView) {
  as_jobs(3, [](Job& job) {
    Window window(job, 100 * sizeof(std::uint64_t) + 8);
    const Numbers numbers(window, 8);
    EXPECT_EQ(numbers.size(job.rank()), 100U);
    const auto there = numbers.pointer(job.neighbour(+1), 10);
    EXPECT_EQ(there.rank(), job.neighbour(+1));
    const std::array<std::uint64_t, 3> sent{job.rank().index(), 2, 3};
    ASSERT_EQ(numbers.push(there, sent), Status::ok);
    ASSERT_EQ(window.barrier(), Status::ok);
    EXPECT_EQ(numbers.local()[10], job.neighbour(-1).index());
    EXPECT_EQ(check(numbers.pull(there + 2)), 3U);
    EXPECT_EQ(numbers.pull(numbers.pointer(job.rank(), 100)).status, Status::bounds);
    ASSERT_NE(numbers.direct(there, 3), nullptr);
    EXPECT_EQ(numbers.direct(there, 3)[1], 2U);
    EXPECT_EQ(numbers.direct(there, ~std::uint64_t{0}), nullptr);
    ASSERT_EQ(window.barrier(), Status::ok);
  });
}

TEST(Views, HaveAllCallsOfWindows) {
  as_jobs(2, [](Job& job) {
    Window window(job, 64 * sizeof(std::uint64_t));
    const Numbers numbers(window, 8);
    const auto word = numbers.pointer(JobRank{0}, 1);
    if (job.rank() == 1) {
      EXPECT_EQ(check(numbers.swap(word, 12)), 0U);
      EXPECT_EQ(check(numbers.compare_and_swap(word, 12, 10)), 12U);
      EXPECT_EQ(check(numbers.compare_and_swap(word, 12, 11)), 10U);
      EXPECT_EQ(check(numbers.fetch_or(word, 5)), 10U);
      EXPECT_EQ(check(numbers.fetch_and(word, 6)), 15U);
      EXPECT_EQ(check(numbers.fetch_xor(word, 3)), 6U);
      EXPECT_EQ(check(numbers.fetch_add(word, 1)), 5U);
      EXPECT_EQ(check(numbers.fetch_add(JobRank{0}, 1, 0)), 6U);
      EXPECT_EQ(check(numbers.swap(JobRank{0}, 1, 12)), 6U);
      EXPECT_EQ(check(numbers.compare_and_swap(JobRank{0}, 1, 12, 10)), 12U);
      EXPECT_EQ(check(numbers.fetch_or(JobRank{0}, 1, 5)), 10U);
      EXPECT_EQ(check(numbers.fetch_and(JobRank{0}, 1, 6)), 15U);
      EXPECT_EQ(check(numbers.fetch_xor(JobRank{0}, 1, 3)), 6U);
      EXPECT_EQ(check(numbers.pull(word)), 5U);
      std::array<std::uint64_t, 4> page{};
      std::array<std::uint64_t, 4> twin{};
      check(numbers.pull_with_twin(page, twin, numbers.pointer(JobRank{0}, 20)));
      page[2] = 9;
      EXPECT_EQ(check(numbers.push_diff(numbers.pointer(JobRank{0}, 20), page, twin)), 1U);
      check(numbers.multicast_to_all(30, page));
      EXPECT_EQ(numbers.multicast_to_all(~std::uint64_t{0}, page), Status::bounds);
      check(numbers.push_notified(numbers.pointer(JobRank{0}, 40), 77, 3));
    } else {
      check(window.wait_notified(3, 1));
      EXPECT_EQ(numbers.local()[40], 77U);
      EXPECT_EQ(numbers.local()[22], 9U);
      EXPECT_EQ(numbers.local()[32], 9U);
    }
    ASSERT_EQ(window.barrier(), Status::ok);
  });
}

}  // namespace
}  // namespace tonari
