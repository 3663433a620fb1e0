#pragma once

#include "harness/batches.hpp"
#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace tonari::bench {

// Measures programs that repeat a step on data that ranks share or exchange.

/// How such a program is measured.
struct StepsTask {
  std::string label;
  double at;  // ranks, or threads
  double budget_us;
  std::uint32_t warm_steps;
  double operations;  // per step
  std::string unit;   // of the rate
  double a_unit;      // operations per microsecond that are one unit
};

inline StepsTask steps_task(const Options& options, int ranks) {
  return {.label = options.text("case", "message"),
          .at = static_cast<double>(ranks),
          .budget_us = options.number("budget-us", 300000),
          .warm_steps = static_cast<std::uint32_t>(options.number("warm-steps", 5)),
          .operations = 1,
          .unit = "GFLOP/s",
          .a_unit = 1000};
}

/// Runs steps in timed batches, then checks the entire result. A Program has run(steps), and wrong(), which returns the
/// number of wrong elements on rank 0. Every rank calls both.
template <StartedWire W, class Program>
void measure_steps(W& wire, const StepsTask& task, Program& program, Output& output) {
  constexpr double batch_us = 2000;
  program.run(task.warm_steps);
  const auto times_us =
      time_together_us(wire, batch_us, task.budget_us, [&](std::uint32_t steps) { program.run(steps); });
  std::vector<double> rates;
  for (const double us : times_us) rates.push_back(task.operations / task.a_unit / us);
  output.samples({task.label, "rate", task.unit, "ranks"}, task.at, rates);
  output.check({task.label, "wrong", "items", "ranks"}, task.at, static_cast<double>(program.wrong()), 1);
}

}  // namespace tonari::bench
