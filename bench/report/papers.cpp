#include "report/papers.hpp"

#include "driver/comparison.hpp"
#include "driver/results.hpp"
#include "report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>

namespace tonari::bench::report {

namespace {

using driver::ExhibitRow;
using driver::Printed;
using driver::Quantity;
using driver::Source;

/// A measured quantity.
struct Found {
  const Report* report;
  const Series* series;
  const Point* point;
};

/// Returns whether a parameter of the run is as asked. Numbers compare as text.
bool has_parameters(const Report& report, const std::map<std::string, std::string>& asked) {
  return std::ranges::all_of(asked, [&](const auto& one) {
    const auto found = report.parameters.find(one.first);
    if (found == report.parameters.end()) return false;
    return (found->is_string() ? found->template get<std::string>() : found->dump()) == one.second;
  });
}

bool matches(const Series& series, const Quantity& quantity) {
  const bool is_begin = quantity.label.ends_with('*');
  const auto begin = std::string_view(quantity.label).substr(0, quantity.label.size() - (is_begin ? 1 : 0));
  return series.system == quantity.system && series.metric == quantity.metric &&
         (is_begin ? series.label.starts_with(begin) : series.label == begin) &&
         (quantity.over.empty() || series.x == quantity.over);
}

std::optional<Found> find(const Source& source, const Report& report) {
  std::optional<Found> found;
  for (const auto& series : report.series) {
    if (!matches(series, source.quantity)) continue;
    std::vector<double> all;
    for (const auto& point : series.points) all.push_back(point.x);
    const auto x = driver::choose_x(source.quantity, all);
    if (x) found = Found{&report, &series, &*std::ranges::find(series.points, *x, &Point::x)};
  }
  return found;
}

std::optional<Found> find(const ExhibitRow& row, const std::vector<const Report*>& reports) {
  if (!row.ours) return std::nullopt;
  for (const auto* report : reports) {
    if (report->benchmark != row.ours->benchmark || !has_parameters(*report, row.ours->with)) continue;
    if (const auto found = find(*row.ours, *report)) return found;
  }
  return std::nullopt;
}

double value_of(const ExhibitRow& row, const Found& found) {
  switch (row.ours->quantity.statistic) {
    case Quantity::Statistic::median: return found.point->median;
    case Quantity::Statistic::mean: return found.point->mean;
    case Quantity::Statistic::minimum: return found.point->min;
    case Quantity::Statistic::maximum: return found.point->max;
    case Quantity::Statistic::deviation: break;
  }
  return found.point->stddev;
}

struct Unit {
  std::string_view name;
  char dimension;
  double factor;
};
constexpr std::array units{Unit{"ns", 't', 1e-9},    Unit{"us", 't', 1e-6},    Unit{"ms", 't', 1e-3},
                           Unit{"s", 't', 1},        Unit{"MB/s", 'r', 1e6},   Unit{"GB/s", 'r', 1e9},
                           Unit{"MFLOPS", 'f', 1e6}, Unit{"GFLOP/s", 'f', 1e9}};

/// Formats a value in the unit `wanted` if that is of the same kind and the number is readable, otherwise in the unit
/// of the kind that gives a number from 1 to 1000.
std::string format_value(double value, std::string_view unit, std::string_view wanted) {
  const auto from = std::ranges::find(units, unit, &Unit::name);
  if (from == units.end()) return fmt::format("{}{}{}", driver::format_number(value), unit.empty() ? "" : " ", unit);
  const auto in = [&](const Unit& to) { return value * from->factor / to.factor; };
  const auto is_readable = [&](const Unit& to, double low, double high) {
    return to.dimension == from->dimension && in(to) >= low && in(to) < high;
  };
  const auto* best = from;
  for (const auto& to : units) {
    if (is_readable(to, 1, 1000)) best = &to;
  }
  const auto* const to = std::ranges::find(units, wanted, &Unit::name);
  if (to != units.end() && is_readable(*to, 0.001, 1e6)) best = to;
  return fmt::format("{} {}", driver::format_number(in(*best)), best->name);
}

/// Formats all digits that a paper prints: "14.8", "37 to 65", "about 100".
std::string format_printed(const Printed& printed) {
  const auto number = [](double value) { return fmt::format("{:.10g}", value); };
  return fmt::format("{}{}{}", printed.said.empty() ? "" : printed.said + " ", number(printed.low),
                     printed.high == printed.low ? "" : " to " + number(printed.high));
}

std::string paper_entry(const ExhibitRow& row) {
  if (!row.printed) return "-";
  return format_printed(*row.printed) + (row.unit.empty() ? "" : " " + row.unit);
}

std::string our_entry(const ExhibitRow& row, const std::optional<Found>& found) {
  if (!row.ours) return "-";
  if (!found) return "not measured";
  auto text = format_value(value_of(row, *found), found->series->unit, row.unit);
  std::string where;
  if (row.ours->quantity.label.ends_with('*')) where = found->series->label;
  if (row.ours->quantity.at != Quantity::At::value) {
    where += fmt::format("{}{}", where.empty() ? "" : ", ", format_named_x(found->series->x, found->point->x));
  }
  return where.empty() ? text : fmt::format("{} ({})", text, where);
}

/// Returns the ratio of the printed numbers: as the paper prints it, or divided here.
std::string paper_ratio(const ExhibitRow& row, const ExhibitRow& base, bool is_speed_up) {
  if (row.printed_ratio) return format_printed(*row.printed_ratio) + "x";
  if (!row.printed || !base.printed || &row == &base) return &row == &base && row.printed ? "1x" : "-";
  const auto number = driver::format_number;
  const double divisor = base.printed->high;
  if (divisor == 0 || base.printed->low != divisor || row.printed->low == 0) return "-";
  auto low = row.printed->low / divisor;
  auto high = row.printed->high / divisor;
  if (is_speed_up) std::tie(low, high) = std::pair(1 / high, 1 / low);
  return low == high ? number(low) + "x" : fmt::format("{}x to {}x", number(low), number(high));
}

/// Returns the ratio of the measured values, with its interval if both were measured in the same rounds.
std::string our_ratio(const ExhibitRow& row, const std::optional<Found>& mine, const ExhibitRow& base,
                      const std::optional<Found>& other, bool is_speed_up) {
  if (!mine || !other) return "-";
  if (&row == &base) return "1x";
  const auto is_median = [](const ExhibitRow& one) {
    return one.ours->quantity.statistic == Quantity::Statistic::median;
  };
  const auto& [our_rounds, base_rounds] = std::tie(mine->point->rounds, other->point->rounds);
  if (mine->report == other->report && is_median(row) && is_median(base) && our_rounds.size() == base_rounds.size()) {
    const auto measured =
        is_speed_up ? driver::compare(base_rounds, our_rounds) : driver::compare(our_rounds, base_rounds);
    if (measured.pairs > 1) return format_ratio(measured.ratio, measured.low, measured.high);
  }
  const double value = value_of(row, *mine);
  const double divisor = value_of(base, *other);
  if (!(value > 0) || !(divisor > 0)) return "-";
  return driver::format_number(is_speed_up ? divisor / value : value / divisor) + "x";
}

/// A row that has no number of ours, with the reason.
struct Missing {
  std::size_t row;  ///< Counted from 0.
  std::string reason;
};

/// Returns "#3, #5 to #8" for rows in ascending order.
std::string format_rows(const std::vector<std::size_t>& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size();) {
    auto end = i + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    text += fmt::format("{}#{}", text.empty() ? "" : ", ", rows[i] + 1);
    if (end - i > 1) text += fmt::format("{}#{}", end - i > 2 ? " to " : ", ", rows[end - 1] + 1);
    i = end;
  }
  return text;
}

/// Returns why a row has no number of ours, as far as that is known.
std::string reason_of(const ExhibitRow& row, const std::vector<const Report*>& reports) {
  if (!row.needs.empty()) return "needs " + row.needs;
  if (std::ranges::find(reports, row.ours->benchmark, &Report::benchmark) != reports.end()) return "";
  return fmt::format("`tonari bench {}` measures this", row.ours->benchmark);
}

/// Returns one note per reason: "#3, #5: needs a Myrinet network."
std::vector<std::string> missing_notes(const std::vector<Missing>& missing) {
  std::vector<std::string> reasons;
  std::map<std::string, std::vector<std::size_t>> rows;
  for (const auto& [row, reason] : missing) {
    if (!rows.contains(reason)) reasons.push_back(reason);
    rows[reason].push_back(row);
  }
  std::vector<std::string> notes;
  notes.reserve(reasons.size());
  for (const auto& reason : reasons) notes.push_back(fmt::format("{}: {}.", format_rows(rows[reason]), reason));
  return notes;
}

/// Returns the number of a row: "#1".
std::string number_of(const driver::Exhibit& exhibit, const std::string& label) {
  const auto row = std::ranges::find(exhibit.rows, label, &ExhibitRow::label);
  return fmt::format("#{}", row - exhibit.rows.begin() + 1);
}

/// Returns the number of the row that all ratios of the exhibit relate to; empty if they relate to several.
std::string common_base(const driver::Exhibit& exhibit) {
  std::string base;
  for (const auto& row : exhibit.rows) {
    if (row.relative_to.empty()) continue;
    const auto number = number_of(exhibit, row.relative_to);
    if (!base.empty() && base != number) return "";
    base = number;
  }
  return base;
}

Table verdicts_of(const driver::Paper& paper, const std::vector<const Report*>& reports) {
  Table table{.caption = fmt::format("{}: findings", paper.name),
              .head = {"finding", "section", "verdict", "measured", "the paper's ratio", "results"},
              .rows = {}};
  for (const auto& finding : paper.findings) {
    const auto printed = finding.printed ? fmt::format("{:.10g}x", *finding.printed) : "-";
    bool is_judged = false;
    for (const auto* report : reports) {
      for (const auto& one : report->verdicts) {
        if (one.paper != paper.name || one.finding != finding.says) continue;
        is_judged = true;
        table.rows.push_back({one.finding, one.section, one.outcome,
                              format_ratio(one.ratio, one.low, one.high) + (one.at.empty() ? "" : ", " + one.at),
                              printed, std::filesystem::path(report->file).stem().string()});
      }
    }
    if (!is_judged) {
      table.rows.push_back({finding.says, finding.section, "not judged",
                            finding.needs.empty() ? fmt::format("`tonari bench {}` measures this", finding.benchmark)
                                                  : "needs " + finding.needs,
                            printed, "-"});
    }
  }
  return table;
}

bool is_judged(const Table& verdicts) {
  return std::ranges::any_of(verdicts.rows, [](const auto& row) { return row[2] != "not judged"; });
}

}  // namespace

