#pragma once

#include "driver/question.hpp"

#include <string>
#include <vector>

namespace tonari::bench::driver {

// Shared by benchmarks of one-sided operations: the time per case, and the second launch of Open MPI.

/// Adds an option that takes a list, with `value` as its default.
void add_list(CLI::App& command, const char* option, std::string& value, const char* meaning);

double budget_us(const BenchOptions& options);
double computing_us(const BenchOptions& options);
int computations(const BenchOptions& options);
/// Returns these three as options of the worker.
std::vector<std::string> effort(const BenchOptions& options);

/// Adds a launch that puts `ask` to all systems, and one that puts it to Open MPI without its component rdma.
void add_launches(std::vector<Launch>& launches, const Ask& ask, const std::vector<System>& systems,
                  const std::string& note);

}  // namespace tonari::bench::driver
