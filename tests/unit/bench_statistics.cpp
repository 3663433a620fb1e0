#include "driver/statistics.hpp"

#include <gtest/gtest.h>

namespace {

using namespace tonari::bench::driver;

TEST(BenchStatistics, QuantilesAreBetweenTheSamplesAroundThem) {
  const std::vector<double> sorted{10, 20, 30, 40};

  EXPECT_DOUBLE_EQ(quantile(sorted, 0), 10);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.5), 25);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.99), 39.7);
  EXPECT_DOUBLE_EQ(quantile(sorted, 1), 40);
}

TEST(BenchStatistics, OneSampleIsEveryQuantile) {
  const auto summary = summarize({7});

  EXPECT_DOUBLE_EQ(summary.min, 7);
  EXPECT_DOUBLE_EQ(summary.median, 7);
  EXPECT_DOUBLE_EQ(summary.p99, 7);
  EXPECT_DOUBLE_EQ(summary.max, 7);
  EXPECT_DOUBLE_EQ(summary.mean, 7);
  EXPECT_DOUBLE_EQ(summary.stddev, 0);
  EXPECT_EQ(summary.n, 1u);
}

TEST(BenchStatistics, SummaryOfUnsortedSamplesIsRight) {
  const auto summary = summarize({4, 2, 4, 5, 4, 7, 5, 9});

  EXPECT_DOUBLE_EQ(summary.min, 2);
  EXPECT_DOUBLE_EQ(summary.median, 4.5);
  EXPECT_DOUBLE_EQ(summary.max, 9);
  EXPECT_DOUBLE_EQ(summary.mean, 5);
  EXPECT_NEAR(summary.stddev, 2.1380899, 1e-6);
}

TEST(BenchStatistics, NoSamplesGiveNoStatistics) {
  EXPECT_EQ(summarize({}).n, 0u);
  EXPECT_DOUBLE_EQ(quantile({}, 0.5), 0);
}

TEST(BenchStatistics, ThinningKeepsOrderAndTheFirst) {
  std::vector<double> samples(1000);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<double>(i);

  const auto kept = thin_out(samples, 10);

  ASSERT_EQ(kept.size(), 10u);
  EXPECT_DOUBLE_EQ(kept.front(), 0);
  EXPECT_TRUE(std::ranges::is_sorted(kept));
  EXPECT_EQ(thin_out(samples, 1000), samples);
}

TEST(BenchStatistics, FitFindsTheLineThroughThePoints) {
  std::vector<Point> points;
  for (double x = 8; x < 1e8; x *= 2) points.push_back({x, 130 + 0.012 * x});

  const auto line = fit_relative(points);

  ASSERT_TRUE(line.has_value());
  EXPECT_NEAR(line->at_zero, 130, 1e-6);
  EXPECT_NEAR(line->slope, 0.012, 1e-9);
}

TEST(BenchStatistics, FitWeighsErrorsRelativeToTheValue) {
  const std::vector<Point> points{{8, 1}, {16, 1}, {1e6, 100}, {2e6, 230}};

  const auto line = fit_relative(points);

  ASSERT_TRUE(line.has_value());
  EXPECT_NEAR(line->at_zero, 1, 0.01) << "the error of 30 at 2e6 must not reach the short messages";
}

TEST(BenchStatistics, LeastSquaresFollowTheLongRange) {
  const std::vector<Point> points{{0, 40}, {10, 41}, {100, 44}, {1000, 75}, {100000, 3540}};

  const auto line = fit_least_squares(points);

  ASSERT_TRUE(line.has_value());
  EXPECT_NEAR(line->slope, 0.035, 1e-4);
  EXPECT_FALSE(fit_least_squares({}).has_value());
  EXPECT_FALSE(fit_least_squares(std::vector<Point>{{8, 1}, {8, 2}}).has_value());
}

TEST(BenchStatistics, FitReturnsNothingWithoutALine) {
  EXPECT_FALSE(fit_relative({}).has_value());
  EXPECT_FALSE(fit_relative(std::vector<Point>{{8, 1}}).has_value());
  EXPECT_FALSE(fit_relative(std::vector<Point>{{8, 1}, {8, 2}}).has_value());
  EXPECT_FALSE(fit_relative(std::vector<Point>{{8, 0}, {16, 2}}).has_value());
}

}  // namespace
