#include "driver/conditions.hpp"

#include <tonari/status.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tonari::bench::driver;

Reading median(double value, double low, double high, double x = 8) {
  return {.benchmark = "pingpong",
          .label = "warm",
          .metric = "latency",
          .unit = "us",
          .x_name = "bytes",
          .x = x,
          .network = {},
          .better = Better::low,
          .rival = {},
          .value = value,
          .low = low,
          .high = high};
}

Reading ratio(std::string rival, double value, double low, double high, double x = 8) {
  auto reading = median(value, low, high, x);
  reading.rival = std::move(rival);
  return reading;
}

const std::vector<Reading> measured{median(5, 4, 6),
                                    ratio("openmpi-4.1.4", 0.5, 0.4, 0.6),
                                    ratio("openmpi-4.1.4 thread-multiple", 0.4, 0.3, 0.5),
                                    ratio("mpich-4.0.2", 0.8, 0.7, 0.9),
                                    ratio("ring", 2, 1.9, 2.1),
                                    ratio("local", 3, 2.9, 3.1),
                                    median(50, 40, 60, 4096),
                                    ratio("mpich-4.0.2", 0.3, 0.2, 0.4, 4096)};

bool is_true(std::string_view text, const std::vector<Reading>& readings = measured) {
  return Condition(text).judge(readings).is_true;
}

std::string refusal(std::string_view text) {
  try {
    static_cast<void>(Condition(text).judge(measured));
  } catch (const tonari::SetupError& error) {
    return error.what();
  }
  return "";
}

TEST(BenchConditions, OnlyAWholeIntervalBeyondTheLimitIsTrue) {
  EXPECT_TRUE(is_true("8.latency > 3.9"));
  EXPECT_FALSE(is_true("8.latency > 4"));
  EXPECT_TRUE(is_true("8.latency >= 4"));
  EXPECT_FALSE(is_true("8.latency > 4.5"));
  EXPECT_TRUE(is_true("8.latency < 6.1"));
  EXPECT_FALSE(is_true("8.latency < 6"));
  EXPECT_TRUE(is_true("8.latency <= 6"));
  EXPECT_FALSE(is_true("8.latency < 5.5"));
}

TEST(BenchConditions, ALimitInsideTheIntervalIsNotDecided) {
  const auto judgement = Condition("8.latency > 4.5").judge(measured);

  EXPECT_FALSE(judgement.is_true);
  EXPECT_NE(judgement.text.find("not decided"), std::string::npos);
}

TEST(BenchConditions, WithoutAnIntervalTheValueDecides) {
  auto reading = median(5, 0, 0);
  reading.low.reset();
  reading.high.reset();

  EXPECT_TRUE(is_true("latency > 4.9", {reading}));
  EXPECT_FALSE(is_true("latency > 5", {reading}));
}

TEST(BenchConditions, ARatioIsToTheBestRivalWhichIsNoLowerBound) {
  EXPECT_TRUE(is_true("8.ratio > 0.69"));
  EXPECT_FALSE(is_true("8.ratio > 0.7"));
  auto rates = measured;
  for (auto& reading : rates) reading.better = Better::high;
  EXPECT_TRUE(is_true("8.ratio < 0.51", rates));
  EXPECT_FALSE(is_true("8.ratio < 0.5", rates));
}

TEST(BenchConditions, ARatioCanNameItsRival) {
  EXPECT_TRUE(is_true("8.ratio to openmpi-default < 0.61"));
  EXPECT_FALSE(is_true("8.ratio to openmpi-default < 0.6"));
  EXPECT_TRUE(is_true("8.ratio to openmpi-mt < 0.51"));
  EXPECT_FALSE(is_true("8.ratio to openmpi < 0.6"));  // the better one of the two
  EXPECT_TRUE(is_true("8.ratio to mpich-4.0.2 > 0.69"));
  EXPECT_TRUE(is_true("8.ratio to ring > 1.8"));
  EXPECT_NE(refusal("8.ratio to open > 1").find("is called 'open'; there are openmpi-4.1.4, "), std::string::npos);
}

