#pragma once

#include "report/charts.hpp"

#include <string>

namespace tonari::bench::report {

/// Draws a chart as SVG. Its colours are of the classes c0 to c7, whose style is `svg_style`; shapes differ, too.
std::string draw_svg(const Chart& chart);

/// Returns the same as a complete file, with its style for light and dark.
std::string draw_svg_file(const Chart& chart);

/// The style of such charts, in light and dark.
extern const char* const svg_style;

}  // namespace tonari::bench::report
