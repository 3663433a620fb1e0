#include "base/log.hpp"

#include <gtest/gtest.h>

namespace tonari {
namespace {

TEST(BaseLog, PrefixesEveryLineWithTheRank) {
  testing::internal::CaptureStderr();
  make_logger(3, "warn")->warn("{} is late", 5);
  make_logger(-1, "warn")->error("no such program");

  EXPECT_EQ(testing::internal::GetCapturedStderr(), "tonari[3]: 5 is late\ntonari: no such program\n");
}

TEST(BaseLog, WritesMessagesOfItsLevelAndMoreSevereOnes) {
  testing::internal::CaptureStderr();
  make_logger(0, "error")->warn("hidden");
  make_logger(0, "off")->critical("hidden");
  make_logger(0, "trace")->trace("shown");

  EXPECT_EQ(testing::internal::GetCapturedStderr(), "tonari[0]: shown\n");
}

}  // namespace
}  // namespace tonari
