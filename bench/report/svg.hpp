#pragma once

#include "report/charts.hpp"
#include "report/overview.hpp"

#include <string>
#include <vector>

namespace tonari::bench::report {

/// Draws a chart as SVG. Its colours are of the classes c0 to c7, whose style is `svg_style`; shapes differ, too.
std::string draw_svg(const Chart& chart);

/// Draws tonari beside the best rivals: a line per benchmark and metric, with the mean ratio, its interval, and the
/// range. Ratios are drawn so that tonari is better on the left.
std::string draw_overview(const std::vector<Standing>& standings);

/// Returns a drawing as a complete file, with its style for light and dark.
std::string svg_file(std::string svg);

/// The style of such charts, in light and dark.
extern const char* const svg_style;

}  // namespace tonari::bench::report
