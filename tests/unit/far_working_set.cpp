#include "far/working_set.hpp"

#include <gtest/gtest.h>

#include <cstdint>

// Tests of the message that a working set does not fit.
namespace tonari {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t limit = 100 * mib;

// A process as its pager's statistics describe it, one second after another.
struct Process {
  pager::Statistics statistics{.touched_bytes = 1000 * mib};
  std::uint64_t now_ns = 5 * second_ns;
  far::WorkingSet working_set{};

  far::WorkingSet::Finding second(double waiting, std::uint64_t in, std::uint64_t again) {
    now_ns += second_ns;
    statistics.wait_ns += static_cast<std::uint64_t>(waiting * 0.6 * second_ns);
    statistics.short_run_ns += static_cast<std::uint64_t>(waiting * 0.4 * second_ns);
    statistics.bytes_in += in;
    statistics.bytes_in_again += again;
    return working_set.look(now_ns, statistics, limit);
  }
};

TEST(FarWorkingSet, IsTooLargeIfPagesComeAgainAndAgainWhileThreadsWait) {
  Process process;
  EXPECT_TRUE(process.second(0, 0, 0).begins_anew);

  EXPECT_EQ(process.second(0.9, 150 * mib, 0).wanted_bytes, 0U);
  EXPECT_EQ(process.second(0.9, 150 * mib, 150 * mib).wanted_bytes, 0U) << "it has not lasted for three seconds";
  const auto found = process.second(0.9, 150 * mib, 150 * mib);

  constexpr std::uint64_t set = limit + 150 * mib;  // so much came, and came again twice
  EXPECT_EQ(found.wanted_bytes, set + set / 8);
  EXPECT_EQ(found.wanted_percent, 29U);
  EXPECT_FALSE(found.begins_anew);
}

TEST(FarWorkingSet, IsAtMostTheTouchedMemory) {
  Process process;
  process.statistics.touched_bytes = 150 * mib;
  (void)process.second(0, 0, 0);

  far::WorkingSet::Finding found;
  for (int i = 0; i < 3; ++i) found = process.second(1, 400 * mib, 350 * mib);

  EXPECT_EQ(found.wanted_bytes, 150 * mib + 150 * mib / 8);
  EXPECT_EQ(found.wanted_percent, 100U);
}

TEST(FarWorkingSet, IsNotReportedForAProgramThatStreamsOnce) {
  Process process;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(process.second(0.9, 1000 * mib, 0).wanted_bytes, 0U);
}

TEST(FarWorkingSet, IsNotReportedForAProgramThatStreamsTwice) {
  Process process;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(process.second(0.9, 1000 * mib, 0).wanted_bytes, 0U);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(process.second(0.9, 1000 * mib, 1000 * mib).wanted_bytes, 0U);
}

TEST(FarWorkingSet, IsNotReportedForFewPagesThatComeAgain) {
  Process process;
  (void)process.second(0, 0, 0);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(process.second(0.9, 10 * mib, 9 * mib).wanted_bytes, 0U);
}

TEST(FarWorkingSet, IsNotReportedIfThreadsMostlyRun) {
  Process process;
  for (int i = 0; i < 100; ++i) {
    const auto found = process.second(0.45, 1000 * mib, 900 * mib);
    EXPECT_EQ(found.wanted_bytes, 0U);
    EXPECT_TRUE(found.begins_anew);
  }
}

TEST(FarWorkingSet, IsObservedAnewAfterASecondWithoutWaiting) {
  Process process;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(process.second(0.1, 0, 0).begins_anew);
    EXPECT_EQ(process.second(0.9, 100 * mib, 100 * mib).wanted_bytes, 0U);
    EXPECT_EQ(process.second(0.9, 100 * mib, 100 * mib).wanted_bytes, 0U);
  }
  EXPECT_NE(process.second(0.9, 100 * mib, 100 * mib).wanted_bytes, 0U);
}

TEST(FarWorkingSet, IsLookedAtOncePerSecond) {
  Process process;
  (void)process.second(0, 0, 0);
  process.statistics.wait_ns += second_ns;
  for (int i = 0; i < 9; ++i) {
    process.now_ns += second_ns / 10;
    EXPECT_FALSE(process.working_set.look(process.now_ns, process.statistics, limit).begins_anew);
  }
}

}  // namespace
}  // namespace tonari
