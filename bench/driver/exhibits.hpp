#pragma once

#include "driver/findings.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

// The tables and figures of the papers: the numbers that they print, and for each the quantity that corresponds to it
// here, or why there is none. A figure whose numbers are not in the text has rows without printed numbers.

namespace tonari::bench::driver {

/// A number as a paper prints it: one value, or a range.
struct Printed {
  double low = 0;
  double high = 0;
  std::string said = {};  ///< "about", "above"; empty: exactly.
};

/// A quantity of ours, in the first report of the benchmark whose parameters match.
struct Source {
  std::string benchmark;
  Quantity quantity;                             ///< A case that ends in '*' is the last one that begins like this.
  std::map<std::string, std::string> with = {};  ///< Parameters of the run: {"apart": "network"}.
};

struct ExhibitRow {
  std::string label;
  std::optional<Printed> printed = {};
  std::string unit = {};
  std::string relative_to = {};               ///< The label of a row that this one is divided by; empty: none.
  std::optional<Printed> printed_ratio = {};  ///< The ratio to that row, where the paper prints it.
  std::optional<Source> ours = {};
  std::string needs =
      {};  ///< Hardware or a run that the quantity takes. Without `ours` there is no such quantity here.
};

struct Exhibit {
  std::string name;          ///< "figure 6"
  std::string section;       ///< "5.1.3"
  std::string shows;         ///< Without a full stop.
  std::string note;          ///< Sentences, or empty.
  bool is_speed_up = false;  ///< The values are times, and ratios divide the other row by this one.
  std::vector<ExhibitRow> rows;
};

}  // namespace tonari::bench::driver
