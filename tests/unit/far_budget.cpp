#include "far/budget.hpp"

#include <gtest/gtest.h>

#include <cstdint>

// Tests of how a host's memory is divided between local data and servers.
namespace tonari::far {
namespace {

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t gib = 1 << 30;

TEST(FarBudget, LeavesATenthAndRoomForTheProcesses) {
  EXPECT_EQ(usable_bytes(100 * gib) / mib, 90 * 1024 - 64U);
  EXPECT_EQ(usable_bytes(40 * mib), 10 * mib);
  EXPECT_EQ(usable_bytes(0), 0U);
}

TEST(FarBudget, LetsServersAndAShareOfTheirDataFitIntoTheHost) {
  for (std::uint32_t percent = 1; percent <= 100; ++percent) {
    for (const std::uint64_t available : {300 * mib, 24 * gib, 3000 * gib}) {
      const Limit limit{.percent = percent};
      const std::uint64_t lent = lendable_bytes(available, limit);
      const std::uint64_t local = local_bytes_max(available, lent, limit);

      EXPECT_LE(lent + local, usable_bytes(available)) << percent;
      EXPECT_NEAR(static_cast<double>(local), static_cast<double>(lent) * percent / 100, 1000) << percent;
    }
  }
}

TEST(FarBudget, SubtractsALimitInBytesButLendsATenth) {
  const std::uint64_t usable = usable_bytes(100 * gib);
  EXPECT_EQ(lendable_bytes(100 * gib, {.bytes = 4 * gib}), usable - 4 * gib);
  EXPECT_EQ(lendable_bytes(100 * gib, {.bytes = 1000 * gib}), usable / 10);
}

TEST(FarBudget, GivesTheRestOfTheHostToAShare) {
  const Limit limit{.percent = 20};
  const std::uint64_t usable = usable_bytes(100 * gib);
  EXPECT_EQ(local_bytes_max(100 * gib, 0, limit), usable);
  EXPECT_EQ(local_bytes_max(100 * gib, 10 * gib, limit), usable - 10 * gib);
  EXPECT_EQ(local_bytes_max(100 * gib, 1000 * gib, limit), usable / 120 * 20);
}

}  // namespace
}  // namespace tonari::far
