// The papers' tables for a terminal, and for papers.md.

#include "cli/table.hpp"
#include "driver/report.hpp"
#include "report/load.hpp"
#include "report/page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tonari::bench::report {

namespace {

constexpr std::size_t text_width = 116;

std::string indented(const std::string& text) {
  std::string lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    lines += "  " + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return lines;
}

/// Breaks a paragraph into lines, each after `indent` spaces, and more from the second on.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string lines;
  std::string line(indent, ' ');
  std::size_t used = indent;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(' ', begin), text.size());
    const auto word = text.substr(begin, end - begin);
    if (line.size() > used && line.size() + 1 + word.size() > text_width) {
      lines += line + "\n";
      used = indent + 2;
      line = std::string(used, ' ');
    }
    line += (line.size() > used ? " " : "") + word;
    begin = end + 1;
  }
  return lines + line + "\n";
}

std::vector<std::vector<std::string>> with_head(const Table& table) {
  auto rows = table.rows;
  rows.insert(rows.begin(), table.head);
  return rows;
}

}  // namespace

std::string tell_papers(const std::vector<PaperView>& papers) {
  std::string text;
  for (const auto& paper : papers) {
    text += fmt::format("\n{} ({})\n", paper.name, paper.title);
    if (!paper.note.empty()) text += wrapped(paper.note, 0);
    for (const auto& exhibit : paper.exhibits) {
      text += fmt::format("\n{}, {}\n", paper.name, exhibit.table.caption);
      text += indented(cli::format_table(with_head(exhibit.table)));
      for (const auto& note : exhibit.notes) text += wrapped(note, 2);
    }
    if (!paper.not_measured.empty()) {
      text += fmt::format("\n{}, not measured: {}\n", paper.name, fmt::join(paper.not_measured, ", "));
    }
    text += fmt::format("\n{}\n", paper.verdicts.caption);
    std::string last;
    for (const auto& row : paper.verdicts.rows) {
      if (row[0] != last) {
        text +=
            wrapped(fmt::format("{} (section {}){}", row[0], row[1], row[4] == "-" ? "" : "; the paper: " + row[4]), 2);
      }
      text += fmt::format("    {}: {}{}\n", row[2], row[3], row[5] == "-" ? "" : " (" + row[5] + ")");
      last = row[0];
    }
    for (const auto& row : paper.unjudged.rows) {
      text += wrapped(fmt::format("{} (section {})", row[0], row[1]), 2);
      text += wrapped("cannot be judged here: " + row[2], 4);
    }
  }
  return text;
}

std::string tell_papers_of(const std::vector<std::string>& files, const std::string& markdown, bool all) {
  const auto reports = load(files);
  std::vector<const Report*> pointers;
  for (const auto& report : reports) pointers.push_back(&report);
  const auto papers = papers_beside(driver::read_papers(driver::papers_folder()), pointers, all);
  if (papers.empty()) return "";
  driver::write_whole(markdown, "# The papers' tables and figures, and this machine\n\n" + markdown_of(papers),
                      "free some space, or give -o another folder");
  return tell_papers(papers);
}

}  // namespace tonari::bench::report
