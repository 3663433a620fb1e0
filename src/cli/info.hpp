#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tonari::cli {

/// The machine, as pairs of name and text: processor, cores, caches, memory, kernel.
std::vector<std::pair<std::string, std::string>> describe_machine();

/// Something of the system that tonari uses.
struct Feature {
  std::string name;
  bool works;
  std::string text;  ///< A detail when it works; else what its lack costs, and the remedy.
};

/// Tries each, as far as it can be tried.
std::vector<Feature> check_features();

}  // namespace tonari::cli