ExhibitView view_of(const driver::Exhibit& exhibit, const std::vector<const Report*>& reports) {
  ExhibitView view;
  const auto& rows = exhibit.rows;
  view.table.caption =
      fmt::format("{} (section{} {}): {}", exhibit.name, exhibit.section.find(',') == std::string::npos ? "" : "s",
                  exhibit.section, exhibit.shows);
  view.table.head = {"row", "the paper", "here"};
  const bool has_ratios = std::ranges::any_of(rows, [](const auto& row) { return !row.relative_to.empty(); });
  const auto common = common_base(exhibit);
  if (has_ratios) {
    const auto* const ratio = exhibit.is_speed_up ? "speed-up" : "ratio";
    const auto to = common.empty() ? "" : " to " + common;
    view.table.head.push_back(fmt::format("{}{}, the paper", ratio, to));
    view.table.head.push_back(fmt::format("{}{}, here", ratio, to));
    if (common.empty()) view.table.head.emplace_back("to");
  }
  std::vector<Missing> missing;
  for (const auto& row : rows) {
    const auto found = find(row, reports);
    view.is_measured |= found.has_value();
    view.can_be_measured |= row.ours.has_value();
    if (const auto reason = reason_of(row, reports); !found && !reason.empty()) {
      missing.push_back({view.table.rows.size(), reason});
    }
    auto& entries = view.table.rows.emplace_back(std::vector<std::string>{
        number_of(exhibit, row.label) + " " + row.label, paper_entry(row), our_entry(row, found)});
    if (!has_ratios) continue;
    if (row.relative_to.empty()) {
      entries.insert(entries.end(), common.empty() ? 3 : 2, "-");
      continue;
    }
    const auto& base = *std::ranges::find(rows, row.relative_to, &ExhibitRow::label);
    entries.push_back(paper_ratio(row, base, exhibit.is_speed_up));
    entries.push_back(our_ratio(row, found, base, find(base, reports), exhibit.is_speed_up));
    if (common.empty()) entries.push_back(number_of(exhibit, row.relative_to));
  }
  if (!exhibit.note.empty()) view.notes.push_back(exhibit.note);
  for (auto& note : missing_notes(missing)) view.notes.push_back(std::move(note));
  return view;
}

