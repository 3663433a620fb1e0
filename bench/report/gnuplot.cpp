// A script that holds its data. It sets no terminal, so that the user chooses one.

#include "report/page.hpp"

#include <fmt/format.h>

namespace tonari::bench::report {

namespace {

/// Between single quotes gnuplot executes nothing and replaces nothing.
std::string gnuplot_word(std::string_view text) {
  std::string word = "'";
  for (const char letter : text) {
    if (letter == '\'') word += '\'';
    word += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
  }
  return word + "'";
}

std::string gnuplot_data(const Curve& curve, std::size_t chart, std::size_t index) {
  auto text = fmt::format("$data_{}_{} << END\n", chart, index);
  for (const auto& mark : curve.marks) text += fmt::format("{} {} {} {}\n", mark.x, mark.y, mark.low, mark.high);
  return text + "END\n";
}

std::string gnuplot_chart(const Chart& chart, const std::string& benchmark, std::size_t number) {
  std::string text;
  for (std::size_t i = 0; i < chart.curves.size(); ++i) text += gnuplot_data(chart.curves[i], number, i);
  text += fmt::format(
      "reset\nset title {} noenhanced\nset xlabel {} noenhanced\nset ylabel {} noenhanced\nset key outside\n",
      gnuplot_word(benchmark + ": " + chart.title), gnuplot_word(chart.x_name), gnuplot_word(chart.y_name));
  if (chart.x_log) text += "set logscale x\n";
  if (chart.y_log) text += "set logscale y\n";
  if (!chart.categories.empty()) {
    text += fmt::format("set xrange [-0.5:{}]\nset xtics rotate noenhanced (",
                        static_cast<double>(chart.categories.size()) - 0.5);
    for (std::size_t i = 0; i < chart.categories.size(); ++i) {
      text += fmt::format("{}{} {}", i == 0 ? "" : ", ", gnuplot_word(chart.categories[i]), i);
    }
    text += ")\n";
  }
  const auto* const style = chart.are_samples           ? "using 1:2 with points pointtype 7 pointsize 0.3"
                            : !chart.categories.empty() ? "using 1:2:3:4 with yerrorbars"
                                                        : "using 1:2:3:4 with yerrorlines";
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    text += fmt::format("{}$data_{}_{} {} title {} noenhanced", i == 0 ? "plot " : ", \\\n     ", number, i, style,
                        gnuplot_word(chart.curves[i].name));
  }
  return text + "\n\n";
}

}  // namespace

std::string write_gnuplot(const Content& content) {
  std::string text =
      "# Written by tonari report. One page per chart: gnuplot -e \"set terminal pdfcairo; set output 'report.pdf'\" "
      "FILE\n";
  std::size_t number = 0;
  for (const auto& section : content.sections) {
    for (const auto& chart : section.charts) text += gnuplot_chart(chart, section.report.benchmark, ++number);
  }
  return text;
}

}  // namespace tonari::bench::report
