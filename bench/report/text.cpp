#include "report/text.hpp"

#include "driver/results.hpp"

#include <fmt/format.h>

#include <cmath>

namespace tonari::bench::report {

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    switch (letter) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&#39;"; break;
      default: escaped += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
    }
  }
  return escaped;
}

std::string format_x(std::string_view name, double x) {
  if (name.starts_with("bytes") && x >= 0 && x == std::floor(x)) return driver::format_bytes(x);
  return fmt::format("{:g}", x);
}

std::string format_named_x(std::string_view name, double x) {
  return name == "bytes" ? format_x(name, x) : fmt::format("{} {}", name, format_x(name, x));
}

std::string format_ratio(double ratio, const std::optional<double>& low, const std::optional<double>& high) {
  const auto number = driver::format_number;
  if (!low || !high) return number(ratio) + "x";
  return fmt::format("{}x [{}, {}]", number(ratio), number(*low), number(*high));
}

std::string plain_name(std::string_view text) {
  std::string name;
  for (const char letter : text) {
    const bool is_plain =
        (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
    if (is_plain) {
      name += letter;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

}  // namespace tonari::bench::report
