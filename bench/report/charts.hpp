#pragma once

#include "report/model.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace tonari::bench::report {

/// Rows of text. The first entry of each row names it.
struct Table {
  std::string caption;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

/// A point with its band, which is the interval of the median or, without one, min to p99.
struct Mark {
  double x;
  double y;
  double low;
  double high;
};

/// The marks of one system.
struct Curve {
  std::string name;
  std::vector<Mark> marks;
};

/// A chart is drawn three times: as SVG, by the page's script, and as a table.
struct Chart {
  std::string id;  ///< Distinct among all charts.
  std::string title;
  std::string x_name;
  std::string y_name;
  bool x_log = false;
  bool y_log = false;
  bool are_samples = false;             ///< Single measurements: points without lines and bands.
  std::vector<std::string> categories;  ///< If not empty, x is an index of these.
  std::vector<Curve> curves;
  Table table;
};

/// Returns the charts of a report: one per metric and case, or one per metric if its cases have one x each. The
/// benchmark `series` also has one of its single measurements per case and x. `prefix` begins the ids.
std::vector<Chart> charts_of(const Report& report, const std::string& prefix);

/// Returns what the page's script needs to draw the chart.
nlohmann::ordered_json as_json(const Chart& chart);

}  // namespace tonari::bench::report
