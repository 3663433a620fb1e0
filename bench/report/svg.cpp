#include "report/svg.hpp"

#include "report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace tonari::bench::report {

const char* const svg_style =
    ".tonari-chart{font:12px sans-serif;color-scheme:light dark}"
    ".tonari-chart text{fill:#222}.tonari-chart .axis{stroke:#777}.tonari-chart .grid{stroke:#ddd}"
    ".tonari-chart .line{fill:none;stroke-width:2}.tonari-chart .band{opacity:.15;stroke:none}"
    ".c0{stroke:#0072b2;fill:#0072b2}.c1{stroke:#d55e00;fill:#d55e00}.c2{stroke:#00805f;fill:#00805f}"
    ".c3{stroke:#b04a86;fill:#b04a86}.c4{stroke:#8a6d00;fill:#8a6d00}.c5{stroke:#2a7fb8;fill:#2a7fb8}"
    ".c6{stroke:#555;fill:#555}.c7{stroke:#7a3cc2;fill:#7a3cc2}"
    "@media screen and (prefers-color-scheme:dark){.tonari-chart text{fill:#ddd}.tonari-chart .axis{stroke:#999}"
    ".tonari-chart .grid{stroke:#444}.c0{stroke:#56b4e9;fill:#56b4e9}.c1{stroke:#ff9a4d;fill:#ff9a4d}"
    ".c2{stroke:#3fd0a5;fill:#3fd0a5}.c3{stroke:#e59ac8;fill:#e59ac8}.c4{stroke:#f0e442;fill:#f0e442}"
    ".c5{stroke:#9fd0f0;fill:#9fd0f0}.c6{stroke:#bbb;fill:#bbb}.c7{stroke:#c9a2ff;fill:#c9a2ff}}";

namespace {

constexpr double width = 720, left = 72, right = 700, top = 16, bottom = 300;
constexpr double legend_line = 18;

/// Maps values to places between `begin` and `end`.
class Scale {
 public:
  Scale(double least, double most, bool is_log, double begin, double end)
      : is_log_(is_log), begin_(begin), end_(end), low_(in(least)), high_(in(most)) {
    if (low_ == high_) {
      low_ -= 0.5;
      high_ += 0.5;
    }
  }

  [[nodiscard]] double operator()(double value) const {
    return begin_ + (in(value)-low_) / (high_ - low_) * (end_ - begin_);
  }

  /// Returns values for the lines of the grid: powers of ten, or multiples of 1, 2 or 5 times one.
  [[nodiscard]] std::vector<double> ticks() const {
    std::vector<double> ticks;
    if (is_log_) {
      for (double power = std::ceil(low_ - 1e-9); power <= high_ + 1e-9; ++power) ticks.push_back(std::pow(10, power));
      return ticks;
    }
    double step = std::pow(10, std::floor(std::log10(high_ - low_)));
    if ((high_ - low_) / step < 2) step /= 5;
    if ((high_ - low_) / step < 5) step /= 2;
    for (double tick = std::ceil(low_ / step); tick * step <= high_ * (1 + 1e-9); ++tick) ticks.push_back(tick * step);
    return ticks;
  }

 private:
  [[nodiscard]] double in(double value) const { return is_log_ ? std::log10(value) : value; }

  bool is_log_;
  double begin_, end_, low_, high_;
};

struct Bounds {
  double x_min = INFINITY, x_max = -INFINITY, y_min = INFINITY, y_max = -INFINITY;
};

Bounds bounds_of(const Chart& chart) {
  Bounds all;
  for (const auto& curve : chart.curves) {
    for (const auto& mark : curve.marks) {
      all.x_min = std::min(all.x_min, mark.x);
      all.x_max = std::max(all.x_max, mark.x);
      all.y_min = std::min({all.y_min, mark.low, mark.y});
      all.y_max = std::max({all.y_max, mark.high, mark.y});
    }
  }
  if (!chart.y_log) all.y_min = std::min(all.y_min, 0.0);
  if (!chart.categories.empty()) {
    all.x_min = -0.5;
    all.x_max = static_cast<double>(chart.categories.size()) - 0.5;
  }
  return all;
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart)
      : chart_(chart),
        bounds_(bounds_of(chart)),
        x_(bounds_.x_min, bounds_.x_max, chart.x_log, left, right),
        y_(bounds_.y_min, bounds_.y_max, chart.y_log, bottom, top) {}

