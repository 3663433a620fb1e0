#include "driver/conditions.hpp"

#include "base/edit_distance.hpp"
#include "driver/comparing.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <system_error>

namespace tonari::bench::driver {

namespace {

constexpr std::string_view form_of_conditions =
    "must be QUANTITY OPERATOR NUMBER, such as 'pingpong.warm.8.ratio > 0.7', with > >= < or <=";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  return first == text.npos ? std::string_view{} : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Removes spaces beside dots, and repeated ones.
std::string tidied(std::string_view text) {
  std::string tidy;
  for (const char letter : trimmed(text)) {
    const bool is_space = letter == ' ' || letter == '\t';
    if (is_space && (tidy.ends_with(' ') || tidy.ends_with('.'))) continue;
    if (letter == '.' && tidy.ends_with(' ')) tidy.pop_back();
    tidy += is_space ? ' ' : letter;
  }
  return tidy;
}

/// Returns the forms in which x may be written: 4096, 4K, 4 KiB.
std::vector<std::string> forms_of(double x) {
  std::vector<std::string> forms{"", fmt::format("{}", x), format_bytes(x)};
  auto kilo = forms.back();
  if (const auto space = kilo.find(' '); space != kilo.npos) forms.push_back(kilo.erase(space, 1).erase(space + 1));
  return forms;
}

void append_part(std::string& name, std::string_view part) {
  if (part.empty()) return;
  if (!name.empty()) name += '.';
  name += part;
}

/// Returns whether a system is the rival that --rival or a table calls `name`.
bool is_called(std::string_view system, std::string_view name) {
  if (system == name) return true;
  const bool is_mt = system.ends_with("thread-multiple");
  if (name.ends_with("-mt")) return is_mt && system.starts_with(name.substr(0, name.size() - 2));
  if (name.ends_with("-default")) return !is_mt && system.starts_with(name.substr(0, name.size() - 7));
  return system.starts_with(name) && (system[name.size()] == '-' || system[name.size()] == ' ');
}

bool is_of_same_place(const Reading& one, const Reading& other) {
  return one.benchmark == other.benchmark && one.label == other.label && one.metric == other.metric &&
         one.x == other.x && one.network == other.network;
}

std::string text_of(const Reading& reading) {
  std::string text = reading.benchmark + ", " + reading.label;
  text +=
      reading.x_name == "bytes" ? ", " + format_bytes(reading.x) : fmt::format(", {} {}", reading.x_name, reading.x);
  if (!reading.network.empty()) text += " over " + reading.network;
  const auto unit = reading.rival.empty() ? (reading.unit.empty() ? "" : " " + reading.unit) : "x";
  text += fmt::format(": {} {}{}", reading.metric, format_number(reading.value), unit);
  if (reading.low && reading.high) {
    text += fmt::format(" [{}, {}]", format_number(*reading.low), format_number(*reading.high));
  } else {
    text += " (too few rounds for an interval)";
  }
  return reading.rival.empty() ? text : text + " to " + reading.rival;
}

void add_ratios(const Series& ours, double x, const Results& results, const Reading& median,
                std::vector<Reading>& readings) {
  if (ours.better == Better::neither) return;
  for (const auto& theirs : results.series()) {
    auto name = ours.name;
    name.system = theirs.name.system;
    if (!(name == theirs.name) || &ours == &theirs || split_network(theirs.name.system).network != median.network) {
      continue;
    }
    const auto comparison = compare(ours, theirs, x);
    if (comparison.pairs == 0) continue;
    auto ratio = median;
    ratio.rival = theirs.name.system;
    ratio.value = comparison.ratio;
    ratio.low.reset();
    ratio.high.reset();
    if (comparison.pairs > 1) {
      ratio.low = comparison.low;
      ratio.high = comparison.high;
    }
    readings.push_back(std::move(ratio));
  }
}

}  // namespace

SystemOver split_network(std::string_view system) noexcept {
  const std::string_view over = " over ";
  const auto at = system.rfind(over);
  if (at == system.npos) return {system, {}};
  return {system.substr(0, at), system.substr(at + over.size())};
}

std::vector<Reading> readings_of(std::string_view benchmark, const Results& results) {
  std::vector<Reading> readings;
  for (const auto& series : results.series()) {
    const auto& name = series.name;
    const auto [system, network] = split_network(name.system);
    if (system != "tonari") continue;
    for (const auto& point : series.points) {
      const double x = point.first;
      Reading reading{.benchmark = std::string(benchmark),
                      .label = name.label,
                      .metric = name.metric,
                      .unit = name.unit,
                      .x_name = name.x,
                      .x = x,
                      .network = std::string(network),
                      .better = series.better,
                      .rival = {},
                      .value = series.summary(x).median,
                      .low = {},
                      .high = {}};
      if (const auto interval = bootstrap_median(series.medians(x))) {
        reading.low = interval->low;
        reading.high = interval->high;
      }
      readings.push_back(reading);
      add_ratios(series, x, results, reading, readings);
    }
  }
  return readings;
}

Condition::Condition(std::string_view text) : text_(tidied(text)) {
  const auto refuse_form = [&] { throw SetupError(fmt::format("--fail-if '{}': {}", text, form_of_conditions)); };
  const std::string_view tidy = text_;
  const auto sign = tidy.find_first_of("<>");
  if (sign == tidy.npos) refuse_form();
  const bool or_equal = sign + 1 < tidy.size() && tidy[sign + 1] == '=';
  operator_ = tidy[sign] == '>' ? (or_equal ? Operator::at_least : Operator::above)
                                : (or_equal ? Operator::at_most : Operator::below);
  const auto number = trimmed(tidy.substr(sign + (or_equal ? 2 : 1)));
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), limit_);
  if (error != std::errc{} || end != number.data() + number.size() || !std::isfinite(limit_)) refuse_form();

  auto quantity = trimmed(tidy.substr(0, sign));
  if (quantity.find('=') != quantity.npos || quantity.ends_with("ratio to")) refuse_form();
  if (const auto to = quantity.rfind("ratio to "); to != quantity.npos) {
    rival_ = trimmed(quantity.substr(to + 9));
    quantity = quantity.substr(0, to + 5);
  }
  is_ratio_ = quantity == "ratio" || quantity.ends_with(".ratio");
  if (is_ratio_) quantity.remove_suffix(std::min<std::size_t>(quantity.size(), 6));
  if ((quantity.empty() && !is_ratio_) || (!rival_.empty() && !is_ratio_)) refuse_form();
  place_ = quantity;
}

