#pragma once

#include "driver/question.hpp"
#include "driver/results.hpp"

#include <vector>

namespace tonari::bench::driver {

/// Returns tonari, unless only rivals are asked for, and the rivals; for --rival auto all that the benchmark supports
/// and this machine has, without the names of "-NAME". Throws SetupError if there are none.
std::vector<System> systems_of(const Question& question, const BenchOptions& options);

int rounds_of(const BenchOptions& options);

/// Runs all launches once per round, one system after the other, and repeats one system in each round: the difference
/// of its two measurements is noise. Removes from `launches` the rivals that this machine cannot measure, and says why
/// on standard error. A rival that fails is left out from then on, and is in Results::failed(); if tonari fails, throws
/// SetupError. Throws Interrupted after a signal to stop.
Results measure(const Question& question, const BenchOptions& options, std::vector<Launch>& launches);

}  // namespace tonari::bench::driver
