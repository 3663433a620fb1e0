#include "driver/results.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tonari::bench::driver {

namespace {

SeriesName name_from(const std::string& system, const nlohmann::json& said) {
  return {system, said["case"], said["metric"], said["unit"], said["x"]};
}

std::string progress_of(const nlohmann::json& said, double x) {
  const std::string unit = said["x"];
  return fmt::format("{}, {} {}", said["case"].get<std::string>(), unit == "bytes" ? format_bytes(x) : format_number(x),
                     unit == "bytes" ? "" : unit);
}

/// Turns 8.0 into 8.
nlohmann::ordered_json plain_number(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15) return static_cast<std::int64_t>(value);
  return value;
}

}  // namespace

std::vector<double> Series::samples(double x) const {
  std::vector<double> all;
  const auto found = points.find(x);
  if (found == points.end()) return all;
  for (const auto& [round, samples] : found->second) all.insert(all.end(), samples.begin(), samples.end());
  return all;
}

std::vector<double> Series::medians(double x) const {
  std::vector<double> medians;
  const auto found = points.find(x);
  if (found == points.end()) return medians;
  for (const auto& [round, samples] : found->second) medians.push_back(summarize(samples).median);
  return medians;
}

std::map<int, Line> Series::lines(Fit fit) const {
  std::map<int, std::vector<Point>> medians;
  for (const auto& [x, rounds] : points) {
    for (const auto& [round, samples] : rounds) medians[round].push_back({x, summarize(samples).median});
  }
  std::map<int, Line> lines;
  for (const auto& [round, points_of_round] : medians) {
    if (const auto line = fit(points_of_round)) lines.emplace(round, *line);
  }
  return lines;
}

Comparison compare(const Series& ours, const Series& theirs, double x) {
  std::vector<double> our_medians;
  std::vector<double> their_medians;
  const auto our_rounds = ours.points.find(x);
  const auto their_rounds = theirs.points.find(x);
  if (our_rounds == ours.points.end() || their_rounds == theirs.points.end()) return {};
  for (const auto& [round, samples] : our_rounds->second) {
    const auto partner = their_rounds->second.find(round);
    if (partner == their_rounds->second.end()) continue;
    our_medians.push_back(summarize(samples).median);
    their_medians.push_back(summarize(partner->second).median);
  }
  return compare(our_medians, their_medians);
}

void Results::begin_worker(int round, std::string note, bool is_again, std::string suffix) {
  suffix_ = std::move(suffix);
  system_.clear();
  note_ = std::move(note);
  round_ = round;
  is_again_ = is_again;
  progress_.clear();
  done_ = false;
}

void Results::take(std::string_view line) try {
  const auto said = nlohmann::json::parse(line);
  if (said.contains("system")) {
    system_ = said["system"].get<std::string>() + suffix_;
    progress_ = system_;
    if (!is_again_ && std::ranges::find(systems_, system_) == systems_.end()) systems_.push_back(system_);
  } else if (said.contains("series")) {
    add_to(is_again_ ? again_ : series_, round_, name_from(system_, said["series"]), said["at"], said["samples"]);
    progress_ = progress_of(said["series"], said["at"]);
  } else if (said.contains("check")) {
    // Workers write NaN as null.
    const double value = said["value"].is_null() ? std::nan("") : said["value"].get<double>();
    checks_.push_back({value, said["bound"]});
    if (!std::isnan(value)) {
      add_to(is_again_ ? again_ : series_, round_, name_from(system_, said["check"]), said["at"], {value});
    }
  } else if (said.contains("parameter")) {
    auto& known = parameters_[note_.empty() ? system_ : system_ + " " + note_];
    for (const auto& [key, value] : said["parameter"].items()) known[key] = value;
  } else if (said.contains("done")) {
    done_ = true;
  }
} catch (const nlohmann::json::exception& error) {
  throw SetupError(fmt::format("a worker wrote a line that is no result ({}): {}", error.what(), line.substr(0, 200)));
}

void Results::add_to(std::vector<Series>& series, int round, const SeriesName& name, double x,
                     const std::vector<double>& samples) {
  auto found = std::ranges::find(series, name, &Series::name);
  if (found == series.end()) found = series.insert(found, {name, {}, {}});
  auto& all = found->points[x][round];
  all.insert(all.end(), samples.begin(), samples.end());
}

void Results::judge_by(std::span<const Metric> metrics) {
  for (auto* const all : {&series_, &again_}) {
    for (auto& series : *all) series.better = better_of(metrics, series.name.metric);
  }
}

const Series* Results::measured_again(const Series& series) const {
  const auto found = std::ranges::find(again_, series.name, &Series::name);
  return found == again_.end() ? nullptr : &*found;
}

const Series& Results::beside(const SeriesName& name, std::string_view metric) const {
  return *std::ranges::find_if(series_, [&](const Series& series) {
    return series.name.system == name.system && series.name.label == name.label && series.name.metric == metric;
  });
}

double Results::median_beside(const SeriesName& name, std::string_view metric) const {
  const auto& found = beside(name, metric);
  return found.summary(found.points.begin()->first).median;
}

nlohmann::ordered_json Results::as_json(const std::vector<Series>& series) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& [name, points, better] : series) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& [x, rounds] : points) {
      std::vector<double> samples;
      std::vector<double> medians;
      for (const auto& [round, of_round] : rounds) {
        samples.insert(samples.end(), of_round.begin(), of_round.end());
        medians.push_back(summarize(of_round).median);
      }
      const auto said = summarize(samples);
      list.push_back({{"x", plain_number(x)},
                      {"min", said.min},
                      {"median", said.median},
                      {"p99", said.p99},
                      {"max", said.max},
                      {"mean", said.mean},
                      {"stddev", said.stddev},
                      {"n", said.n},
                      {"rounds", medians},
                      {"samples", thin_out(samples, samples_max)}});
      if (const auto interval = bootstrap_median(medians)) {
        list.back()["interval"] = {interval->low, interval->high};
      }
    }
    all.push_back({{"system", name.system},
                   {"case", name.label},
                   {"metric", name.metric},
                   {"unit", name.unit},
                   {"x", name.x},
                   {"better", word_for(better)},
                   {"points", std::move(list)}});
  }
  return all;
}

std::string format_number(double value) {
  if (value == 0) return "0";
  const int digits = static_cast<int>(std::floor(std::log10(std::fabs(value)))) + 1;
  if (digits > 6 || digits < -3) return fmt::format("{:.2e}", value);
  return fmt::format("{:.{}f}", value, std::max(0, 3 - digits));
}

std::string format_bytes(double bytes) {
  static constexpr std::array units{"", " KiB", " MiB", " GiB", " TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && std::fmod(bytes, 1024) == 0 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.0f}{}", bytes, units[unit]);
}

}  // namespace tonari::bench::driver
