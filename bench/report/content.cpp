#include "report/page.hpp"

#include "driver/comparing.hpp"
#include "driver/results.hpp"
#include "report/overview.hpp"
#include "report/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tonari::bench::report {

namespace {

/// "openmpi-4.1.4 thread-multiple" is the rival openmpi-mt.
std::string rival_of(const std::string& system) {
  for (const auto* const mpi : {"openmpi", "mpich"}) {
    if (!system.starts_with(mpi)) continue;
    return fmt::format("{}-{}", mpi, system.ends_with("thread-multiple") ? "mt" : "default");
  }
  return system.substr(0, system.find(' '));
}

bool is_safe_in_a_shell(const std::string& word) {
  return !word.empty() &&
         word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+,:/=%@") ==
             std::string::npos;
}

/// Returns whether a page can show the word as code, and a terminal can take it.
bool is_printable(const std::string& word) {
  return std::ranges::none_of(
      word, [](unsigned char letter) { return letter < ' ' || letter == 0x7f || letter == '<' || letter == '`'; });
}

/// Returns the word as a shell reads it.
std::string quoted(const std::string& word) {
  if (is_safe_in_a_shell(word)) return word;
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

/// Returns the command of the run, without its output file. Empty if the file has none that can be printed.
std::string stored_command(const Report& report) {
  const auto& words = report.command;
  if (words.size() < 2 || words.front() != "bench" || !std::ranges::all_of(words, is_printable)) return "";
  std::string command = "tonari";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--json") {
      ++i;
    } else if (!words[i].starts_with("--json=")) {
      command += " " + quoted(words[i]);
    }
  }
  return command;
}

}  // namespace

Content content_of(std::vector<Report> reports) {
  Content content;
  for (auto& report : reports) {
    Section section;
    section.id = fmt::format("question-{}", content.sections.size() + 1);
    section.charts = charts_of(report, fmt::format("{}-{}", section.id, plain_name(report.benchmark)));
    section.report = std::move(report);
    content.sections.push_back(std::move(section));
  }
  return content;
}

std::vector<Standing> standings_of(const Content& content) {
  std::vector<Standing> all;
  for (const auto& section : content.sections) {
    const auto of_section = standings({section.report});
    all.insert(all.end(), of_section.begin(), of_section.end());
  }
  return all;
}

std::vector<const Report*> reports_of(const Content& content) {
  std::vector<const Report*> reports;
  for (const auto& section : content.sections) reports.push_back(&section.report);
  return reports;
}

Table overview_table(const Content& content) {
  Table table{.caption = "tonari divided by the best rival of each case",
              .head = {"question", "metric", "geometric mean", "interval", "range", "tonari is", "comparisons"},
              .rows = {}};
  for (const auto& one : standings_of(content)) {
    const auto number = driver::format_number;
    const auto same = one.compared - one.better - one.worse;
    table.rows.push_back(
        {one.benchmark,
         fmt::format("{} ({} is better)", one.metric, one.better_values == driver::Better::high ? "high" : "low"),
         number(one.ratio) + "x",
         one.low ? fmt::format("{} to {}", number(*one.low), number(*one.high)) : "too few rounds",
         fmt::format("{} to {}", number(one.ratio_min), number(one.ratio_max)),
         fmt::format("better in {}, worse in {}, not seen to differ in {}", one.better, one.worse, same),
         fmt::to_string(one.compared)});
  }
  return table;
}

Table verdict_table(const std::vector<Verdict>& verdicts) {
  Table table{.caption = "Findings of the papers on this machine",
              .head = {"finding", "paper", "verdict", "measured", "the paper's ratio"},
              .rows = {}};
  for (const auto& one : verdicts) {
    table.rows.push_back({one.finding, fmt::format("{}, {}", one.paper, one.section), one.outcome,
                          format_ratio(one.ratio, one.low, one.high) + (one.at.empty() ? "" : ", " + one.at),
                          one.printed ? driver::format_number(*one.printed) + "x" : "-"});
  }
  return table;
}

Table change_table(const std::vector<Change>& changes, bool beyond_noise) {
  Table table{.caption = beyond_noise ? "Changed beyond noise" : "No change seen",
              .head = {"question", "metric", "case", "x", "new / old", "tonari is"},
              .rows = {}};
  for (const auto& one : changes) {
    if (one.differs() != beyond_noise) continue;
    const bool is_better = (one.ratio > 1) == (one.better_values == driver::Better::high);
    const auto* const judged = one.better_values == driver::Better::neither ? "different"
                               : is_better                                  ? "better"
                                                                            : "worse";
    const auto* const open = one.low ? "no difference seen" : "not decided: one round";
    table.rows.push_back({one.benchmark, one.metric, one.label, one.x, format_ratio(one.ratio, one.low, one.high),
                          beyond_noise ? judged : open});
  }
  return table;
}

std::string command_of(const Report& report) {
  if (auto stored = stored_command(report); !stored.empty()) return stored;
  if (!is_safe_in_a_shell(report.benchmark)) return "(unknown: the file does not name a benchmark of tonari)";
  auto command = "tonari bench " + report.benchmark;
  const auto& parameters = report.parameters;
  if (const auto quick = parameters.find("quick"); quick != parameters.end() && *quick == true) command += " --quick";
  if (const auto rounds = parameters.find("rounds"); rounds != parameters.end() && rounds->is_number()) {
    command += fmt::format(" --rounds {}", rounds->get<int>());
  }
  std::vector<std::string> rivals;
  for (const auto& series : report.series) {
    const auto name = series.system == "tonari-mpi" ? series.system : rival_of(series.system);
    if (driver::is_reference(series.system) && name != "tonari-mpi") continue;
    if (is_safe_in_a_shell(name) && name != "local" && std::ranges::find(rivals, name) == rivals.end()) {
      rivals.push_back(name);
    }
  }
  if (!rivals.empty()) command += fmt::format(" --rival {}", fmt::join(rivals, ","));
  return command;
}

}  // namespace tonari::bench::report
