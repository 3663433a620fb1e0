#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

// The input of `tonari report`: the members of the files that `tonari bench --json` writes (bench/results.schema.json).

namespace tonari::bench::report {

struct Point {
  double x = 0;
  double min = 0;
  double median = 0;
  double p99 = 0;
  double max = 0;
  double mean = 0;
  double stddev = 0;
  std::size_t n = 0;
  std::optional<double> low;  ///< The interval of the median, from three rounds on.
  std::optional<double> high;
  std::vector<double> rounds;   ///< The median of each round.
  std::vector<double> samples;  ///< In the order of measurement.
};

struct Series {
  std::string system;
  std::string label;  ///< "case" in the JSON.
  std::string metric;
  std::string unit;
  std::string x;
  std::vector<Point> points;
};

/// The ratio of two systems, with its interval if there were two rounds or more.
struct Compared {
  std::string system;
  std::string with;
  std::string label;
  std::string metric;
  double x = 0;
  double ratio = 1;
  std::optional<double> low;
  std::optional<double> high;
  bool differs = false;
};

struct Verdict {
  std::string finding;
  std::string paper;
  std::string section;
  std::string outcome;
  double ratio = 1;
  std::optional<double> low;
  std::optional<double> high;
  std::optional<double> printed;  ///< The paper's own ratio.
};

struct Failed {
  std::string system;
  std::string cause;
};

struct Report {
  std::string benchmark;
  std::string file;
  nlohmann::ordered_json machine;
  nlohmann::ordered_json parameters;
  std::vector<Series> series;
  std::vector<Compared> comparisons;
  std::vector<Verdict> verdicts;
  std::vector<Failed> failed;
};

}  // namespace tonari::bench::report
