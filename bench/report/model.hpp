#pragma once

#include "driver/conditions.hpp"
#include "driver/metric.hpp"
#include "driver/statistics.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

// The input of `tonari report`: the members of the files that `tonari bench --json` writes (bench/results.schema.json).

namespace tonari::bench::report {

struct Point : driver::Summary {
  double x = 0;
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
  driver::Better better = driver::Better::neither;  ///< Also in files from before it was a member.
  std::vector<Point> points;
};

/// The ratio of two systems, with its interval if there were two rounds or more.
struct Compared {
  std::string system;
  std::string with;
  std::string label;
  std::string metric;
  driver::Better better = driver::Better::neither;
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
  std::string at;  ///< "n 2000": the x of the quantity; empty if the finding says it.
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
  std::vector<std::string> unfit;    ///< Why the machine was unfit, in sentences.
  std::vector<std::string> command;  ///< The user's arguments; empty in files from before it was a member.
  nlohmann::ordered_json parameters;
  std::vector<Series> series;
  std::vector<Compared> comparisons;
  std::vector<Verdict> verdicts;
  std::vector<Failed> failed;
};

/// Returns the readings of tonari in all reports, for --fail-if.
std::vector<driver::Reading> readings_of(const std::vector<Report>& reports);

}  // namespace tonari::bench::report
