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
  for (const auto& round : found->second) all.insert(all.end(), round.begin(), round.end());
  return all;
}

std::vector<Line> Series::lines() const {
  std::vector<Line> lines;
  const auto rounds = points.empty() ? 0 : points.begin()->second.size();
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<Point> medians;
    for (const auto& [x, samples] : points) {
      if (round < samples.size()) medians.push_back({x, summarize(samples[round]).median});
    }
    if (const auto line = fit_line(medians)) lines.push_back(*line);
  }
  return lines;
}

void Results::begin_worker(std::string note) {
  system_.clear();
  note_ = std::move(note);
  progress_.clear();
  done_ = false;
}

void Results::take(std::string_view line) try {
  const auto said = nlohmann::json::parse(line);
  if (said.contains("system")) {
    system_ = said["system"];
    progress_ = system_;
    if (std::ranges::find(systems_, system_) == systems_.end()) systems_.push_back(system_);
  } else if (said.contains("series")) {
    add(name_from(system_, said["series"]), said["at"], said["samples"]);
    progress_ = progress_of(said["series"], said["at"]);
  } else if (said.contains("check")) {
    // Workers write NaN as null.
    const double value = said["value"].is_null() ? std::nan("") : said["value"].get<double>();
    checks_.push_back({value, said["bound"]});
    if (!std::isnan(value)) add(name_from(system_, said["check"]), said["at"], {value});
  } else if (said.contains("parameter")) {
    auto& known = parameters_[note_.empty() ? system_ : system_ + " " + note_];
    for (const auto& [key, value] : said["parameter"].items()) known[key] = value;
  } else if (said.contains("done")) {
    done_ = true;
  }
} catch (const nlohmann::json::exception& error) {
  throw SetupError(fmt::format("a worker wrote a line that is no result ({}): {}", error.what(), line.substr(0, 200)));
}

void Results::add(const SeriesName& name, double x, std::vector<double> samples) {
  auto found = std::ranges::find(series_, name, &Series::name);
  if (found == series_.end()) found = series_.insert(found, {name, {}});
  found->points[x].push_back(std::move(samples));
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

nlohmann::ordered_json Results::series_as_json() const {
  auto all = nlohmann::ordered_json::array();
  for (const auto& [name, points] : series_) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& [x, rounds] : points) {
      std::vector<double> samples;
      for (const auto& round : rounds) samples.insert(samples.end(), round.begin(), round.end());
      const auto said = summarize(samples);
      list.push_back({{"x", plain_number(x)},
                      {"min", said.min},
                      {"median", said.median},
                      {"p99", said.p99},
                      {"max", said.max},
                      {"mean", said.mean},
                      {"stddev", said.stddev},
                      {"n", said.n},
                      {"samples", thin_out(samples, samples_max)}});
    }
    all.push_back({{"system", name.system},
                   {"case", name.label},
                   {"metric", name.metric},
                   {"unit", name.unit},
                   {"x", name.x},
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