std::vector<PaperView> papers_beside(const std::vector<driver::Paper>& papers,
                                     const std::vector<const Report*>& reports, bool all) {
  const bool is_quick = std::ranges::any_of(reports, [](const Report* report) {
    return has_parameters(*report, {{"quick", "true"}});
  });
  std::vector<PaperView> views;
  for (const auto& paper : papers) {
    PaperView view{.id = "paper-" + plain_name(paper.name),
                   .name = paper.name,
                   .title = paper.title,
                   .note = is_quick ? "Numbers of runs with --quick are a first look: one round decides nothing, and "
                                      "programs with far memory have too little data to measure."
                                    : "",
                   .exhibits = {},
                   .verdicts = verdicts_of(paper, reports),
                   .unjudged = {},
                   .not_measured = {}};
    bool is_measured = false;
    for (const auto& exhibit : paper.exhibits) {
      auto one = view_of(exhibit, reports);
      is_measured |= one.is_measured;
      if (all || one.is_measured || !one.can_be_measured) {
        view.exhibits.push_back(std::move(one));
      } else {
        view.not_measured.push_back(exhibit.name);
      }
    }
    view.unjudged = {.caption = fmt::format("{}: findings that no benchmark can judge here", paper.name),
                     .head = {"finding", "section", "reason"},
                     .rows = {}};
    for (const auto& one : paper.unjudged) view.unjudged.rows.push_back({one.says, one.section, one.reason});
    if (all || is_measured || is_judged(view.verdicts)) views.push_back(std::move(view));
  }
  return views;
}

Table count_verdicts(const std::vector<PaperView>& papers) {
  static constexpr std::array outcomes{"holds", "does not hold", "no difference seen", "not decided", "not judged"};
  Table table{.caption = "Findings of the papers on this machine", .head = {"paper"}, .rows = {}};
  table.head.insert(table.head.end(), outcomes.begin(), outcomes.end());
  table.head.emplace_back("cannot be judged here");
  for (const auto& paper : papers) {
    auto& row = table.rows.emplace_back(std::vector<std::string>{paper.name});
    for (const std::string outcome : outcomes) {
      row.push_back(fmt::to_string(
          std::ranges::count_if(paper.verdicts.rows, [&](const auto& verdict) { return verdict[2] == outcome; })));
    }
    row.push_back(fmt::to_string(paper.unjudged.rows.size()));
  }
  return table;
}

}  // namespace tonari::bench::report
