#include "harness/batches.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace {

using namespace tonari::bench;

/// An operation that always takes the same time, in us.
auto steady(double operation_us) {
  return [operation_us](std::uint32_t) { return operation_us; };
}

TEST(FitBatches, FillsTheTimeBudgetWithBatches) {
  const auto fitting = fit_batches(20, 4000, steady(0.5));

  EXPECT_EQ(fitting.operations, 40u);
  EXPECT_EQ(fitting.batches, 200u);
}

TEST(FitBatches, MeasuresASlowOperationOncePerBatchInTheFewestBatches) {
  const auto fitting = fit_batches(20, 4000, steady(10'000));

  EXPECT_EQ(fitting.operations, 1u);
  EXPECT_EQ(fitting.batches, batches_min);
}

TEST(FitBatches, ReturnsWhenOperationsAreTooShortToMeasure) {
  const auto fitting = fit_batches(20, 4000, steady(1e-6));

  EXPECT_EQ(fitting.operations, batch_operations_max);
  EXPECT_EQ(fitting.batches, batches_max);
}

TEST(FitBatches, TriesLongerBatchesUntilOneIsLongEnough) {
  std::vector<std::uint32_t> tried;
  fit_batches(20, 4000, [&](std::uint32_t operations) {
    tried.push_back(operations);
    return 1.0;
  });

  EXPECT_EQ(tried, (std::vector<std::uint32_t>{1, 4, 16, 64}));
}

}  // namespace
