#pragma once

#include "driver/papers.hpp"
#include "report/charts.hpp"
#include "report/model.hpp"

#include <string>
#include <vector>

// The papers' tables and figures with their printed numbers beside measured ones.

namespace tonari::bench::report {

/// A table or figure of a paper. The table has, per row, the paper's number and ours, and both divided by the row that
/// the exhibit compares with, since machines of different decades differ less in ratios than in numbers.
struct ExhibitView {
  Table table;
  std::vector<std::string> notes;  ///< Sentences for below the table.
  bool is_measured = false;        ///< A row has a number of ours.
  bool can_be_measured = false;    ///< A row names a quantity of ours.
};

struct PaperView {
  std::string id;  ///< "paper-lhs"
  std::string name;
  std::string title;
  std::string note;  ///< A sentence about the runs, or empty.
  std::vector<ExhibitView> exhibits;
  Table verdicts;                         ///< One row per finding and report that judges it.
  Table unjudged;                         ///< Findings that no benchmark can judge here. It may have no rows.
  std::vector<std::string> not_measured;  ///< Captions of exhibits that are left out.
};

/// Sets a paper's exhibit beside the reports.
ExhibitView view_of(const driver::Exhibit& exhibit, const std::vector<const Report*>& reports);

/// Sets the papers beside the reports. Unless `all`, exhibits of which nothing was measured are only named, and papers
/// of which nothing was measured or judged are left out.
std::vector<PaperView> papers_beside(const std::vector<driver::Paper>& papers,
                                     const std::vector<const Report*>& reports, bool all);

/// Returns how many findings of each paper hold, and how many do not. A finding that several reports judge counts for
/// each of them.
Table count_verdicts(const std::vector<PaperView>& papers);

/// Returns the tables for a terminal.
std::string tell_papers(const std::vector<PaperView>& papers);

/// Reads these files of results, writes the papers' tables as Markdown to `markdown`, and returns them for a terminal.
/// Throws SetupError as load() and write_whole() do.
std::string tell_papers_of(const std::vector<std::string>& files, const std::string& markdown, bool all);

}  // namespace tonari::bench::report
