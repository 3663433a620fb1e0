#include "predict/workers.hpp"

#include "cli/standard_streams.hpp"
#include "driver/child.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace tonari::bench::predict {

namespace {

const driver::System ours{driver::Family::tonari, false};

void run_one(const Asked& asked, int round, driver::Results& results) {
  driver::ResultFile file;
  const auto command = driver::command_for(ours, asked.ask, file.path());
  results.begin_worker(round, asked.note, false, asked.note);
  const int status =
      driver::run_child(command, [&] { file.read_lines([&](std::string_view line) { results.take(line); }); });
  if (status == 0 && results.end_worker()) return;
  throw SetupError(fmt::format("the measurement of {} ended with status {}; it was asked: {}", asked.ask.question,
                               status, driver::to_string(command)));
}

}  // namespace

driver::Results run_workers(const std::vector<Asked>& asks, int rounds) {
  const driver::StopSignals signals;
  for (const auto& asked : asks) driver::check_installed(ours, asked.ask);
  driver::Results results;
  for (int round = 1; round <= rounds; ++round) {
    for (const auto& asked : asks) {
      cli::print_stderr("round {} of {}: {}{}\n", round, rounds, asked.ask.question, asked.note);
      run_one(asked, round, results);
    }
  }
  return results;
}

const driver::Series& series_of(const driver::Results& results, const std::string& note, std::string_view label,
                                std::string_view metric) {
  for (const auto& series : results.series()) {
    const auto& name = series.name;
    if (name.system == "tonari" + note && name.label == label && name.metric == metric) return series;
  }
  throw SetupError(fmt::format("the workers have not measured {} of {}{}", metric, label, note));
}

double median_at(const driver::Series& series, double x) {
  auto medians = series.medians(x);
  std::ranges::sort(medians);
  return driver::quantile(medians, 0.5);
}

}  // namespace tonari::bench::predict
