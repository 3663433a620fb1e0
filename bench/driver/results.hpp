#pragma once

#include "driver/statistics.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::bench::driver {

/// Names a series: a quantity of one system in one case, as a function of x.
struct SeriesName {
  std::string system;  ///< "tonari", "openmpi-4.1.4"
  std::string label;   ///< The case: "cold"
  std::string metric;
  std::string unit;
  std::string x;

  bool operator==(const SeriesName&) const = default;
};

/// The samples of one system from all rounds.
struct Series {
  SeriesName name;
  std::map<double, std::vector<std::vector<double>>> points;  // by x: the samples per round

  [[nodiscard]] std::vector<double> samples(double x) const;  ///< From all rounds, in order.
  [[nodiscard]] Summary summary(double x) const { return summarize(samples(x)); }
  /// Returns the fitted line of each round that has enough points.
  [[nodiscard]] std::vector<Line> lines() const;
};

/// A value that a worker measured and that must be below a bound. It is also in the series.
struct Check {
  double value;
  double bound;

  [[nodiscard]] bool passed() const noexcept { return value < bound; }  // false for NaN
};

/// The output of all workers of a run.
class Results {
 public:
  /// The number of samples per point in the JSON. If there are more, evenly spaced ones are kept, in order.
  static constexpr std::size_t samples_max = 1000;

  /// Begins a worker; take() then gets its lines. `note` distinguishes launches.
  void begin_worker(std::string note);
  /// Takes one line of a worker's output (format: harness/worker.hpp). Throws SetupError on a malformed line.
  void take(std::string_view line);
  /// Ends the worker. Returns false if its output is incomplete.
  [[nodiscard]] bool end_worker() const noexcept { return done_; }

  void add(const SeriesName& name, double x, std::vector<double> samples);
  /// Returns another metric of the same system and case, which must exist.
  [[nodiscard]] const Series& beside(const SeriesName& name, std::string_view metric) const;
  /// Returns its median at its first x.
  [[nodiscard]] double median_beside(const SeriesName& name, std::string_view metric) const;

  [[nodiscard]] const std::vector<Series>& series() const noexcept { return series_; }
  [[nodiscard]] const std::vector<Check>& checks() const noexcept { return checks_; }
  [[nodiscard]] const nlohmann::ordered_json& parameters() const noexcept { return parameters_; }
  /// The names of the systems, in the order of their first output.
  [[nodiscard]] const std::vector<std::string>& systems() const noexcept { return systems_; }
  /// The last measurement of the current worker, for display: "cold, 4 KiB".
  [[nodiscard]] const std::string& progress() const noexcept { return progress_; }

  /// Returns the member "series" of the JSON (docs/modules/measure.md).
  [[nodiscard]] nlohmann::ordered_json series_as_json() const;

 private:
  std::vector<Series> series_;
  std::vector<Check> checks_;
  std::vector<std::string> systems_;
  nlohmann::ordered_json parameters_ = nlohmann::ordered_json::object();  // by system
  std::string system_;                                                    // of the current worker
  std::string note_;
  std::string progress_;
  bool done_ = false;
};

/// Formats a number with three significant digits: "0.312", "41.5", "12300".
std::string format_number(double value);
/// Formats a number of bytes: "40", "64 KiB".
std::string format_bytes(double bytes);

}  // namespace tonari::bench::driver
