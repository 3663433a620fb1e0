#pragma once

#include "far/control.hpp"

#include <string>

namespace tonari::cli {

/// Returns the statistics as several lines, without a final newline.
std::string statistics_text(const far::Statistics& statistics);
/// Returns the statistics as one line of JSON.
std::string statistics_as_json(const far::Statistics& statistics);
/// Returns one line: the state now, and the changes since `before`, one second earlier.
std::string progress_text(const far::Statistics& now, const far::Statistics& before);

}  // namespace tonari::cli
