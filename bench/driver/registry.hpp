#pragma once

#include "driver/question.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tonari::bench::driver {

/// The parts of the list of benchmarks, in its order.
enum class Topic : std::uint8_t { messages, collectives, applications, windows, sharing, far_memory };

/// Adds a benchmark to the list. suites/NAME/question.cpp has one such variable, and no other file names the benchmark.
class Registration {
 public:
  using Make = std::unique_ptr<Question> (*)();

  /// `place`: where in its topic's part the benchmark is listed, ascending; those of the same place by their names.
  Registration(Topic topic, int place, Make make);
};

/// Registers a class of benchmark that has no parameters.
template <class Kind>
class Registered : Registration {
 public:
  Registered(Topic topic, int place)
      : Registration(topic, place, []() -> std::unique_ptr<Question> { return std::make_unique<Kind>(); }) {}
};

/// Every benchmark, in the order of the list.
std::vector<std::unique_ptr<Question>> all_questions();

/// The names of those that `chosen` returns true for, in the order of the list.
std::vector<std::string> names_of_benchmarks(const std::function<bool(const Question&)>& chosen);

}  // namespace tonari::bench::driver
