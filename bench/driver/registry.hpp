#pragma once

#include "driver/question.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tonari::bench::driver {

/// The sections of the list of benchmarks, in order.
enum class Topic : std::uint8_t { messages, collectives, applications, windows, sharing, far_memory };

/// Adds a benchmark to the list. suites/NAME/question.cpp has one such variable, and no other file names the benchmark.
class Registration {
 public:
  using Make = std::unique_ptr<Question> (*)();

  /// The list is sorted by topic, place and name.
  Registration(Topic topic, int place, Make make);
};

/// Registers a class of benchmark with a default constructor.
template <class Kind>
class Registered : Registration {
 public:
  Registered(Topic topic, int place)
      : Registration(topic, place, []() -> std::unique_ptr<Question> { return std::make_unique<Kind>(); }) {}
};

/// Returns every benchmark, in the order of the list.
std::vector<std::unique_ptr<Question>> all_questions();

/// Returns the names of the benchmarks for which `chosen` returns true, in the order of the list.
std::vector<std::string> names_of_benchmarks(const std::function<bool(const Question&)>& chosen);

}  // namespace tonari::bench::driver
