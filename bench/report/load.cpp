#include "report/load.hpp"

#include "base/error.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tonari::bench::report {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::optional<double> number_or_nothing(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return std::nullopt;
  return found->get<double>();
}

std::string text(const Json& json, const char* name) { return json.at(name).get<std::string>(); }

Point point_of(const Json& json) {
  const auto number = [&](const char* name) { return json.at(name).get<double>(); };
  const driver::Summary summary{.min = number("min"),
                                .median = number("median"),
                                .p99 = number("p99"),
                                .max = number("max"),
                                .mean = number("mean"),
                                .stddev = number("stddev"),
                                .n = json.at("n").get<std::size_t>()};
  Point point{summary,
              number("x"),
              {},
              {},
              json.at("rounds").get<std::vector<double>>(),
              json.at("samples").get<std::vector<double>>()};
  if (const auto interval = json.find("interval"); interval != json.end()) {
    point.low = interval->at(0).get<double>();
    point.high = interval->at(1).get<double>();
  }
  return point;
}

driver::Better better_of(const Json& json) {
  const auto word = json.value("better", "none");
  return word == "low" ? driver::Better::low : word == "high" ? driver::Better::high : driver::Better::neither;
}

Series series_of(const Json& json) {
  Series series{.system = text(json, "system"),
                .label = text(json, "case"),
                .metric = text(json, "metric"),
                .unit = text(json, "unit"),
                .x = text(json, "x"),
                .better = better_of(json),
                .points = {}};
  for (const auto& point : json.at("points")) series.points.push_back(point_of(point));
  std::ranges::sort(series.points, {}, &Point::x);
  return series;
}

Compared compared_of(const Json& json, const std::vector<Series>& all) {
  Compared compared{.system = text(json, "system"),
                    .with = text(json, "with"),
                    .label = text(json, "case"),
                    .metric = text(json, "metric"),
                    .better = {},
                    .x = json.at("x").get<double>(),
                    .ratio = json.at("ratio").get<double>(),
                    .low = number_or_nothing(json, "low"),
                    .high = number_or_nothing(json, "high"),
                    .differs = json.at("differs").get<bool>()};
  const auto is_compared = [&](const Series& series) {
    return series.system == compared.system && series.label == compared.label && series.metric == compared.metric;
  };
  if (const auto series = std::ranges::find_if(all, is_compared); series != all.end()) compared.better = series->better;
  return compared;
}

Verdict verdict_of(const Json& json) {
  return {.finding = text(json, "finding"),
          .paper = text(json, "paper"),
          .section = text(json, "section"),
          .outcome = text(json, "outcome"),
          .at = json.value("at", ""),
          .ratio = json.at("ratio").get<double>(),
          .low = number_or_nothing(json, "low"),
          .high = number_or_nothing(json, "high"),
          .printed = number_or_nothing(json, "printed")};
}

Report report_of(const Json& json, const std::string& path) {
  Report report;
  report.benchmark = text(json, "benchmark");
  report.file = path;
  report.machine = json.at("machine");
  report.unfit = json.at("unfit").get<std::vector<std::string>>();
  report.command = json.value("command", std::vector<std::string>{});
  report.parameters = json.at("parameters");
  for (const auto& one : json.at("series")) report.series.push_back(series_of(one));
  for (const auto& one : json.at("comparisons")) report.comparisons.push_back(compared_of(one, report.series));
  for (const auto& one : json.at("verdicts")) report.verdicts.push_back(verdict_of(one));
  for (const auto& one : json.at("failed")) report.failed.push_back({text(one, "system"), text(one, "cause")});
  return report;
}

Report load_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw_system_error(fmt::format("cannot read {}", path));
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) throw_system_error(fmt::format("cannot read {}", path));
  const auto json = Json::parse(bytes, nullptr, false);
  if (!json.is_object() || !json.contains("benchmark") || !json.contains("version")) {
    throw SetupError(fmt::format("{}: is no report of tonari bench; give files that --json has written", path));
  }
  if (json["version"] != 2) {
    throw SetupError(
        fmt::format("{}: has version {}, not 2; measure again with this tonari", path, json["version"].dump()));
  }
  try {
    if (!json.at("machine").is_object() || !json.at("parameters").is_object()) {
      throw SetupError(fmt::format("{}: is no complete report: its machine is missing; measure again", path));
    }
    return report_of(json, path);
  } catch (const nlohmann::json::exception& error) {
    throw SetupError(fmt::format("{}: is no complete report: {}; measure again", path, error.what()));
  }
}

std::vector<std::string> files_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".json") files.push_back(entry->path().string());
  }
  if (error) throw_system_error(error.value(), fmt::format("cannot read the folder {}", path));
  if (files.empty()) {
    throw SetupError(fmt::format("{}: the folder has no .json file; `tonari bench all -o {}` fills it", path, path));
  }
  std::ranges::sort(files);
  return files;
}

/// Adds the medians of a series of tonari, each with its ratios.
void add_readings(const Report& report, const Series& series, std::vector<driver::Reading>& readings) {
  const auto [system, network] = driver::split_network(series.system);
  if (system != "tonari") return;
  for (const auto& point : series.points) {
    driver::Reading reading{.benchmark = report.benchmark,
                            .label = series.label,
                            .metric = series.metric,
                            .unit = series.unit,
                            .x_name = series.x,
                            .x = point.x,
                            .network = std::string(network),
                            .better = series.better,
                            .rival = {},
                            .value = point.median,
                            .low = point.low,
                            .high = point.high};
    readings.push_back(reading);
    if (series.better == driver::Better::neither) continue;
    for (const auto& one : report.comparisons) {
      if (one.system != series.system || one.label != series.label || one.metric != series.metric || one.x != point.x ||
          driver::split_network(one.with).network != network) {
        continue;
      }
      reading.rival = one.with;
      reading.value = one.ratio;
      reading.low = one.low;
      reading.high = one.high;
      readings.push_back(reading);
    }
  }
}

}  // namespace

std::vector<driver::Reading> readings_of(const std::vector<Report>& reports) {
  std::vector<driver::Reading> readings;
  for (const auto& report : reports) {
    for (const auto& series : report.series) add_readings(report, series, readings);
  }
  return readings;
}

std::vector<Report> load(const std::vector<std::string>& paths) {
  std::vector<Report> reports;
  for (const auto& path : paths) {
    for (const auto& file : files_of(path)) reports.push_back(load_file(file));
  }
  return reports;
}

}  // namespace tonari::bench::report
