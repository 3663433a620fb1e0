#include "cli/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace tonari::cli {

namespace {

struct Column {
  std::size_t width = 0;
  bool numbers = true;
};

std::vector<Column> measure(const std::vector<std::vector<std::string>>& rows) {
  std::vector<Column> columns;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    columns.resize(std::max(columns.size(), rows[row].size()));
    for (std::size_t i = 0; i < rows[row].size(); ++i) {
      const std::string& entry = rows[row][i];
      columns[i].width = std::max(columns[i].width, entry.size());
      const bool is_number = !entry.empty() && (entry[0] == '-' || (entry[0] >= '0' && entry[0] <= '9'));
      if (row > 0 && !is_number) columns[i].numbers = false;
    }
  }
  return columns;
}

}  // namespace

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  const std::vector<Column> columns = measure(rows);
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto width = columns[i].width;
      line += columns[i].numbers ? fmt::format("{:>{}}  ", row[i], width) : fmt::format("{:<{}}  ", row[i], width);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace tonari::cli
