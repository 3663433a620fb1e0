#include "driver/table.hpp"

#include "driver/comparing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace tonari::bench::driver {

namespace {

constexpr std::size_t usual_width = 118;
constexpr std::size_t gap = 2;

std::string heading_of(std::string_view system) {
  std::string text(system);
  const std::string_view long_name = " thread-multiple";
  if (const auto at = text.find(long_name); at != text.npos) text.replace(at, long_name.size(), " mt");
  return text;
}

/// Seconds are printed as milliseconds.
bool in_ms(const SeriesName& name) { return name.unit == "s"; }

/// A heading and the entries below it, aligned to the right.
struct Column {
  std::string heading;
  std::vector<std::string> entries;

  [[nodiscard]] std::size_t width() const {
    std::size_t widest = heading.size();
    for (const auto& entry : entries) widest = std::max(widest, entry.size());
    return widest;
  }
};

/// The columns of one case. The title is above all of them.
struct Group {
  std::string title;
  std::vector<Column> columns;

  [[nodiscard]] std::size_t width() const {
    std::size_t sum = 0;
    for (const auto& column : columns) sum += column.width() + gap;
    return std::max(sum, title.size() + gap);
  }
};

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

/// Returns the columns of `x` and of the groups beside each other. Without headings of columns the titles are enough.
std::string format_groups(const Column& x, std::span<const Group> groups, bool has_headings) {
  const auto x_width = x.width();
  std::string text;
  std::string titles = fmt::format("{:>{}}", has_headings ? "" : x.heading, x_width);
  std::string headings = fmt::format("{:>{}}", x.heading, x_width);
  for (const auto& group : groups) {
    titles += has_headings ? fmt::format("  {:<{}}", group.title, group.width() - gap)
                           : fmt::format("  {:>{}}", group.title, group.width() - gap);
    std::string line;
    for (const auto& column : group.columns) line += fmt::format("  {:>{}}", column.heading, column.width());
    headings += fmt::format("{:<{}}", line, group.width());
  }
  text += without_trailing_spaces(titles);
  if (has_headings) text += without_trailing_spaces(headings);
  for (std::size_t row = 0; row < x.entries.size(); ++row) {
    std::string line = fmt::format("{:>{}}", x.entries[row], x_width);
    for (const auto& group : groups) {
      std::string part;
      for (const auto& column : group.columns) {
        part += fmt::format("  {:>{}}", column.entries[row], has_headings ? column.width() : group.width() - gap);
      }
      line += fmt::format("{:<{}}", part, group.width());
    }
    text += without_trailing_spaces(line);
  }
  return text;
}

std::string percent(double fraction) {
  return fraction < 0.1 ? fmt::format("{:.1f}", fraction * 100) : fmt::format("{:.0f}", std::min(fraction, 9.99) * 100);
}

std::size_t width_of_terminal() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return usual_width;
  return std::max<std::size_t>(size.ws_col, 40);
}

/// The table of one metric: a row per x, and the cases side by side, below each other where the line ends.
class MetricTable {
 public:
  MetricTable(const Results& results, const Metric& shown, const SeriesName& like)
      : results_(results), shown_(shown), like_(like) {
    for (const auto& series : results.series()) {
      const auto& name = series.name;
      if (name.metric != like.metric || name.unit != like.unit || name.x != like.x) continue;
      series_.push_back(&series);
      if (std::ranges::find(labels_, name.label) == labels_.end()) labels_.push_back(name.label);
      systems_.insert(name.system);
      for (const auto& point : series.points) all_x_.insert(point.first);
    }
  }

  [[nodiscard]] std::string text() const {
    const bool has_headings = systems_.size() > 1;
    Column x{like_.x, {}};
    for (const double value : all_x_) {
      x.entries.push_back(like_.x == "bytes" ? format_bytes(value) : fmt::format("{:.0f}", value));
    }
    std::vector<Group> groups;
    for (const auto& label : labels_) groups.push_back(group_of(label));
    auto text =
        fmt::format("\n{}{}{}{}\n", shown_.name, unit_text(), is_mean() ? ", mean [min, max] over ranks" : ", median",
                    has_headings || systems_.empty() ? "" : fmt::format(" ({})", heading_of(*systems_.begin())));
    const auto width = width_of_terminal();
    for (std::size_t first = 0; first < groups.size();) {
      std::size_t end = first + 1;
      auto used = x.width() + groups[first].width();
      while (end < groups.size() && used + groups[end].width() <= width) used += groups[end++].width();
      if (first > 0) text += "\n";
      text += format_groups(x, std::span(groups).subspan(first, end - first), has_headings);
      first = end;
    }
    return text + legend();
  }

 private:
  [[nodiscard]] bool is_mean() const { return shown_.form == Metric::Form::mean_and_spread; }
  [[nodiscard]] std::string unit_text() const {
    const auto unit = in_ms(like_) ? "ms" : like_.unit;
    return unit.empty() ? "" : ", " + unit;
  }

