#pragma once

#include "driver/question.hpp"

#include <string>
#include <vector>

namespace tonari::bench::driver {

// What benchmarks of one-sided operations share: how long each case is measured, and the second way of asking Open MPI.

/// Adds an option that takes a list, with `value` as its default.
void add_list(CLI::App& command, const char* option, std::string& value, const char* meaning);

double budget_us(const BenchOptions& options);
double computing_us(const BenchOptions& options);
int computations(const BenchOptions& options);
/// These three, as the worker takes them.
std::vector<std::string> effort(const BenchOptions& options);

/// Adds a launch that puts `ask` to all systems, and one that puts it to Open MPI without its component rdma.
void add_launches(std::vector<Launch>& launches, const Ask& ask, const std::vector<System>& systems,
                  const std::string& note);

}  // namespace tonari::bench::driver