bool Condition::is_beyond(double value) const noexcept {
  switch (operator_) {
    case Operator::above: return value > limit_;
    case Operator::at_least: return value >= limit_;
    case Operator::below: return value < limit_;
    case Operator::at_most: return value <= limit_;
  }
  return false;
}

bool Condition::names(const Reading& reading, std::string_view ratio_metric) const {
  if (reading.rival.empty() == is_ratio_) return false;
  for (const auto& x : forms_of(reading.x)) {
    for (const bool with_benchmark : {false, true}) {
      for (const bool with_label : {false, true}) {
        std::string name;
        if (with_benchmark) name = reading.benchmark;
        if (with_label) append_part(name, reading.label);
        append_part(name, x);
        if (is_ratio_ && reading.metric == ratio_metric && name == place_) return true;
        append_part(name, reading.metric);
        if (name == place_) return true;
      }
    }
  }
  return false;
}

std::vector<const Reading*> Condition::named(const std::vector<Reading>& readings) const {
  std::vector<const Reading*> named;
  std::string_view benchmark, ratio_metric;
  for (const auto& reading : readings) {
    if (reading.benchmark != benchmark) ratio_metric = {};
    benchmark = reading.benchmark;
    if (ratio_metric.empty() && !reading.rival.empty()) ratio_metric = reading.metric;
    if (!names(reading, ratio_metric)) continue;
    if (!is_ratio_) {
      named.push_back(&reading);
      continue;
    }
    const auto rival = split_network(reading.rival).system;
    if (rival_.empty() ? !is_rival(rival) : !is_called(rival, rival_)) continue;
    const auto same =
        std::ranges::find_if(named, [&](const Reading* other) { return is_of_same_place(*other, reading); });
    if (same == named.end()) {
      named.push_back(&reading);
    } else if (reading.better == Better::high ? reading.value < (*same)->value : reading.value > (*same)->value) {
      *same = &reading;  // the better rival
    }
  }
  return named;
}