  [[nodiscard]] Group group_of(const std::string& label) const {
    Group group{label, {}};
    std::vector<const Series*> of_label;
    std::vector<const Series*> rivals;
    for (const auto* series : series_) {
      if (series->name.label != label) continue;
      of_label.push_back(series);
      if (!is_reference(series->name.system)) rivals.push_back(series);
    }
    for (const auto* series : of_label) {
      auto& column = group.columns.emplace_back(Column{heading_of(series->name.system), {}});
      for (const double x : all_x_) column.entries.push_back(entry(*series, x));
    }
    if (shown_.better == Better::neither) return group;
    add_networks(group, of_label, rivals);
    if (rivals.empty()) return group;
    for (const auto& [system, heading] : {std::pair{"tonari", "vs best"}, std::pair{"tonari-mpi", "mpi vs best"}}) {
      const auto ours = std::ranges::find_if(of_label, [&](const auto* one) { return one->name.system == system; });
      if (ours == of_label.end()) continue;
      auto& column = group.columns.emplace_back(Column{heading, {}});
      for (const double x : all_x_) column.entries.push_back(ratio(**ours, rivals, x));
    }
    return group;
  }

  /// Adds the ratios of tonari over each network to the best rival over it, and to tonari over the first network.
  void add_networks(Group& group, std::span<const Series* const> of_label,
                    std::span<const Series* const> rivals) const {
    const std::string_view over = "tonari over ";
    const Series* first = nullptr;
    for (const auto* const series : of_label) {
      const auto& system = series->name.system;
      if (!system.starts_with(over)) continue;
      const auto network = system.substr(over.size());
      std::vector<const Series*> on_it;
      std::ranges::copy_if(rivals, std::back_inserter(on_it),
                           [&](const Series* rival) { return rival->name.system.ends_with(" over " + network); });
      if (!on_it.empty()) {
        auto& column = group.columns.emplace_back(Column{network + " vs best", {}});
        for (const double x : all_x_) column.entries.push_back(ratio(*series, on_it, x));
      }
      if (first == nullptr) {
        first = series;
        continue;
      }
      auto& column = group.columns.emplace_back(
          Column{fmt::format("{} vs {}", network, first->name.system.substr(over.size())), {}});
      for (const double x : all_x_) column.entries.push_back(ratio(*series, std::span(&first, 1), x));
    }
  }

  [[nodiscard]] std::string entry(const Series& series, double x) const {
    const auto said = series.summary(x);
    if (said.n == 0) return "-";
    const double scale = in_ms(like_) ? 1000 : 1;
    const auto number = [&](double value) { return format_number(value * scale); };
    if (!is_mean()) return number(said.median);
    return fmt::format("{} [{}, {}]", number(said.mean), number(said.min), number(said.max));
  }

  /// The ratio to the best of the others.
  [[nodiscard]] std::string ratio(const Series& ours, std::span<const Series* const> rivals, double x) const {
    const auto is_better = [&](const Series* one, const Series* other) {
      const auto mine = one->summary(x), theirs = other->summary(x);
      if (mine.n == 0 || theirs.n == 0) return mine.n > theirs.n;
      return shown_.better == Better::low ? mine.median < theirs.median : mine.median > theirs.median;
    };
    const auto* const best = *std::ranges::min_element(rivals, is_better);
    const auto text = format_ratio(results_, ours, *best, x);
    has_intervals_ |= text.ends_with('%');
    return text;
  }

  [[nodiscard]] std::string legend() const { return has_intervals_ ? legend_of_ratios() : ""; }

  const Results& results_;
  Metric shown_;
  SeriesName like_;
  std::vector<const Series*> series_;
  std::vector<std::string> labels_;
  std::set<std::string> systems_;
  std::set<double> all_x_;
  mutable bool has_intervals_ = false;  // once a ratio has one
};

}  // namespace

std::string tell_metric(const Results& results, const Metric& shown) {
  std::string text;
  std::vector<SeriesName> told;  // a table for each unit and x of the metric
  for (const auto& series : results.series()) {
    const auto& name = series.name;
    const auto is_told = [&](const SeriesName& other) { return other.unit == name.unit && other.x == name.x; };
    if (name.metric != shown.name || std::ranges::any_of(told, is_told)) continue;
    told.push_back(name);
    text += MetricTable(results, shown, name).text();
  }
  return text;
}

std::string tell_metrics(const Results& results, std::span<const Metric> metrics) {
  std::string text;
  for (const auto& metric : metrics) {
    if (metric.form != Metric::Form::untold) text += tell_metric(results, metric);
  }
  return text;
}

std::string format_ratio(const Results& results, const Series& ours, const Series& theirs, double x) {
  const auto comparison = compare(ours, theirs, x);
  if (comparison.pairs == 0) return "-";
  auto text = comparison.ratio < 0.01 ? "<0.01x" : fmt::format("{:.2f}x", comparison.ratio);
  if (comparison.pairs < 2) return text;
  const double noise = smallest_difference(results, ours, comparison, x);
  return fmt::format("{}{} +-{}%", is_different(comparison, noise) ? "" : "~", text, percent(noise));
}

std::string legend_of_ratios() {
  return fmt::format(
      "+-: the smallest difference that this run can show ({} % confidence, pairs of one round); ~: no difference "
      "seen\n",
      confidence * 100);
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
