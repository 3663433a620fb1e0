#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace tonari::cli {

/// Returns pairs of name and text: processor, cores, caches, memory, kernel.
std::vector<std::pair<std::string, std::string>> describe_machine();

/// A feature of the system that tonari uses.
struct Feature {
  std::string name;
  bool works;
  std::string text;  ///< A detail if it works; otherwise the cost of doing without it, and the remedy.
};

/// Tests each feature, as far as that is possible.
std::vector<Feature> check_features();

/// Tell which functions the MPI front supports: `tonari info --mpi`.
nlohmann::ordered_json mpi_as_json();
void print_mpi();

}  // namespace tonari::cli
