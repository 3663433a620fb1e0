// The main() of the test programs.
#include "random.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace {

/// Prints the seed of the random tests: at the start, in case a test crashes or hangs, and after each failed test.
class SeedPrinter final : public testing::EmptyTestEventListener {
  void OnTestProgramStart(const testing::UnitTest&) override { print("Note: random tests use"); }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (test.result()->Failed()) print("To repeat the failed test, set");
  }

  static void print(const char* note) {
    std::printf("%s TONARI_SEED=%llu\n", note, static_cast<unsigned long long>(tonari::test::seed()));
    std::fflush(stdout);
  }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new SeedPrinter);
  return RUN_ALL_TESTS();
}
