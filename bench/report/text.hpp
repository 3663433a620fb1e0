#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tonari::bench::report {

/// Returns the text for an element or an attribute of HTML and SVG: & < > " ' are escaped, control characters replaced.
std::string escape_html(std::string_view text);

/// Returns a value of the x axis: "4 KiB" if x counts bytes.
std::string format_x(std::string_view name, double x);

/// Returns the same with its name where that is needed: "4 KiB", "ranks 2".
std::string format_named_x(std::string_view name, double x);

/// Returns "0.83x", or "0.83x [0.80, 0.86]" with an interval.
std::string format_ratio(double ratio, const std::optional<double>& low, const std::optional<double>& high);

/// Returns the text with only letters, digits and '-', for an id or a file's name.
std::string plain_name(std::string_view text);

}  // namespace tonari::bench::report
