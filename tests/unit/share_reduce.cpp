#include "../support/shared.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>

// Tests of reductions, which also synchronise shared memory.
namespace tonari {
namespace {

class SharedReductions : public test::OnEveryWayToShare {};
INSTANTIATE_TEST_SUITE_P(Over, SharedReductions, testing::ValuesIn(test::ways_to_share()), test::name_of);

TEST_P(SharedReductions, ReturnTheSumAtAllRanks) {
  for (const int ranks : {1, 2, 5}) {
    run(ranks, [ranks](Job& job) {
      const auto [status, sum] = share::sum(job, job.rank().value() + 1);

      EXPECT_EQ(status, Status::ok);
      EXPECT_EQ(sum, ranks * (ranks + 1) / 2);
    });
  }
}

TEST_P(SharedReductions, ShowTheEarlierWritesOfAllRanks) {
  const int last = turns(100);
  run(3, [last](Job& job) {
    const shared_array<int> array(job, 3000);
    const auto self = job.rank().index();
    for (int turn = 1; turn <= last; ++turn) {
      for (std::size_t i = self; i < array.size(); i += 3) array[i] = turn;

      const auto [status, sum] = share::sum(job, array[self]);

      ASSERT_EQ(status, Status::ok);
      ASSERT_EQ(sum, 3 * turn);
      for (std::size_t i = 0; i < array.size(); i += 7) ASSERT_EQ(array[i], turn);
      ASSERT_EQ(share::barrier(job), Status::ok);
    }
  });
}

/// The function x -> factor * x + addend, modulo 2^32. Composition of such functions is associative but not
/// commutative.
struct Affine {
  std::uint32_t factor;
  std::uint32_t addend;
  bool operator==(const Affine&) const = default;
};

Affine then(const Affine& first, const Affine& second) {
  return {first.factor * second.factor, first.addend * second.factor + second.addend};
}
Affine of(std::size_t i) { return {static_cast<std::uint32_t>(2 * i + 3), static_cast<std::uint32_t>(i * i + 1)}; }

TEST_P(SharedReductions, CombineValuesInTheOrderOfRanks) {
  run(5, [](Job& job) {
    Affine expected = of(0);
    for (std::size_t rank = 1; rank < 5; ++rank) expected = then(expected, of(rank));

    const auto [status, all] = share::reduce(job, of(job.rank().index()), then);

    EXPECT_EQ(status, Status::ok);
    EXPECT_EQ(all, expected);
  });
}

TEST_P(SharedReductions, RoundIdenticallyAtAllRanksAndInEachRun) {
  run(5, [](Job& job) {
    const shared_array<std::uint64_t> found(job, 5);
    std::set<std::uint64_t> different;
    for (int turn = 0; turn < 10; ++turn) {
      const auto [status, sum] =
          share::sum(job, 1 / std::sqrt(job.rank().value() + 2.0) * std::pow(10, job.rank().value() * 3));
      ASSERT_EQ(status, Status::ok);
      found[job.rank().index()] = std::bit_cast<std::uint64_t>(sum);
      ASSERT_EQ(share::barrier(job), Status::ok);
      different.insert(found.begin(), found.end());
      ASSERT_EQ(share::barrier(job), Status::ok);
    }
    EXPECT_EQ(different.size(), 1u);
  });
}

TEST_P(SharedReductions, ReduceArraysElementByElement) {
  run(3, [](Job& job) {
    const double rank = job.rank().value();
    const auto largest = [](double one, double other) { return std::max(one, other); };

    const auto [status, all] = share::reduce(job, std::array{rank, -rank, 7.0}, largest);

    EXPECT_EQ(status, Status::ok);
    EXPECT_EQ(all, (std::array{2.0, 0.0, 7.0}));
  });
}

TEST_P(SharedReductions, ReduceOverALoop) {
  for (const std::size_t count : {0, 1, 2, 1000}) {
    run(3, [count](Job& job) {
      const shared_array<std::uint64_t> array(job, 1000);
      array.for_each_own([](std::size_t i, std::uint64_t& each) { each = i; });
      ASSERT_EQ(share::barrier(job), Status::ok);
      Affine expected{1, 0};
      for (std::size_t i = 0; i < count; ++i) expected = then(expected, of(i));

      const auto sum =
          share::parallel_reduce(job, count, std::uint64_t{0}, std::plus<>(), [&](std::size_t i) { return array[i]; });
      const auto composed = share::parallel_reduce(job, count, Affine{1, 0}, then, of);

      EXPECT_EQ(sum.status, Status::ok);
      EXPECT_EQ(sum.value, count * (count - 1) / 2);
      EXPECT_EQ(composed.value, expected);
    });
  }
}

TEST_P(SharedReductions, ReturnPeerGoneAfterADeath) {
  std::atomic<int> come{0};
  const auto body = [&come](Job& job) {
    job.on_death([](const Death&) {});
    ASSERT_EQ(share::sum(job, 1).value, 3);
    test::let_die(job, 1, come);
    EXPECT_EQ(share::sum(job, 1).status, Status::peer_gone);
  };
  EXPECT_THROW(run(3, body), test::Killed);
}

}  // namespace
}  // namespace tonari
