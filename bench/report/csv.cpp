#include "report/page.hpp"

#include <fmt/format.h>

#include <string_view>

namespace tonari::bench::report {

namespace {

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string field = "\"";
  for (const char letter : text) field += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return field + "\"";
}

std::string number_or_empty(const std::optional<double>& number) { return number ? fmt::format("{}", *number) : ""; }

}  // namespace

std::string write_csv(const Content& content) {
  std::string csv = "benchmark,system,case,metric,unit,x_name,x,n,min,median,p99,max,mean,stddev,low,high\n";
  for (const auto& section : content.sections) {
    for (const auto& series : section.report.series) {
      for (const auto& point : series.points) {
        csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(section.report.benchmark),
                           csv_field(series.system), csv_field(series.label), csv_field(series.metric),
                           csv_field(series.unit), csv_field(series.x), point.x, point.n, point.min, point.median,
                           point.p99, point.max, point.mean, point.stddev, number_or_empty(point.low),
                           number_or_empty(point.high));
      }
    }
  }
  return csv;
}

}  // namespace tonari::bench::report
