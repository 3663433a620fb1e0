#include "driver/comparing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace tonari::bench::driver;

/// Returns the errors that are told if tonari and a bound measured these values, one per round.
std::string told(const std::string& bound, const std::vector<double>& ours, const std::vector<double>& theirs,
                 const std::string& metric = "latency", double x = 8) {
  Results results;
  const auto add = [&](const std::string& system, const std::vector<double>& values) {
    for (std::size_t round = 0; round < values.size(); ++round) {
      results.add(static_cast<int>(round), {system, "cold", metric, "unit", "bytes"}, x, {values[round]});
    }
  };
  add("tonari", ours);
  add(bound, theirs);
  return tell_broken_bounds(results);
}

TEST(BenchComparing, ABoundThatIsClearlySlowerThanTonariIsAnError) {
  EXPECT_NE(told("ring", {0.9, 0.91, 0.9}, {103, 102, 104}).find("the lower bound ring"), std::string::npos);
  EXPECT_NE(told("memcpy", {10, 10.1, 9.9}, {5, 5, 5.1}, "rate"), "");
}

TEST(BenchComparing, ABoundThatIsFasterOrNotClearlySlowerIsNone) {
  EXPECT_EQ(told("ring", {0.9, 0.91, 0.9}, {0.5, 0.5, 0.5}), "");
  EXPECT_EQ(told("ring", {1, 2, 3}, {2, 1.1, 3.2}), "");
  EXPECT_EQ(told("memcpy", {5, 5, 5.1}, {10, 10.1, 9.9}, "rate"), "");
}

TEST(BenchComparing, AfterOneRoundABoundMustBeMuchSlower) {
  EXPECT_EQ(told("ring", {1}, {1.4}), "");
  EXPECT_NE(told("ring", {1}, {1.6}), "");
}

TEST(BenchComparing, TheSystemCallOfProcessVmBoundsLongCopiesOnly) {
  EXPECT_EQ(told("process-vm", {1, 1, 1.01}, {3, 3, 3.01}, "latency", 4096), "");
  EXPECT_NE(told("process-vm", {1, 1, 1.01}, {3, 3, 3.01}, "latency", 65536), "");
}

TEST(BenchComparing, OtherSystemsAreNoBounds) { EXPECT_EQ(told("openmpi-4.1.4", {1, 1, 1}, {3, 3, 3}), ""); }

}  // namespace