  std::string draw() {
    const double height = bottom + 60 + legend_line * static_cast<double>((chart_.curves.size() + 2) / 3);
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tonari-chart\" role=\"img\" viewBox=\"0 0 {} {}\" "
        "aria-label=\"{}\">",
        width, height, escape_html(chart_.title));
    draw_axes();
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) draw_curve(chart_.curves[i], i);
    add("</svg>");
    return std::move(text_);
  }

 private:
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> form, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text_), form, std::forward<Arguments>(arguments)...);
  }

  void draw_axes() {
    for (const double tick : y_.ticks()) {
      add("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", left, right, y_(tick), y_(tick));
      add("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>", left - 6, y_(tick) + 4, tick);
    }
    if (chart_.categories.empty()) {
      for (const double tick : x_.ticks()) add_x_label(tick, format_x(chart_.x_name, tick));
    }
    for (std::size_t i = 0; i < chart_.categories.size(); ++i) {
      add_x_label(static_cast<double>(i), chart_.categories.size() > 6 ? fmt::to_string(i + 1) : chart_.categories[i]);
    }
    add("<path class=\"axis\" fill=\"none\" d=\"M{} {}V{}H{}\"/>", left, top, bottom, right);
    const auto* const hint = chart_.categories.size() > 6 ? " (row of the table)" : "";
    add("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}{}</text>", (left + right) / 2, bottom + 34,
        escape_html(chart_.x_name), hint);
    add("<text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>", (top + bottom) / 2,
        escape_html(chart_.y_name));
  }

  void add_x_label(double x, const std::string& label) {
    add("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x_(x), bottom + 16, escape_html(label));
  }

  void draw_curve(const Curve& curve, std::size_t index) {
    const bool is_line = chart_.categories.empty() && !chart_.are_samples;
    add("<g class=\"c{}\">", index % 8);
    if (is_line && !curve.marks.empty()) {
      draw_band(curve);
      add("<path class=\"line\" d=\"");
      const char* letter = "M";
      for (const auto& mark : curve.marks) {
        add("{}{:.1f} {:.1f}", letter, x_(mark.x), y_(mark.y));
        letter = "L";
      }
      add("\"/>");
    }
    const double shift = is_line || chart_.are_samples ? 0 : (static_cast<double>(index % 8) - 3.5) * 5;
    for (const auto& mark : curve.marks) {
      if (!chart_.categories.empty()) {
        add("<path d=\"M{:.1f} {:.1f}V{:.1f}\"/>", x_(mark.x) + shift, y_(mark.low), y_(mark.high));
      }
      draw_shape(x_(mark.x) + shift, y_(mark.y), index);
    }
    const double x = left + static_cast<double>(index % 3) * 210;
    const double y = bottom + 58 + legend_line * static_cast<double>(index / 3);
    draw_shape(x, y - 4, index);
    add("</g><text x=\"{}\" y=\"{}\">{}</text>", x + 10, y, escape_html(curve.name));
  }

  void draw_band(const Curve& curve) {
    add("<path class=\"band\" d=\"");
    const char* letter = "M";
    for (const auto& mark : curve.marks) {
      add("{}{:.1f} {:.1f}", letter, x_(mark.x), y_(mark.high));
      letter = "L";
    }
    for (auto mark = curve.marks.rbegin(); mark != curve.marks.rend(); ++mark) {
      add("L{:.1f} {:.1f}", x_(mark->x), y_(mark->low));
    }
    add("Z\"/>");
  }

  void draw_shape(double x, double y, std::size_t index) {
    const double size = chart_.are_samples ? 2 : 4;
    switch (index % 4) {
      case 0: add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>", x, y, size); break;
      case 1:
        add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\"/>", x - size, y - size, 2 * size, 2 * size);
        break;
      case 2: add("<path d=\"M{:.1f} {:.1f}l{} {}h{}z\"/>", x, y - size, size, 2 * size, -2 * size); break;
      default:
        add("<path d=\"M{:.1f} {:.1f}l{} {}l{} {}l{} {}z\"/>", x, y - size, size, size, -size, size, -size, -size);
    }
  }

  const Chart& chart_;
  Bounds bounds_;
  Scale x_;
  Scale y_;
  std::string text_;
};

