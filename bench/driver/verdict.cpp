#include "driver/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

namespace tonari::bench::driver {

namespace {

/// The values of one quantity by round.
struct Values {
  double x;
  std::map<int, double> by_round;
};

double value_of(Quantity::Statistic statistic, const Summary& summary) {
  switch (statistic) {
    case Quantity::Statistic::median: return summary.median;
    case Quantity::Statistic::deviation: return summary.stddev;
    case Quantity::Statistic::maximum: break;
  }
  return summary.max;
}

std::optional<Values> values_of(const Quantity& quantity, const Results& results) {
  const auto found = std::ranges::find_if(results.series(), [&](const Series& series) {
    const auto& name = series.name;
    return name.system == quantity.system && name.label == quantity.label && name.metric == quantity.metric;
  });
  if (found == results.series().end() || found->points.empty()) return std::nullopt;
  const auto& points = found->points;
  const auto point = quantity.at == Quantity::At::first  ? points.begin()
                     : quantity.at == Quantity::At::last ? std::prev(points.end())
                                                         : points.find(quantity.x);
  if (point == points.end()) return std::nullopt;
  Values values{point->first, {}};
  for (const auto& [round, samples] : point->second) {
    const auto summary = summarize(samples);
    values.by_round[round] = value_of(quantity.statistic, summary);
  }
  return values;
}

/// Returns what `ours` is divided by, for each of its rounds.
std::optional<Values> divisor_of(const Finding& finding, const Values& ours, const Results& results) {
  if (finding.against) return values_of(*finding.against, results);
  auto divisor = ours;
  for (auto& [round, value] : divisor.by_round) value = finding.constant.value_or(ours.x);
  return divisor;
}

Outcome outcome_of(const Claim& claim, const Comparison& measured) {
  if (measured.pairs < 2) return Outcome::not_decided;
  const double low = claim.low.value_or(0);
  const double high = claim.high.value_or(INFINITY);
  if (measured.low > low && measured.high < high) return Outcome::holds;
  if (measured.high < low || measured.low > high) return Outcome::does_not_hold;
  return Outcome::no_difference_seen;
}

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::holds: return "holds";
    case Outcome::does_not_hold: return "does not hold";
    case Outcome::no_difference_seen: return "no difference seen";
    case Outcome::not_decided: break;
  }
  return "not decided";
}

std::string to_string(const Comparison& measured) {
  if (measured.pairs < 2) return fmt::format("{}x in one round", format_number(measured.ratio));
  return fmt::format("{}x [{}, {}]", format_number(measured.ratio), format_number(measured.low),
                     format_number(measured.high));
}

}  // namespace

std::optional<Verdict> judge(const Finding& finding, const Results& results) {
  const auto ours = values_of(finding.ours, results);
  if (!ours) return std::nullopt;
  const auto divisor = divisor_of(finding, *ours, results);
  if (!divisor) return std::nullopt;
  std::vector<double> above;
  std::vector<double> below;
  for (const auto& [round, value] : ours->by_round) {
    if (!divisor->by_round.contains(round)) continue;
    above.push_back(value);
    below.push_back(divisor->by_round.at(round));
  }
  const auto measured = compare(above, below);
  if (measured.pairs == 0) return std::nullopt;
  return Verdict{finding, outcome_of(finding.claim, measured), measured};
}

std::vector<Verdict> judge_all(const std::vector<Finding>& findings, const Results& results) {
  std::vector<Verdict> verdicts;
  for (const auto& finding : findings) {
    if (auto verdict = judge(finding, results)) verdicts.push_back(std::move(*verdict));
  }
  return verdicts;
}

std::string tell_verdicts(const std::vector<Verdict>& verdicts) {
  if (verdicts.empty()) return "";
  std::string text = "\nfindings of the papers:\n";
  for (const auto& [finding, outcome, measured] : verdicts) {
    text += fmt::format("  {}: {} ({}, section {}): {}{}\n", to_string(outcome), finding.says, finding.paper,
                        finding.section, to_string(measured),
                        finding.printed ? fmt::format("; the paper: {}x", *finding.printed) : "");
  }
  return text;
}

nlohmann::ordered_json verdicts_as_json(const std::vector<Verdict>& verdicts) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& [finding, outcome, measured] : verdicts) {
    const bool has_interval = measured.pairs > 1;
    all.push_back({{"finding", finding.says},
                   {"paper", finding.paper},
                   {"section", finding.section},
                   {"outcome", to_string(outcome)},
                   {"ratio", measured.ratio},
                   {"low", has_interval ? nlohmann::ordered_json(measured.low) : nullptr},
                   {"high", has_interval ? nlohmann::ordered_json(measured.high) : nullptr},
                   {"printed", finding.printed ? nlohmann::ordered_json(*finding.printed) : nullptr}});
  }
  return all;
}

}  // namespace tonari::bench::driver
