#pragma once

#include "far/control.hpp"

#include <CLI/CLI.hpp>

#include <string>

namespace tonari::cli {

/// Accepts the value of --local: a share of 1% to 100%, or a size of at least 1 MiB.
CLI::Validator share_or_size();
/// Returns the limit that an accepted value means.
far::Limit limit_of(std::string text);
/// Returns a value for limit_of().
std::string text_of(const far::Limit& limit);

}  // namespace tonari::cli
