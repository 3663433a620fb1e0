#pragma once

#include <string>
#include <vector>

namespace tonari::cli {

/// Returns rows of text in columns as wide as their widest entry. The first row is the heading. A column is aligned to
/// the right if all its entries below the heading begin with a digit or '-'.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace tonari::cli
