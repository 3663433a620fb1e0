#pragma once

#include "cli/launch.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace tonari::cli {

/// Where a library lies that tonari loads into programs. Throws SetupError where it is not installed.
std::string preload_path(std::string_view name);

/// What LD_PRELOAD is to be, so that `path` comes first of those that `before` has.
std::string with_preload(const std::string& path, std::string_view before);

/// What LD_PRELOAD is to be for ranks whose system calls would fail on shared memory that is not there: those of
/// ordinary users, where there are copies of it. Nothing for all others. Throws SetupError.
std::optional<std::string> preload_of_ranks(const LaunchOptions& options);

}  // namespace tonari::cli
