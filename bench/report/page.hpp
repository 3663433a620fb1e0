#pragma once

#include "report/changes.hpp"
#include "report/charts.hpp"
#include "report/model.hpp"
#include "report/overview.hpp"
#include "report/papers.hpp"

#include <optional>
#include <string>
#include <vector>

namespace tonari::bench::report {

/// A report of one benchmark, with its charts.
struct Section {
  Report report;
  std::string id;
  std::vector<Chart> charts;
};

/// Everything that a page or another form of output contains.
struct Content {
  std::vector<Section> sections;
  std::optional<std::vector<Change>> changes;  ///< With --compare.
  std::vector<PaperView> papers;               ///< Papers of which something was measured.
};

Content content_of(std::vector<Report> reports);

/// Returns one entry per benchmark and metric with a rival.
std::vector<Standing> standings_of(const Content& content);

/// Tables that all forms of output share. An overview has one row per benchmark and metric with a rival.
Table overview_table(const Content& content);
Table verdict_table(const std::vector<Verdict>& verdicts);
/// `beyond_noise` selects the changes whose interval excludes 1, or the others.
Table change_table(const std::vector<Change>& changes, bool beyond_noise);

/// Returns the sections of the papers, as Markdown.
std::string markdown_of(const std::vector<PaperView>& papers);

/// Returns the command that measures the same again: the user's own without --json. If the file does not have it, one
/// made of the parameters: "tonari bench pingpong --rounds 3 --rival openmpi-default".
std::string command_of(const Report& report);

/// Returns the reports of the sections. They live as long as the content.
std::vector<const Report*> reports_of(const Content& content);

/// Writers of whole documents. The page contains `script`, which draws its charts; if that is empty, they are plain.
std::string write_html(const Content& content, const std::string& script);
std::string write_csv(const Content& content);
std::string write_markdown(const Content& content);
std::string write_gnuplot(const Content& content);

}  // namespace tonari::bench::report