TEST(BenchConditions, PartsThatAreLeftOutMeanAll) {
  for (const auto* const text : {"pingpong.warm.4096.latency > 39", "pingpong.warm.4K.latency>39", "4 KiB.latency > 39",
                                 "warm . latency > 39", "pingpong.latency > 39", "latency > 39"}) {
    EXPECT_TRUE(is_true(text)) << text;
  }
  EXPECT_FALSE(is_true("8.latency > 39"));
  EXPECT_TRUE(is_true("ratio > 0.69"));
  EXPECT_FALSE(is_true("4K.ratio > 0.69"));
  EXPECT_TRUE(is_true("pingpong.warm.8.latency.ratio > 0.69"));
}

TEST(BenchConditions, ACaseMayContainADot) {
  auto reading = median(5, 4, 6);
  reading.label = "every 0.5 s";
  EXPECT_TRUE(is_true("pingpong.every 0.5 s.8.latency > 1", {reading}));
}

TEST(BenchConditions, ARatioWithoutMetricIsOfTheFirstOne) {
  auto readings = measured;
  auto other = ratio("mpich-4.0.2", 7, 6, 8);
  other.metric = "rate";
  readings.push_back(other);

  EXPECT_FALSE(is_true("ratio > 5", readings));
  EXPECT_TRUE(is_true("rate.ratio > 5", readings));
}

TEST(BenchConditions, NetworksAreJudgedEachForItself) {
  auto tcp = ratio("mpich-4.0.2 over tcp", 0.5, 0.4, 0.6);
  auto rc = ratio("mpich-4.0.2 over rc", 0.9, 0.8, 1.0);
  tcp.network = "tcp";
  rc.network = "rc";

  const auto judgement = Condition("ratio to mpich > 0.7").judge({tcp, rc});
  EXPECT_NE(judgement.text.find("2 quantities"), std::string::npos);
  EXPECT_TRUE(judgement.is_true);
}

TEST(BenchConditions, AnUnknownQuantityIsRefusedWithTheNearestNames) {
  EXPECT_NE(refusal("pingpong.warm.9.latency > 1").find("'pingpong.warm.8.latency'"), std::string::npos);
  EXPECT_NE(refusal("pingpong.hot.8.ratio > 1").find("'pingpong.warm.8.latency.ratio'"), std::string::npos);
  EXPECT_NE(refusal("latency.rate > 1"), "");
}

TEST(BenchConditions, AWrongFormIsRefused) {
  for (const auto* const text : {"", "latency", "latency >", "> 1", "latency > x", "latency > 1 us", "latency > inf",
                                 "latency = 1", "latency >> 1", "ratio to > 1", "latency => 1"}) {
    EXPECT_NE(refusal(text).find("must be QUANTITY OPERATOR NUMBER"), std::string::npos) << text;
  }
}

TEST(BenchConditions, ARunHasMediansAndRatios) {
  Results results;
  const std::vector<Metric> metrics{{"latency", Better::low}, {"depth", Better::neither}};
  for (int round = 1; round <= 3; ++round) {
    for (const auto* const metric : {"latency", "depth"}) {
      results.add(round, {"tonari", "warm", metric, "us", "bytes"}, 8, {1.0 + 0.01 * round});
      results.add(round, {"mpich", "warm", metric, "us", "bytes"}, 8, {2.0});
    }
  }
  results.judge_by(metrics);

  const auto readings = readings_of("pingpong", results);
  ASSERT_EQ(readings.size(), 3u);  // a metric that is neither good nor bad has no ratio
  EXPECT_DOUBLE_EQ(readings[0].value, 1.02);
  EXPECT_DOUBLE_EQ(readings[0].low.value(), 1.01);
  EXPECT_EQ(readings[1].rival, "mpich");
  EXPECT_NEAR(readings[1].value, 0.51, 0.001);
  EXPECT_LT(readings[1].low.value(), readings[1].value);
  EXPECT_EQ(readings[2].metric, "depth");
}

TEST(BenchConditions, ARunHasRatiosWithinANetworkOnly) {
  Results results;
  const std::vector<Metric> metrics{{"latency", Better::low}};
  for (const auto* const system : {"tonari over tcp", "tonari over rc", "mpich over tcp", "mpich over rc"}) {
    results.add(1, {system, "warm", "latency", "us", "bytes"}, 8, {1.0});
  }
  results.judge_by(metrics);

  std::vector<std::string> ratios;
  for (const auto& reading : readings_of("pingpong", results)) {
    if (!reading.rival.empty()) ratios.push_back(reading.network + ": " + reading.rival);
  }
  EXPECT_EQ(ratios, (std::vector<std::string>{"tcp: mpich over tcp", "rc: mpich over rc"}));
}

}  // namespace
