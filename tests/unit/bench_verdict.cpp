#include "driver/verdict.hpp"

#include <gtest/gtest.h>

namespace {

using namespace tonari::bench::driver;

/// Results of two systems, by round.
Results results_of(const std::vector<double>& ours, const std::vector<double>& theirs, double x = 8) {
  Results results;
  for (std::size_t round = 0; round < ours.size(); ++round) {
    results.add(static_cast<int>(round), {"tonari", "case", "latency", "us", "bytes"}, x, {ours[round]});
  }
  for (std::size_t round = 0; round < theirs.size(); ++round) {
    results.add(static_cast<int>(round), {"other", "case", "latency", "us", "bytes"}, x, {theirs[round]});
  }
  return results;
}

Finding finding_with(Claim claim) {
  return {"says", "paper", "1", {"tonari", "case", "latency"}, Quantity{"other", "case", "latency"}, {}, claim, {}};
}

Outcome outcome(const std::vector<double>& ours, const std::vector<double>& theirs, Claim claim) {
  const auto verdict = judge(finding_with(claim), results_of(ours, theirs));
  EXPECT_TRUE(verdict.has_value());
  return verdict ? verdict->outcome : Outcome::no_difference_seen;
}

TEST(BenchVerdict, AClearRatioHoldsOrDoesNot) {
  const std::vector<double> ours{10, 10.1, 9.9, 10, 10};
  const std::vector<double> theirs{5, 5.1, 5, 4.9, 5};

  EXPECT_EQ(outcome(ours, theirs, {1, {}}), Outcome::holds);
  EXPECT_EQ(outcome(theirs, ours, {1, {}}), Outcome::does_not_hold);
  EXPECT_EQ(outcome(ours, theirs, {{}, 1}), Outcome::does_not_hold);
  EXPECT_EQ(outcome(ours, theirs, {1.5, 2.5}), Outcome::holds);
  EXPECT_EQ(outcome(ours, theirs, {2.5, 3.5}), Outcome::does_not_hold);
}

TEST(BenchVerdict, AnIntervalAcrossTheBoundShowsNoDifference) {
  EXPECT_EQ(outcome({10, 11, 9, 10, 12}, {10, 10, 10, 11, 10}, {1, {}}), Outcome::no_difference_seen);
}

TEST(BenchVerdict, OneRoundDecidesNothing) { EXPECT_EQ(outcome({100}, {1}, {1, {}}), Outcome::not_decided); }

TEST(BenchVerdict, RoundsWithoutAPartnerAreLeftOut) {
  const auto verdict = judge(finding_with({1, {}}), results_of({2, 2, 2, 1000}, {1, 1, 1}));

  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->measured.pairs, 3u);
  EXPECT_NEAR(verdict->measured.ratio, 2, 1e-9);
}

TEST(BenchVerdict, AQuantityThatWasNotMeasuredHasNoVerdict) {
  auto finding = finding_with({1, {}});
  finding.ours.label = "another case";
  EXPECT_FALSE(judge(finding, results_of({2}, {1})).has_value());

  finding = finding_with({1, {}});
  finding.ours.at = Quantity::At::value;
  finding.ours.x = 16;
  EXPECT_FALSE(judge(finding, results_of({2}, {1})).has_value());
}

TEST(BenchVerdict, AQuantityIsDividedByAConstantOrByItsX) {
  auto finding = finding_with({0.5, 2});
  finding.against.reset();
  const auto by_x = judge(finding, results_of({9, 8, 7, 8}, {}, 8));
  ASSERT_TRUE(by_x.has_value());
  EXPECT_NEAR(by_x->measured.ratio, 1, 0.02);
  EXPECT_EQ(by_x->outcome, Outcome::holds);

  finding.constant = 2;
  const auto by_constant = judge(finding, results_of({9, 8, 7, 8}, {}, 8));
  ASSERT_TRUE(by_constant.has_value());
  EXPECT_NEAR(by_constant->measured.ratio, 4, 0.1);
}

TEST(BenchVerdict, AnXThatAFindingLeavesOpenIsSaid) {
  auto finding = finding_with({1, {}});
  finding.ours.at = finding.against->at = Quantity::At::nearest;
  finding.ours.x = finding.against->x = 6000;
  auto results = results_of({2, 2}, {1, 1}, 4096);
  for (int round = 0; round < 2; ++round) results.add(round, {"tonari", "case", "latency", "us", "bytes"}, 16384, {9});
  const auto nearest = judge(finding, results);

  ASSERT_TRUE(nearest.has_value());
  EXPECT_EQ(nearest->at, "4 KiB");
  EXPECT_NEAR(nearest->measured.ratio, 2, 1e-9);
  EXPECT_NE(tell_verdicts({*nearest}).find("2.00x [2.00, 2.00] at 4 KiB"), std::string::npos);

  finding.ours.at = finding.against->at = Quantity::At::value;
  finding.ours.x = finding.against->x = 4096;
  const auto fixed = judge(finding, results);
  ASSERT_TRUE(fixed.has_value());
  EXPECT_EQ(fixed->at, "");
}

TEST(BenchVerdict, AFindingOverAnotherQuantityIsNotJudged) {
  auto finding = finding_with({1, {}});
  finding.ours.over = "ranks";
  EXPECT_FALSE(judge(finding, results_of({2}, {1})).has_value());

  finding.ours.over = "bytes";
  EXPECT_TRUE(judge(finding, results_of({2}, {1})).has_value());
}

TEST(BenchVerdict, StatisticsOfTheSamplesAreCompared) {
  Results results;
  results.add(0, {"tonari", "case", "latency", "us", "bytes"}, 8, {1, 2, 9});
  auto finding = finding_with({1, {}});
  finding.against = finding.ours;
  using Statistic = Quantity::Statistic;
  for (const auto& [statistic, value] : {std::pair{Statistic::minimum, 1.0},
                                         {Statistic::median, 2.0},
                                         {Statistic::mean, 4.0},
                                         {Statistic::maximum, 9.0}}) {
    finding.ours.statistic = statistic;
    finding.against->statistic = Statistic::minimum;
    const auto verdict = judge(finding, results);
    ASSERT_TRUE(verdict.has_value());
    EXPECT_NEAR(verdict->measured.ratio, value, 1e-9);
  }
}

}  // namespace
