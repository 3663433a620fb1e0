#pragma once

#include "far/control.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

namespace tonari::cli {

/// Accepts the value of --local: a share of 1% to 100%, or a size of at least 1 MiB.
CLI::Validator share_or_size();
/// Returns the limit that an accepted value means.
far::Limit limit_of(std::string text);
/// Returns a value for limit_of().
std::string text_of(const far::Limit& limit);

/// Throws SetupError if this host has less memory than a server is to lend.
void check_lendable(std::uint64_t bytes);

}  // namespace tonari::cli
