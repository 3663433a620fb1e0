#include "driver/findings.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

namespace tonari::bench::driver {

namespace {

namespace fs = std::filesystem;

std::optional<double> optional_number(const nlohmann::json& object, const char* key) {
  if (!object.contains(key)) return std::nullopt;
  return object.at(key).get<double>();
}

Quantity quantity_from(const nlohmann::json& said) {
  Quantity quantity{said.value("system", "tonari"), said.at("case"), said.at("metric")};
  const std::string statistic = said.value("statistic", "median");
  if (statistic == "deviation") {
    quantity.statistic = Quantity::Statistic::deviation;
  } else if (statistic == "maximum") {
    quantity.statistic = Quantity::Statistic::maximum;
  } else if (statistic != "median") {
    throw SetupError(statistic + " is no statistic");
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

Finding finding_from(const nlohmann::json& said, const std::string& paper) {
  Finding finding{said.at("says"),
                  paper,
                  said.at("section"),
                  quantity_from(said.at("ours")),
                  std::nullopt,
                  optional_number(said, "constant"),
                  {optional_number(said, "above"), optional_number(said, "below")},
                  optional_number(said, "printed")};
  if (said.contains("against")) finding.against = quantity_from(said.at("against"));
  if (!finding.claim.low && !finding.claim.high) throw SetupError("a finding has neither 'above' nor 'below'");
  return finding;
}

}  // namespace

std::vector<Finding> findings_of(std::string_view question, const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<Finding> findings;
  for (const auto& file : files) {
    try {
      std::ifstream text(file);
      const auto paper = nlohmann::json::parse(text);
      for (const auto& said : paper.at("findings")) {
        if (said.at("benchmark") == question) findings.push_back(finding_from(said, paper.at("paper")));
      }
    } catch (const std::exception& error) {
      throw SetupError(
          fmt::format("{} is no list of a paper's findings ({}); install tonari again", file.string(), error.what()));
    }
  }
  return findings;
}

fs::path papers_folder() { return fs::read_symlink("/proc/self/exe").parent_path() / "papers"; }

}  // namespace tonari::bench::driver
