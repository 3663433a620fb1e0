#pragma once

#include "report/model.hpp"

#include <string>
#include <vector>

namespace tonari::bench::report {

/// Reads reports of `tonari bench`: each file of `paths`, and each *.json of each folder, in the order of their names.
/// Throws SetupError, which names the file, if one is no report of version 2, or if a folder has none.
std::vector<Report> load(const std::vector<std::string>& paths);

}  // namespace tonari::bench::report
