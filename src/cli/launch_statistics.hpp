#pragma once

#include "job/arena.hpp"

#include <string>

namespace tonari::cli {

/// Returns a table of all counters, with one line per rank.
std::string statistics_table(const job::Arena& arena);

}  // namespace tonari::cli
