#pragma once

#include "driver/statistics.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::bench::driver {

/// One line of a diagram: a quantity of one system in one case, against x.
struct SeriesName {
  std::string system;  ///< "tonari", "openmpi-4.1.4"
  std::string label;   ///< The case: "cold"
  std::string metric;
  std::string unit;
  std::string x;

  bool operator==(const SeriesName&) const = default;
};

/// What one system answered in all rounds, merged.
struct Series {
  SeriesName name;
  std::map<double, std::vector<std::vector<double>>> points;  // by x: the samples of each round

  [[nodiscard]] std::vector<double> samples(double x) const;  ///< Of all rounds, in their order.
  [[nodiscard]] Summary summary(double x) const { return summarize(samples(x)); }
  /// A line through the medians of each round that allows one.
  [[nodiscard]] std::vector<Line> lines() const;
};

/// A value that must stay below a bound, as a worker found it. It is in the series too.
struct Check {
  double value;
  double bound;

  [[nodiscard]] bool passed() const noexcept { return value < bound; }  // a NaN has not
};

/// Everything the workers of a run have said.
class Results {
 public:
  /// Samples a point that are kept in the JSON; of more, evenly spaced ones are kept in their order.
  static constexpr std::size_t samples_max = 1000;

  /// A worker begins: what take() gets from now on is its. `note` tells its placement from that of others.
  void begin_worker(std::string note);
  /// Takes one line of a worker's output (bench/worker.hpp has the format). Throws SetupError on what is no such line.
  void take(std::string_view line);
  /// Ends the worker. False when it has not said that it is done.
  [[nodiscard]] bool end_worker() const noexcept { return done_; }

  void add(const SeriesName& name, double x, std::vector<double> samples);
  /// Another metric of the same system and case. There must be one.
  [[nodiscard]] const Series& beside(const SeriesName& name, std::string_view metric) const;
  /// Its median at its first x.
  [[nodiscard]] double median_beside(const SeriesName& name, std::string_view metric) const;

  [[nodiscard]] const std::vector<Series>& series() const noexcept { return series_; }
  [[nodiscard]] const std::vector<Check>& checks() const noexcept { return checks_; }
  [[nodiscard]] const nlohmann::ordered_json& parameters() const noexcept { return parameters_; }
  /// Names of the systems, in the order in which they answered first.
  [[nodiscard]] const std::vector<std::string>& systems() const noexcept { return systems_; }
  /// What the current worker has measured last, for people: "cold, 4 KiB".
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

/// A number with three digits that count: "0.312", "41.5", "12300".
std::string format_number(double value);
/// Bytes as people write them: "40", "64 KiB".
std::string format_bytes(double bytes);

}  // namespace tonari::bench::driver
