#include "report/charts.hpp"

#include "driver/results.hpp"
#include "report/overview.hpp"
#include "report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace tonari::bench::report {

namespace {

using Group = std::vector<const Series*>;

/// Two decades: above, a linear axis hides the small values.
constexpr double span_of_linear_axis = 100;

Mark mark_of(const Point& point) {
  return {point.x, point.median, point.low.value_or(point.min), point.high.value_or(point.p99)};
}

/// Returns whether positive values span more than two decades.
template <class Values>
bool needs_log(const Values& values) {
  double least = INFINITY, most = 0;
  for (const double value : values) {
    if (!(value > 0)) return false;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  return most > least * span_of_linear_axis;
}

void choose_axes(Chart& chart) {
  std::vector<double> x, y;
  for (const auto& curve : chart.curves) {
    for (const auto& mark : curve.marks) {
      x.push_back(mark.x);
      y.insert(y.end(), {mark.y, mark.low, mark.high});
    }
  }
  chart.x_log = chart.categories.empty() && !chart.are_samples && needs_log(x);
  chart.y_log = needs_log(y);
}

std::string cell_of(const Point& point) {
  const auto number = driver::format_number;
  const bool has_interval = point.low && point.high;
  const auto band = fmt::format("{} to {}", number(has_interval ? *point.low : point.min),
                                number(has_interval ? *point.high : point.p99));
  return fmt::format("{} ({}{})", number(point.median), has_interval ? "" : "min, p99: ", band);
}

std::vector<std::string> systems_of(const Group& group) {
  std::vector<std::string> systems;
  for (const auto* const series : group) {
    if (std::ranges::find(systems, series->system) == systems.end()) systems.push_back(series->system);
  }
  return systems;
}

/// Returns one row of the table: the systems' values at this case and x, and the ratio to the best rival.
std::vector<std::string> row_of(const std::string& name, const Group& group, const std::vector<std::string>& systems,
                                const std::string& label, double x, const std::vector<Compared>& best) {
  std::vector<std::string> row{name};
  for (const auto& system : systems) {
    row.emplace_back("-");
    for (const auto* const series : group) {
      if (series->system != system || series->label != label) continue;
      const auto found = std::ranges::find(series->points, x, &Point::x);
      if (found != series->points.end()) row.back() = cell_of(*found);
    }
  }
  for (const auto& one : best) {
    if (one.label != label || one.metric != group.front()->metric || one.x != x) continue;
    const auto noise = one.low && !one.differs ? ", no difference seen" : "";
    row.push_back(fmt::format("{} ({}{})", format_ratio(one.ratio, one.low, one.high), one.with, noise));
  }
  return row;
}

Table table_of(const Group& group, const std::vector<std::string>& systems, bool has_rivals) {
  const auto& first = *group.front();
  Table table{.caption = {}, .head = {first.x}, .rows = {}};
  for (const auto& system : systems) {
    table.head.push_back(first.unit.empty() ? system : fmt::format("{}, {}", system, first.unit));
  }
  if (has_rivals) table.head.emplace_back("tonari / best rival");
  return table;
}

void complete(Table& table) {
  for (auto& row : table.rows) row.resize(table.head.size(), "-");
}

std::string name_of_y(const Series& series) {
  return series.unit.empty() ? series.metric : fmt::format("{}, {}", series.metric, series.unit);
}

/// A chart of one case: x is the benchmark's x.
Chart chart_of_case(const Group& group, const std::vector<Compared>& best) {
  const auto& first = *group.front();
  Chart chart;
  chart.title = fmt::format("{}: {}", first.metric, first.label);
  chart.x_name = first.x;
  chart.y_name = name_of_y(first);
  std::set<double> xs;
  for (const auto* const series : group) {
    chart.curves.push_back({series->system, {}});
    for (const auto& point : series->points) {
      chart.curves.back().marks.push_back(mark_of(point));
      xs.insert(point.x);
    }
  }
  const auto systems = systems_of(group);
  chart.table = table_of(group, systems, !best.empty());
  for (const double x : xs) {
    chart.table.rows.push_back(row_of(format_x(first.x, x), group, systems, first.label, x, best));
  }
  return chart;
}

/// A chart of all cases of a metric, which have one x each.
Chart chart_of_cases(const Group& group, const std::vector<Compared>& best) {
  const auto& first = *group.front();
  Chart chart;
  chart.title = first.metric;
  chart.x_name = "case";
  chart.y_name = name_of_y(first);
  const auto systems = systems_of(group);
  for (const auto& system : systems) chart.curves.push_back({system, {}});
  chart.table = table_of(group, systems, !best.empty());
  chart.table.head.front() = "case";
  for (const auto* const series : group) {
    const auto& point = series->points.front();
    const auto name = fmt::format("{}, {}", series->label, format_named_x(series->x, point.x));
    auto place = std::ranges::find(chart.categories, name);
    if (place == chart.categories.end()) {
      chart.table.rows.push_back(row_of(name, group, systems, series->label, point.x, best));
      place = chart.categories.insert(chart.categories.end(), name);
    }
    auto mark = mark_of(point);
    mark.x = static_cast<double>(place - chart.categories.begin());
    std::ranges::find(chart.curves, series->system, &Curve::name)->marks.push_back(mark);
  }
  return chart;
}

/// A chart of the single measurements of all systems in one case at one x.
Chart chart_of_samples(const Group& group, double x) {
  const auto number = driver::format_number;
  const auto& first = *group.front();
  Chart chart;
  chart.title = fmt::format("single measurements: {}, {}", first.label, format_named_x(first.x, x));
  chart.x_name = "measurement";
  chart.y_name = name_of_y(first);
  chart.are_samples = true;
  chart.table = {
      .caption = {}, .head = {"system", "n", "min", "median", "p99", "max", "mean", "deviation"}, .rows = {}};
  for (const auto* const series : group) {
    const auto point = std::ranges::find(series->points, x, &Point::x);
    if (point == series->points.end()) continue;
    chart.curves.push_back({series->system, {}});
    double index = 0;
    for (const double sample : point->samples) chart.curves.back().marks.push_back({++index, sample, sample, sample});
    chart.table.rows.push_back({series->system, fmt::to_string(point->n), number(point->min), number(point->median),
                                number(point->p99), number(point->max), number(point->mean), number(point->stddev)});
  }
  return chart;
}

/// Returns the series in groups that `belong` together, in the order of their first members.
template <class Belong>
std::vector<Group> grouped(const Report& report, const Belong& belong) {
  std::vector<Group> groups;
  for (const auto& series : report.series) {
    if (series.points.empty()) continue;
    const auto found = std::ranges::find_if(groups, [&](const Group& group) { return belong(*group.front(), series); });
    if (found != groups.end()) {
      found->push_back(&series);
    } else {
      groups.push_back({&series});
    }
  }
  return groups;
}

bool is_same_metric(const Series& one, const Series& other) {
  return one.metric == other.metric && one.unit == other.unit && one.x == other.x;
}

bool is_same_case(const Series& one, const Series& other) {
  return is_same_metric(one, other) && one.label == other.label;
}

bool has_one_point(const Series* series) { return series->points.size() == 1; }

}  // namespace

std::vector<Chart> charts_of(const Report& report, const std::string& prefix) {
  const auto best = best_rivals(report);
  std::vector<Chart> charts;
  const auto by_case = grouped(report, is_same_case);
  for (const auto& group : grouped(report, is_same_metric)) {
    if (std::ranges::all_of(group, has_one_point)) {
      charts.push_back(chart_of_cases(group, best));
      continue;
    }
    for (const auto& of_case : by_case) {
      if (is_same_metric(*group.front(), *of_case.front())) charts.push_back(chart_of_case(of_case, best));
    }
  }
  for (const auto& group : by_case) {
    if (report.benchmark != "series") break;
    for (const auto& point : group.front()->points) charts.push_back(chart_of_samples(group, point.x));
  }
  for (auto& chart : charts) {
    chart.id = fmt::format("{}-{}", prefix, &chart - charts.data() + 1);
    chart.table.caption = chart.title;
    complete(chart.table);
    choose_axes(chart);
  }
  return charts;
}

nlohmann::ordered_json as_json(const Chart& chart) {
  auto curves = nlohmann::ordered_json::array();
  for (const auto& curve : chart.curves) {
    auto marks = nlohmann::ordered_json::array();
    for (const auto& mark : curve.marks) marks.push_back({mark.x, mark.y, mark.low, mark.high});
    curves.push_back({{"name", curve.name}, {"marks", std::move(marks)}});
  }
  return {{"id", chart.id},
          {"title", chart.title},
          {"xName", chart.x_name},
          {"yName", chart.y_name},
          {"xLog", chart.x_log},
          {"yLog", chart.y_log},
          {"samples", chart.are_samples},
          {"categories", chart.categories},
          {"curves", std::move(curves)}};
}

}  // namespace tonari::bench::report
