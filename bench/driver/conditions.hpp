#pragma once

#include "driver/metric.hpp"
#include "driver/results.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// --fail-if: conditions on what was measured, for someone's continuous integration.

namespace tonari::bench::driver {

/// A measured value of tonari: a median, or the ratio to a rival.
struct Reading {
  std::string benchmark;
  std::string label;
  std::string metric;
  std::string unit;
  std::string x_name;
  double x = 0;
  std::string network;  ///< "tcp" of "tonari over tcp"; empty if there is only one.
  Better better = Better::neither;
  std::string rival;  ///< Empty: the median.
  double value = 0;
  std::optional<double> low;  ///< The interval; none after too few rounds.
  std::optional<double> high;
};

/// Splits "tonari over tcp" into "tonari" and "tcp"; the network of other names is empty.
struct SystemOver {
  std::string_view system;
  std::string_view network;
};
SystemOver split_network(std::string_view system) noexcept;

/// Returns the readings of a run, in the order of the series.
std::vector<Reading> readings_of(std::string_view benchmark, const Results& results);

/// The exit status if a condition is true.
inline constexpr int status_of_true_condition = 3;

/// QUANTITY OPERATOR NUMBER, for example "pingpong.warm.8.ratio > 0.7". The help text of --fail-if describes the form.
class Condition {
 public:
  /// Throws SetupError, which quotes `text`, if it is no condition.
  explicit Condition(std::string_view text);

  /// The result of judging readings.
  struct Judgement {
    bool is_true = false;
    std::string text;  ///< Lines to print.
  };
  /// Judges each reading that the quantity names. The condition is true if one of them is beyond the limit with its
  /// whole interval, or, without an interval, by itself. Throws SetupError if the quantity names no reading.
  [[nodiscard]] Judgement judge(const std::vector<Reading>& readings) const;

 private:
  enum class Operator : std::uint8_t { above, at_least, below, at_most };

  [[nodiscard]] std::vector<const Reading*> named(const std::vector<Reading>& readings) const;
  [[nodiscard]] bool names(const Reading& reading, std::string_view ratio_metric) const;
  [[nodiscard]] bool is_beyond(double value) const noexcept;
  [[noreturn]] void refuse(const std::vector<Reading>& readings) const;

  std::string text_;
  std::string place_;  ///< The quantity without metric, ratio and rival: "pingpong.warm.8".
  bool is_ratio_ = false;
  std::string rival_;  ///< Empty: the best one.
  Operator operator_ = Operator::above;
  double limit_ = 0;
};

/// Adds and returns the option --fail-if, which appends to `conditions`.
CLI::Option* add_fail_if(CLI::App& command, std::vector<Condition>& conditions);

/// Prints what each condition says. Returns true if one is true.
bool tell_conditions(const std::vector<Condition>& conditions, const std::vector<Reading>& readings);

}  // namespace tonari::bench::driver
