#pragma once

#include "cli/launch.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace tonari::cli {

/// Returns the path of a library that tonari loads into programs. Throws SetupError if it is not installed.
std::string preload_path(std::string_view name);

/// Returns the path of jemalloc's library. Throws SetupError if it is not installed.
std::string path_of_jemalloc();

/// Returns a value for LD_PRELOAD: `path`, then the libraries of `before`.
std::string with_preload(const std::string& path, std::string_view before);

/// Returns a value for LD_PRELOAD, if system calls of the ranks would fail on shared pages that are not present: ranks
/// of ordinary users in jobs that keep copies of shared pages. Empty for all others. Throws SetupError.
std::optional<std::string> preload_of_ranks(const LaunchOptions& options);

}  // namespace tonari::cli
