#include "driver/papers.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>

namespace tonari::bench::driver {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::optional<double> optional_number(const Json& object, const char* key) {
  if (!object.contains(key)) return std::nullopt;
  return object.at(key).get<double>();
}

Quantity::Statistic statistic_from(const std::string& name) {
  using Statistic = Quantity::Statistic;
  static const std::map<std::string, Statistic> known{{"median", Statistic::median},
                                                      {"mean", Statistic::mean},
                                                      {"minimum", Statistic::minimum},
                                                      {"maximum", Statistic::maximum},
                                                      {"deviation", Statistic::deviation}};
  const auto found = known.find(name);
  if (found == known.end()) throw SetupError(name + " is no statistic");
  return found->second;
}

Quantity quantity_from(const Json& said) {
  Quantity quantity{said.value("system", "tonari"), said.at("case"), said.at("metric")};
  quantity.statistic = statistic_from(said.value("statistic", "median"));
  quantity.over = said.value("over", "");
  if (said.contains("near")) {
    quantity.at = Quantity::At::nearest;
    quantity.x = said.at("near").get<double>();
  }
  if (!said.contains("x")) return quantity;
  const auto& x = said.at("x");
  if (x == "first") {
    quantity.at = Quantity::At::first;
  } else if (x != "last") {
    quantity.at = Quantity::At::value;
    quantity.x = x.get<double>();
  }
  return quantity;
}

Finding finding_from(const Json& said, const std::string& paper) {
  Finding finding{said.at("says"),
                  paper,
                  said.at("section"),
                  quantity_from(said.at("ours")),
                  std::nullopt,
                  optional_number(said, "constant"),
                  {optional_number(said, "above"), optional_number(said, "below")},
                  optional_number(said, "printed"),
                  said.at("benchmark"),
                  said.value("needs", "")};
  if (said.contains("against")) finding.against = quantity_from(said.at("against"));
  if (!finding.claim.low && !finding.claim.high) throw SetupError("a finding has neither 'above' nor 'below'");
  return finding;
}

std::optional<Printed> printed_from(const Json& row, const char* key, const char* key_of_said) {
  if (!row.contains(key)) return std::nullopt;
  const auto& said = row.at(key);
  const bool is_range = said.is_array();
  return Printed{(is_range ? said.at(0) : said).get<double>(), (is_range ? said.at(1) : said).get<double>(),
                 row.value(key_of_said, "")};
}

ExhibitRow row_from(const Json& said, const Json& exhibit) {
  ExhibitRow row{.label = said.at("label"),
                 .printed = printed_from(said, "printed", "said"),
                 .unit = said.value("unit", exhibit.value("unit", "")),
                 .relative_to = said.value("relative_to", exhibit.value("relative_to", "")),
                 .printed_ratio = printed_from(said, "printed_ratio", "ratio_said"),
                 .ours = {},
                 .needs = said.value("needs", "")};
  if (said.contains("ours")) {
    const auto& ours = said.at("ours");
    row.ours = Source{ours.at("benchmark"), quantity_from(ours), {}};
    if (ours.contains("with")) row.ours->with = ours.at("with").get<std::map<std::string, std::string>>();
  } else if (row.needs.empty()) {
    throw SetupError(fmt::format("the row '{}' has neither 'ours' nor 'needs'", row.label));
  }
  return row;
}

Exhibit exhibit_from(const Json& said) {
  Exhibit exhibit{
      said.at("name"), said.at("section"), said.at("shows"), said.value("note", ""), said.value("speed_up", false), {}};
  for (const auto& row : said.at("rows")) exhibit.rows.push_back(row_from(row, said));
  for (const auto& row : exhibit.rows) {
    if (row.relative_to.empty() ||
        std::ranges::find(exhibit.rows, row.relative_to, &ExhibitRow::label) != exhibit.rows.end())
      continue;
    throw SetupError(fmt::format("{} has no row '{}'", exhibit.name, row.relative_to));
  }
  return exhibit;
}

Paper paper_from(const Json& said) {
  Paper paper{said.at("paper"), said.at("title"), {}, {}, {}};
  for (const auto& one : said.at("exhibits")) paper.exhibits.push_back(exhibit_from(one));
  for (const auto& one : said.at("findings")) paper.findings.push_back(finding_from(one, paper.name));
  for (const auto& one : said.at("unjudged")) {
    paper.unjudged.push_back({one.at("says"), one.at("section"), one.at("reason")});
  }
  return paper;
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".json") files.push_back(entry->path());
  }
  if (error || files.empty()) {
    throw SetupError(fmt::format("{} has no findings of the papers ({}); install tonari again", folder.string(),
                                 error ? error.message() : "no .json file"));
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::vector<Paper> read_papers(const fs::path& folder) {
  std::vector<Paper> papers;
  for (const auto& file : files_of(folder)) {
    try {
      std::ifstream text(file);
      papers.push_back(paper_from(Json::parse(text)));
    } catch (const std::exception& error) {
      throw SetupError(
          fmt::format("{} does not describe a paper ({}); install tonari again", file.string(), error.what()));
    }
  }
  return papers;
}

std::vector<Finding> findings_of(std::string_view question, const fs::path& folder) {
  std::vector<Finding> findings;
  for (auto& paper : read_papers(folder)) {
    std::ranges::copy_if(paper.findings, std::back_inserter(findings),
                         [&](const Finding& finding) { return finding.benchmark == question; });
  }
  return findings;
}

fs::path papers_folder() { return fs::read_symlink("/proc/self/exe").parent_path() / "papers"; }

}  // namespace tonari::bench::driver
