#pragma once

#include "far/control.hpp"

#include <string>

namespace tonari::cli {

/// Several lines, without the last one's end.
std::string statistics_text(const far::Statistics& statistics);
/// One line.
std::string statistics_as_json(const far::Statistics& statistics);
/// One line: where it is now, and what has happened since `before`, one second ago.
std::string progress_text(const far::Statistics& now, const far::Statistics& before);

}  // namespace tonari::cli
