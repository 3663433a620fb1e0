#pragma once

#include "driver/comparison.hpp"
#include "driver/metric.hpp"
#include "driver/statistics.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <span>
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
  using Rounds = std::map<int, std::vector<double>>;
  using Fit = std::optional<Line> (*)(std::span<const Point> points);

  SeriesName name;
  std::map<double, Rounds> points;  ///< By x: the samples of each round.
  Better better = Better::neither;

  [[nodiscard]] std::vector<double> samples(double x) const;  ///< From all rounds, in order.
  [[nodiscard]] Summary summary(double x) const { return summarize(samples(x)); }
  /// Returns the median of each round that measured x, in order.
  [[nodiscard]] std::vector<double> medians(double x) const;
  /// Returns, by round, the line that `fit` finds through the medians of a round that has enough points.
  [[nodiscard]] std::map<int, Line> lines(Fit fit) const;
};

/// Compares two series at x by the rounds that measured both.
Comparison compare(const Series& ours, const Series& theirs, double x);

/// A system that did not complete a measurement.
struct Failed {
  std::string system;
  std::string cause;  ///< "ended with status 137 in round 2, at cold, 4 KiB"
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

  /// Begins a worker of a round; take() then gets its lines. `note` distinguishes launches. If it `is_again`, the
  /// worker measures a system for the second time in this round, and its series are not among series(). `suffix` is
  /// appended to the name that the worker reports.
  void begin_worker(int round, std::string note, bool is_again = false, std::string suffix = "");
  /// Takes one line of a worker's output (format: harness/worker.hpp). Throws SetupError on a malformed line.
  void take(std::string_view line);
  /// Ends the worker. Returns false if its output is incomplete.
  [[nodiscard]] bool end_worker() const noexcept { return done_; }

  /// Adds samples of a round.
  void add(int round, const SeriesName& name, double x, const std::vector<double>& samples) {
    add_to(series_, round, name, x, samples);
  }
  /// Sets which values are better in each series. After the last one was added.
  void judge_by(std::span<const Metric> metrics);
  void add_failed(Failed failed) { failed_.push_back(std::move(failed)); }
  /// Returns another metric of the same system and case, which must exist.
  [[nodiscard]] const Series& beside(const SeriesName& name, std::string_view metric) const;
  /// Returns its median at its first x.
  [[nodiscard]] double median_beside(const SeriesName& name, std::string_view metric) const;

  [[nodiscard]] const std::vector<Series>& series() const noexcept { return series_; }
  [[nodiscard]] const std::vector<Failed>& failed() const noexcept { return failed_; }
  [[nodiscard]] const std::vector<Check>& checks() const noexcept { return checks_; }
  [[nodiscard]] const nlohmann::ordered_json& parameters() const noexcept { return parameters_; }
  /// The names of the systems, in the order of their first output.
  [[nodiscard]] const std::vector<std::string>& systems() const noexcept { return systems_; }
  /// The last measurement of the current worker, for display: "cold, 4 KiB".
  [[nodiscard]] const std::string& progress() const noexcept { return progress_; }

  /// Returns the second measurement of the same system, case and quantity, or null.
  [[nodiscard]] const Series* measured_again(const Series& series) const;

  /// Returns the members "series" and "again" of the JSON (docs/modules/measure.md).
  [[nodiscard]] nlohmann::ordered_json series_as_json() const { return as_json(series_); }
  [[nodiscard]] nlohmann::ordered_json again_as_json() const { return as_json(again_); }

 private:
  static void add_to(std::vector<Series>& series, int round, const SeriesName& name, double x,
                     const std::vector<double>& samples);
  static nlohmann::ordered_json as_json(const std::vector<Series>& all);

  std::vector<Series> series_;
  std::vector<Series> again_;
  std::vector<Check> checks_;
  std::vector<Failed> failed_;
  std::vector<std::string> systems_;
  nlohmann::ordered_json parameters_ = nlohmann::ordered_json::object();  // by system
  std::string system_;                                                    // of the current worker
  std::string note_;
  std::string suffix_;
  int round_ = 1;
  bool is_again_ = false;
  std::string progress_;
  bool done_ = false;
};

/// Formats a number with three significant digits: "0.312", "41.5", "12300".
std::string format_number(double value);
/// Formats a number of bytes: "40", "64 KiB".
std::string format_bytes(double bytes);

}  // namespace tonari::bench::driver
