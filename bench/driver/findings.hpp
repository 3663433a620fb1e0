#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The findings of the five papers, as files of data: bench/papers/*.json. Each is a claim about the ratio of two
// measured quantities, which a benchmark can confirm or refute. They contain only numbers that the papers print.

namespace tonari::bench::driver {

/// Selects a value per round of one system, case and metric at one x.
struct Quantity {
  enum class At : std::uint8_t { first, last, value };
  enum class Statistic : std::uint8_t { median, deviation, maximum };

  std::string system;
  std::string label;  ///< The case.
  std::string metric;
  At at = At::last;
  double x = 0;                             ///< Only if `at` is value.
  Statistic statistic = Statistic::median;  ///< Summarises the samples of a round.
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
};

/// Reads the findings that concern a benchmark from all files of the folder, in the order of the files' names. Throws
/// SetupError, which names the file, on a file that has another form.
std::vector<Finding> findings_of(std::string_view question, const std::filesystem::path& folder);

/// Returns the folder of the papers' data: libexec/tonari/papers, in the build tree and installed.
std::filesystem::path papers_folder();

}  // namespace tonari::bench::driver
