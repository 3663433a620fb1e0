#include "report/page.hpp"
#include "report/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tonari::bench::report {

namespace {

std::string escape_markdown(std::string_view text) {
  std::string escaped;
  for (const char letter : escape_html(text)) {
    if (std::string_view("|`*_[]\\").find(letter) != std::string_view::npos) escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

std::string markdown_row(const std::vector<std::string>& row) {
  std::string text = "|";
  for (const auto& cell : row) text += " " + escape_markdown(cell) + " |";
  return text + "\n";
}

std::string markdown_table(const Table& table) {
  if (table.rows.empty()) return "None.\n\n";
  auto text = markdown_row(table.head) + "|";
  for (std::size_t i = 0; i < table.head.size(); ++i) text += "---|";
  text += "\n";
  for (const auto& row : table.rows) text += markdown_row(row);
  return text + "\n";
}

}  // namespace

std::string markdown_of(const std::vector<PaperView>& papers) {
  std::string text;
  for (const auto& paper : papers) {
    text += fmt::format("## {}\n\n{}\n\n", escape_markdown(paper.name), escape_markdown(paper.title));
    if (!paper.note.empty()) text += escape_markdown(paper.note) + "\n\n";
    for (const auto& exhibit : paper.exhibits) {
      text += fmt::format("### {}, {}\n\n", escape_markdown(paper.name), escape_markdown(exhibit.table.caption));
      text += markdown_table(exhibit.table);
      for (const auto& note : exhibit.notes) text += escape_markdown(note) + "\n\n";
    }
    if (!paper.not_measured.empty()) text += fmt::format("Not measured: {}\n\n", fmt::join(paper.not_measured, ", "));
    for (const auto* table : {&paper.verdicts, &paper.unjudged}) {
      if (table->rows.empty()) continue;
      text += fmt::format("### {}\n\n", escape_markdown(table->caption)) + markdown_table(*table);
    }
  }
  return text;
}

std::string write_markdown(const Content& content) {
  auto text = "# tonari: measurements\n\n## Overview\n\n" + markdown_table(overview_table(content));
  if (const auto verdicts = count_verdicts(content.papers); !verdicts.rows.empty()) {
    text += fmt::format("### {}\n\n", verdicts.caption) + markdown_table(verdicts);
  }
  if (content.changes) {
    for (const bool beyond_noise : {true, false}) {
      const auto table = change_table(*content.changes, beyond_noise);
      text += fmt::format("## {}\n\n", table.caption) + markdown_table(table);
    }
  }
  text += markdown_of(content.papers);
  for (const auto& section : content.sections) {
    const auto& report = section.report;
    text += fmt::format("## {}\n\n    {}\n\n", escape_markdown(name_of_run(report)), command_of(report));
    for (const auto& reason : report.unfit) {
      text += fmt::format("Unfit for measurements: {}\n\n", escape_markdown(reason));
    }
    for (const auto& failed : report.failed) {
      text += fmt::format("Not measured: {}: {}\n\n", escape_markdown(failed.system), escape_markdown(failed.cause));
    }
    if (!report.verdicts.empty()) text += "### Verdicts\n\n" + markdown_table(verdict_table(report.verdicts));
    for (const auto& chart : section.charts) {
      text += fmt::format("### {}\n\n", escape_markdown(chart.title)) + markdown_table(chart.table);
    }
  }
  return text;
}

}  // namespace tonari::bench::report
