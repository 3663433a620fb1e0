#include "driver/comparison.hpp"
#include "driver/statistics.hpp"

#include "../support/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace {

using namespace tonari::bench::driver;

/// Makes up measurements of a noisy machine: its speed drifts from round to round, and every launch has an offset of
/// its own; one launch in ten is far slower. One value per round.
class MadeUpMachine {
 public:
  explicit MadeUpMachine(std::uint64_t seed) : random_(seed) {}

  struct Pairs {
    std::vector<double> ours;
    std::vector<double> theirs;
  };
  Pairs measure(std::size_t rounds, double factor) {
    Pairs pairs;
    for (std::size_t round = 0; round < rounds; ++round) {
      const double speed = std::exp(normal_(random_));  // of the machine in this round: both share it
      pairs.ours.push_back(factor * speed * launch());
      pairs.theirs.push_back(speed * launch());
    }
    return pairs;
  }

 private:
  double launch() {
    const bool disturbed = std::uniform_int_distribution(1, 10)(random_) == 1;
    return std::exp(0.02 * normal_(random_)) * (disturbed ? 1.3 : 1);
  }

  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

TEST(BenchComparison, KnownPairsHaveAKnownInterval) {
  // Logarithms of the ratios: 1, 2, 3. Mean 2, standard error 1 / sqrt(3), t = 14.09 with two degrees of freedom.
  const std::vector<double> ours{std::exp(1), std::exp(2), std::exp(3)};
  const std::vector<double> theirs{1, 1, 1};

  const auto comparison = compare(ours, theirs);

  EXPECT_EQ(comparison.pairs, 3u);
  EXPECT_NEAR(std::log(comparison.ratio), 2, 1e-9);
  EXPECT_NEAR(std::log(comparison.low), 2 - 14.09 / std::sqrt(3.0), 1e-3);
  EXPECT_NEAR(std::log(comparison.high), 2 + 14.09 / std::sqrt(3.0), 1e-3);
  EXPECT_FALSE(comparison.differs());
}

TEST(BenchComparison, QuantilesOfStudentsDistributionFallTowardsTheNormalOne) {
  EXPECT_TRUE(std::isinf(student_quantile(0)));
  for (std::size_t n = 1; n < 200; ++n) EXPECT_GT(student_quantile(n), student_quantile(n + 1)) << n;
  EXPECT_NEAR(student_quantile(31), 3.0221, 1e-3) << "the first one that is not in the table";
  EXPECT_NEAR(student_quantile(1'000'000), 2.8070, 1e-3);
}

TEST(BenchComparison, OnePairHasNoInterval) {
  const auto comparison = compare(std::vector<double>{2}, std::vector<double>{1});

  EXPECT_DOUBLE_EQ(comparison.ratio, 2);
  EXPECT_FALSE(comparison.differs());
  EXPECT_TRUE(std::isinf(comparison.smallest_difference()));
}

TEST(BenchComparison, PairsWithoutAPositiveValueAreLeftOut) {
  EXPECT_EQ(compare(std::vector<double>{1, 0, 2, NAN, 3}, std::vector<double>{1, 1, 2, 1}).pairs, 2u);
  EXPECT_EQ(compare({}, {}).pairs, 0u);
}

TEST(BenchComparison, AtMostOneInAHundredSystemsDiffersFromItself) {
  MadeUpMachine machine(tonari::test::seed());
  constexpr int comparisons = 10'000;
  for (const std::size_t rounds : {3, 5, 10}) {
    int different = 0;
    for (int i = 0; i < comparisons; ++i) {
      const auto [ours, theirs] = machine.measure(rounds, 1);
      different += compare(ours, theirs).differs() ? 1 : 0;
    }
    EXPECT_LE(different, comparisons / 100) << rounds << " rounds";
  }
}

TEST(BenchComparison, AShiftAboveTheNoiseIsFound) {
  MadeUpMachine machine(tonari::test::seed());
  int found = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto [ours, theirs] = machine.measure(10, 2);
    const auto comparison = compare(ours, theirs);
    found += comparison.differs() && comparison.low > 1 ? 1 : 0;
  }
  EXPECT_GE(found, 990);
}

TEST(BenchComparison, TheMedianIsInItsInterval) {
  const std::vector<double> values{5, 1, 4, 2, 3};

  const auto interval = bootstrap_median(values);

  ASSERT_TRUE(interval.has_value());
  EXPECT_DOUBLE_EQ(interval->low, 1);
  EXPECT_DOUBLE_EQ(interval->high, 5);
  EXPECT_FALSE(bootstrap_median(std::vector<double>{1, 2}).has_value());
  const auto same = bootstrap_median(std::vector<double>{7, 7, 7, 7});
  ASSERT_TRUE(same.has_value());
  EXPECT_DOUBLE_EQ(same->low, 7);
  EXPECT_DOUBLE_EQ(same->high, 7);
}

TEST(BenchComparison, MostIntervalsOfMediansContainTheMedian) {
  std::mt19937_64 random(tonari::test::seed());
  std::normal_distribution<double> normal(100, 5);
  int inside = 0;
  for (int i = 0; i < 500; ++i) {
    std::vector<double> values(15);
    for (double& value : values) value = normal(random);
    const auto interval = bootstrap_median(values);
    inside += interval->low <= 100 && 100 <= interval->high ? 1 : 0;
  }
  EXPECT_GE(inside, 430) << "of 500; 95 % are expected, and 15 values give a little less";
}

}  // namespace
