#pragma once

#include "job/arena.hpp"

#include <string>

namespace tonari::cli {

/// A table of every rank's counters, a line a rank.
std::string statistics_table(const job::Arena& arena);

}  // namespace tonari::cli