void Condition::refuse(const std::vector<Reading>& readings) const {
  std::vector<std::string> known;
  std::vector<std::string> rivals;
  const auto add = [](std::vector<std::string>& names, std::string name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  };
  for (const auto& reading : readings) {
    if (reading.rival.empty() == is_ratio_) continue;
    const auto name = fmt::format("{}.{}.{}.{}", reading.benchmark, reading.label, reading.x, reading.metric);
    add(known, is_ratio_ ? name + ".ratio" : name);
    if (is_ratio_) add(rivals, std::string(split_network(reading.rival).system));
  }
  if (known.empty()) {
    throw SetupError(fmt::format("--fail-if '{}': no {} was measured{}", text_, is_ratio_ ? "ratio" : "value of tonari",
                                 is_ratio_ ? "; give --rival" : ""));
  }
  const auto is_meant = [&](const std::string& rival) { return is_called(rival, rival_); };
  if (!rival_.empty() && std::ranges::none_of(rivals, is_meant)) {
    throw SetupError(fmt::format("--fail-if '{}': no rival that was measured is called '{}'; there are {}", text_,
                                 rival_, fmt::join(rivals, ", ")));
  }
  const auto wanted = !is_ratio_ ? place_ : place_.empty() ? "ratio" : place_ + ".ratio";
  std::ranges::stable_sort(known, {}, [&](const std::string& name) { return edit_distance(wanted, name); });
  known.resize(std::min<std::size_t>(known.size(), 3));
  throw SetupError(fmt::format("--fail-if '{}': nothing that was measured is called {}; the nearest names are '{}'",
                               text_, wanted, fmt::join(known, "', '")));
}

Condition::Judgement Condition::judge(const std::vector<Reading>& readings) const {
  const auto all = named(readings);
  if (all.empty()) refuse(readings);
  Judgement judgement;
  std::string lines;
  for (const auto* const reading : all) {
    const bool low_is_beyond = is_beyond(reading->low.value_or(reading->value));
    const bool high_is_beyond = is_beyond(reading->high.value_or(reading->value));
    if (low_is_beyond && high_is_beyond) {
      judgement.is_true = true;
      lines += fmt::format("  true: {}\n", text_of(*reading));
    } else if (low_is_beyond || high_is_beyond) {
      lines += fmt::format("  not decided, the limit is in the interval: {}\n", text_of(*reading));
    }
  }
  judgement.text = fmt::format("\nfail-if {}: {} ({} quantit{})\n{}", text_, judgement.is_true ? "TRUE" : "false",
                               all.size(), all.size() == 1 ? "y" : "ies", lines);
  return judgement;
}

CLI::Option* add_fail_if(CLI::App& command, std::vector<Condition>& conditions) {
  return command
      .add_option_function<std::vector<std::string>>(
          "--fail-if",
          [&conditions](const std::vector<std::string>& texts) {
            for (const auto& text : texts) conditions.emplace_back(text);
          },
          "End with status 3 if this is true of what was measured. QUANTITY is [BENCHMARK.][CASE.][X.]METRIC, a median "
          "of tonari, or the same with .ratio, which is to the best rival, or .ratio to RIVAL; without METRIC it is "
          "that of the first table. Parts that are left out mean all. True means: with the whole interval, if there "
          "are enough rounds for one. May be repeated")
      ->type_name("'QUANTITY > NUMBER'")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
}

bool tell_conditions(const std::vector<Condition>& conditions, const std::vector<Reading>& readings) {
  std::string text;
  bool is_true = false;
  for (const auto& condition : conditions) {
    const auto judgement = condition.judge(readings);
    is_true |= judgement.is_true;
    text += judgement.text;
  }
  fmt::print("{}", text);
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "standard output");
  return is_true;
}

}  // namespace tonari::bench::driver
