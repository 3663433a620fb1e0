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
  std::string x_name;
  std::map<int, double> by_round;
};

double value_of(Quantity::Statistic statistic, const Summary& summary) {
  switch (statistic) {
    case Quantity::Statistic::median: return summary.median;
    case Quantity::Statistic::mean: return summary.mean;
    case Quantity::Statistic::minimum: return summary.min;
    case Quantity::Statistic::deviation: return summary.stddev;
    case Quantity::Statistic::maximum: break;
  }
  return summary.max;
}

std::optional<Values> values_of(const Quantity& quantity, const Results& results) {
  const auto found = std::ranges::find_if(results.series(), [&](const Series& series) {
    const auto& name = series.name;
    return name.system == quantity.system && name.label == quantity.label && name.metric == quantity.metric &&
           (quantity.over.empty() || name.x == quantity.over);
  });
  if (found == results.series().end()) return std::nullopt;
  std::vector<double> all;
  for (const auto& point : found->points) all.push_back(point.first);
  const auto x = choose_x(quantity, all);
  if (!x) return std::nullopt;
  Values values{*x, found->name.x, {}};
  for (const auto& [round, samples] : found->points.at(*x)) {
    values.by_round[round] = value_of(quantity.statistic, summarize(samples));
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

/// Says at which x a quantity was taken that does not fix it.
std::string place_of(const Quantity& quantity, const Values& values) {
  if (quantity.at == Quantity::At::value) return "";
  const bool is_bytes = values.x_name.starts_with("bytes");
  const auto x = is_bytes ? format_bytes(values.x) : fmt::format("{:g}", values.x);
  return values.x_name == "bytes" ? x : fmt::format("{} {}", values.x_name, x);
}

std::string to_string(const Comparison& measured) {
  if (measured.pairs < 2) return fmt::format("{}x in one round", format_number(measured.ratio));
  return fmt::format("{}x [{}, {}]", format_number(measured.ratio), format_number(measured.low),
                     format_number(measured.high));
}

}  // namespace

std::optional<double> choose_x(const Quantity& quantity, const std::vector<double>& all) {
  if (all.empty()) return std::nullopt;
  switch (quantity.at) {
    case Quantity::At::first: return all.front();
    case Quantity::At::last: return all.back();
    case Quantity::At::nearest:
      return *std::ranges::min_element(all, {}, [&](double x) { return std::fabs(std::log(x / quantity.x)); });
    case Quantity::At::value: break;
  }
  if (std::ranges::find(all, quantity.x) == all.end()) return std::nullopt;
  return quantity.x;
}

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
  return Verdict{finding, outcome_of(finding.claim, measured), measured, place_of(finding.ours, *ours)};
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
  for (const auto& [finding, outcome, measured, at] : verdicts) {
    text += fmt::format("  {}: {} ({}, section {}): {}{}{}\n", to_string(outcome), finding.says, finding.paper,
                        finding.section, to_string(measured), at.empty() ? "" : " at " + at,
                        finding.printed ? fmt::format("; the paper: {}x", *finding.printed) : "");
  }
  return text;
}

nlohmann::ordered_json verdicts_as_json(const std::vector<Verdict>& verdicts) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& [finding, outcome, measured, at] : verdicts) {
    const bool has_interval = measured.pairs > 1;
    all.push_back({{"finding", finding.says},
                   {"paper", finding.paper},
                   {"section", finding.section},
                   {"outcome", to_string(outcome)},
                   {"at", at},
                   {"ratio", measured.ratio},
                   {"low", has_interval ? nlohmann::ordered_json(measured.low) : nullptr},
                   {"high", has_interval ? nlohmann::ordered_json(measured.high) : nullptr},
                   {"printed", finding.printed ? nlohmann::ordered_json(*finding.printed) : nullptr}});
  }
  return all;
}

}  // namespace tonari::bench::driver
