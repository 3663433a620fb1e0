#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The findings of the five papers. Each is a claim about the ratio of two measured quantities, which a benchmark can
// confirm or refute. They contain only numbers that the papers print. papers.hpp reads them.

namespace tonari::bench::driver {

/// Selects a value per round of one system, case and metric at one x.
struct Quantity {
  enum class At : std::uint8_t { first, last, nearest, value };
  enum class Statistic : std::uint8_t { median, mean, minimum, maximum, deviation };

  std::string system;
  std::string label;  ///< The case.
  std::string metric;
  At at = At::last;
  double x = 0;                             ///< Only if `at` is value, or nearest (by ratio).
  Statistic statistic = Statistic::median;  ///< Summarises the samples of a round.
  std::string over = {};                    ///< The name of x; empty: any.
};

/// Bounds that a paper claims for a ratio: above `low`, below `high`, or between the two.
struct Claim {
  std::optional<double> low;
  std::optional<double> high;
};

struct Finding {
  std::string says;     ///< One sentence, without its full stop.
  std::string paper;    ///< "LHS"
  std::string section;  ///< "5.1.3, figure 6"
  Quantity ours;
  std::optional<Quantity> against;  ///< If none, `ours` is divided by `constant`, or by its x.
  std::optional<double> constant;
  Claim claim;
  std::optional<double> printed;  ///< The paper's own ratio.
  std::string benchmark = {};     ///< Measures the quantities.
  std::string needs = {};         ///< Hardware or a run that they take: "verbs". Empty: nothing special.
};

/// A finding that no benchmark can judge on one machine.
struct Unjudged {
  std::string says;
  std::string section;
  std::string reason;
};

/// Returns the x that `at` selects among these, which are in ascending order, or nothing.
std::optional<double> choose_x(const Quantity& quantity, const std::vector<double>& all);

}  // namespace tonari::bench::driver
