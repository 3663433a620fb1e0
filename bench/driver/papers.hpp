#pragma once

#include "driver/exhibits.hpp"
#include "driver/findings.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

// The five papers as files of data: bench/papers/*.json (bench/papers.schema.json).

namespace tonari::bench::driver {

struct Paper {
  std::string name;   ///< "LHS"
  std::string title;  ///< Authors and subject.
  std::vector<Exhibit> exhibits;
  std::vector<Finding> findings;
  std::vector<Unjudged> unjudged;
};

/// Reads all files of the folder, in the order of their names. Throws SetupError, which names the file, on a file that
/// has another form, and on a folder without files.
std::vector<Paper> read_papers(const std::filesystem::path& folder);

/// Returns the findings of all papers that concern a benchmark. Throws as read_papers().
std::vector<Finding> findings_of(std::string_view question, const std::filesystem::path& folder);

/// Returns the folder of the papers' data: libexec/tonari/papers, in the build tree and installed.
std::filesystem::path papers_folder();

}  // namespace tonari::bench::driver
