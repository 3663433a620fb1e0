#include "driver/table.hpp"

#include "cli/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace tonari::bench::driver {

namespace {

std::string heading_of(std::string_view system) {
  std::string text(system);
  const std::string_view long_name = " thread-multiple";
  if (const auto at = text.find(long_name); at != text.npos) text.replace(at, long_name.size(), " mt");
  return text;
}

/// Returns true for systems that are not rivals: lower bounds, other designs, tonari with other settings.
bool is_reference(std::string_view system) {
  static constexpr std::array<std::string_view, 7> others{"ring",   "lhs",    "no-lhs",    "byte-loop",
                                                          "memcmp", "memcpy", "process-vm"};
  return std::ranges::find(others, system) != others.end() || system.starts_with("tonari");
}

/// Seconds are printed as milliseconds.
bool in_ms(const Series& series) { return series.name.unit == "s"; }

/// The table of one case.
class CaseTable {
 public:
  CaseTable(const Shown& shown, std::vector<const Series*> series) : shown_(shown), series_(std::move(series)) {
    for (const auto& [system, heading] : {std::pair{"tonari", "vs best"}, std::pair{"tonari-mpi", "mpi vs best"}}) {
      if (const auto* const found = find(system)) ours_.push_back({found, heading});
    }
    for (const auto* one : series_) {
      if (!is_reference(one->name.system)) rivals_.push_back(one);
      for (const auto& point : one->points) all_x_.insert(point.first);
    }
  }

  [[nodiscard]] std::string text() const {
    const bool compares = !rivals_.empty() && shown_.better != Better::neither;
    std::vector<std::vector<std::string>> rows(1);
    rows[0].push_back(series_[0]->name.x);
    for (const auto* one : series_) rows[0].push_back(heading_of(one->name.system));
    for (const auto& our : ours_) {
      if (compares) rows[0].emplace_back(our.heading);
    }
    for (const double x : all_x_) {
      auto& row = rows.emplace_back();
      row.push_back(series_[0]->name.x == "bytes" ? format_bytes(x) : fmt::format("{:.0f}", x));
      for (const auto* one : series_) row.push_back(entry(*one, x));
      for (const auto& our : ours_) {
        if (compares) row.push_back(ratio(*our.series, x));
      }
    }
    return cli::format_table(rows);
  }

 private:
  [[nodiscard]] const Series* find(std::string_view system) const {
    const auto found = std::ranges::find_if(series_, [&](const auto* one) { return one->name.system == system; });
    return found == series_.end() ? nullptr : *found;
  }

  [[nodiscard]] std::string entry(const Series& series, double x) const {
    const auto said = series.summary(x);
    if (said.n == 0) return "-";
    const double scale = in_ms(*series_[0]) ? 1000 : 1;
    const auto number = [&](double value) { return format_number(value * scale); };
    if (!shown_.mean_and_spread) return number(said.median);
    return fmt::format("{} [{}, {}]", number(said.mean), number(said.min), number(said.max));
  }

  [[nodiscard]] std::string ratio(const Series& our, double x) const {
    std::optional<double> best;
    for (const auto* rival : rivals_) {
      const auto said = rival->summary(x);
      if (said.n == 0) continue;
      const bool beats = !best || (shown_.better == Better::low ? said.median < *best : said.median > *best);
      if (beats) best = said.median;
    }
    const auto ours = our.summary(x);
    if (!best || *best == 0 || ours.n == 0) return "-";
    const double ratio = ours.median / *best;
    return ratio < 0.01 ? "<0.01x" : fmt::format("{:.2f}x", ratio);
  }

  Shown shown_;
  std::vector<const Series*> series_;
  struct Our {
    const Series* series;
    const char* heading;
  };
  std::vector<Our> ours_;
  std::vector<const Series*> rivals_;
  std::set<double> all_x_;
};

}  // namespace

std::string tell_metric(const Results& results, const Shown& shown) {
  std::vector<std::string> labels;
  for (const auto& series : results.series()) {
    if (series.name.metric != shown.metric) continue;
    if (std::ranges::find(labels, series.name.label) == labels.end()) labels.push_back(series.name.label);
  }
  std::string text;
  for (const auto& label : labels) {
    std::vector<const Series*> series;
    for (const auto& one : results.series()) {
      if (one.name.metric == shown.metric && one.name.label == label) series.push_back(&one);
    }
    text += fmt::format("\n{}: {}, {}{}\n", label, shown.metric, in_ms(*series[0]) ? "ms" : series[0]->name.unit,
                        shown.mean_and_spread ? ", mean [min, max] over ranks" : ", median");
    text += CaseTable(shown, std::move(series)).text();
  }
  return text;
}

std::string tell_residuals(const Results& results, std::string_view what, std::string_view things,
                           std::string_view whose) {
  double largest = 0;
  for (const auto& check : results.checks()) largest = check.value < largest ? largest : check.value;  // keeps a NaN
  const bool passed = std::ranges::all_of(results.checks(), &Check::passed);
  return fmt::format("\nresidual {}: at most {} in {} {}; {}'s bound is {}: {}\n", what, format_number(largest),
                     results.checks().size(), things, whose, results.checks().front().bound,
                     passed ? "passed" : "FAILED");
}

}  // namespace tonari::bench::driver