/// tonari's value by the rival's where low values are better, otherwise the inverse: below 1 tonari is better.
struct Bar {
  std::string name;
  double ratio, low, high, least, most;
  bool is_decided;  ///< There were enough rounds for an interval.
};

Bar bar_of(const Standing& one) {
  Bar bar{fmt::format("{}: {}", one.benchmark, one.metric),
          one.ratio,
          one.low.value_or(one.ratio),
          one.high.value_or(one.ratio),
          one.ratio_min,
          one.ratio_max,
          one.low.has_value()};
  if (one.better_values != driver::Better::high) return bar;
  return {bar.name, 1 / bar.ratio, 1 / bar.high, 1 / bar.low, 1 / bar.most, 1 / bar.least, bar.is_decided};
}

/// A line per benchmark, from top to bottom, over one axis of ratios.
class OverviewDrawing {
 public:
  explicit OverviewDrawing(const std::vector<Standing>& standings) : x_(0.5, 2, true, begin, right) {
    double least = 0.5, most = 2;
    for (const auto& one : standings) {
      bars_.push_back(bar_of(one));
      least = std::min({least, bars_.back().least, bars_.back().low});
      most = std::max({most, bars_.back().most, bars_.back().high});
    }
    least_ = std::max(least, 1e-6);
    most_ = std::min(most, 1e6);
    x_ = Scale(least_, most_, true, begin, right);
  }

  std::string draw() {
    const double end = top + line * static_cast<double>(bars_.size());
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tonari-chart\" role=\"img\" viewBox=\"0 0 {} {}\" "
        "aria-label=\"tonari divided by the best rival\">",
        width, end + 44);
    for (const double tick : ticks()) {
      add("<line class=\"{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"/>", tick == 1 ? "axis" : "grid", x_(tick),
          x_(tick), top, end);
      add("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>", x_(tick), end + 16, tick);
    }
    for (std::size_t i = 0; i < bars_.size(); ++i) draw_bar(bars_[i], top + line * (static_cast<double>(i) + 0.5));
    add("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">time of tonari / time of the best rival: left of 1 tonari is "
        "better</text></svg>",
        (begin + right) / 2, end + 36);
    return std::move(text_);
  }

 private:
  static constexpr double begin = 190;
  static constexpr double line = 22;

  template <class... Arguments>
  void add(fmt::format_string<Arguments...> form, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text_), form, std::forward<Arguments>(arguments)...);
  }

  /// Returns 1, 2 and 5 times powers of ten, or powers of ten alone if the axis is long.
  [[nodiscard]] std::vector<double> ticks() const {
    std::vector<double> ticks;
    const bool is_long = most_ / least_ > 1000;
    for (double power = std::floor(std::log10(least_)); power <= std::log10(most_); ++power) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double tick = factor * std::pow(10, power);
        if ((factor == 1 || !is_long) && tick >= least_ * 0.999 && tick <= most_ * 1.001) ticks.push_back(tick);
      }
    }
    return ticks;
  }

  [[nodiscard]] double place(double ratio) const { return x_(std::clamp(ratio, least_, most_)); }

  void draw_bar(const Bar& bar, double y) {
    add("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", begin - 10, y + 4, escape_html(bar.name));
    const bool is_better = bar.is_decided && bar.high < 1, is_worse = bar.is_decided && bar.low > 1;
    const auto* const color = is_better ? "c0" : is_worse ? "c1" : "c6";
    add("<g class=\"{}\"><path d=\"M{:.1f} {:.1f}H{:.1f}\"/>", color, place(bar.least), y, place(bar.most));
    add("<path stroke-width=\"5\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>", place(bar.low), y, place(bar.high));
    if (is_worse) {
      add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"9\" height=\"9\"/>", place(bar.ratio) - 4.5, y - 4.5);
    } else {
      add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"/>", place(bar.ratio), y);
    }
    add("</g>");
  }

  std::vector<Bar> bars_;
  double least_ = 0.5, most_ = 2;
  Scale x_;
  std::string text_;
};

}  // namespace

std::string draw_svg(const Chart& chart) { return Drawing(chart).draw(); }

std::string draw_overview(const std::vector<Standing>& standings) { return OverviewDrawing(standings).draw(); }

std::string svg_file(std::string svg) {
  svg.insert(svg.find('>') + 1, fmt::format("<style>{}</style>", svg_style));
  return svg + "\n";
}

}  // namespace tonari::bench::report
