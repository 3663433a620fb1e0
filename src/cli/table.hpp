#pragma once

#include <string>
#include <vector>

namespace tonari::cli {

/// Rows of text in columns as wide as their widest entry. The first row is the heading; entries that begin with a digit
/// are set to the right, as is their heading.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace tonari::cli
