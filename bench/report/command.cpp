// `tonari report`: makes one page, or another form, of the results of `tonari bench`.

#include "report/command.hpp"

#include "base/error.hpp"
#include "cli/options.hpp"
#include "driver/report.hpp"
#include "report/load.hpp"
#include "report/page.hpp"
#include "report/svg.hpp"
#include "report/text.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>

namespace tonari::bench::report {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> inputs;
  std::string output;
  std::vector<std::string> old;
  std::string format = "html";
  std::string svg_folder;
  bool plain = false;
  std::vector<driver::Condition> fail_if;
};

/// Returns the script that draws charts: libexec/tonari/report/charts.js. It is empty if tonari was built without.
std::string chart_script() {
  const auto folder = fs::read_symlink("/proc/self/exe").parent_path();
  std::ifstream file(folder / "report" / "charts.js");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string written(const Content& content, const Options& options) {
  if (options.format == "csv") return write_csv(content);
  if (options.format == "markdown") return write_markdown(content);
  if (options.format == "gnuplot") return write_gnuplot(content);
  return write_html(content, options.plain ? "" : chart_script());
}

void write_pictures(const Content& content, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_system_error(error.value(), fmt::format("cannot make the folder {}", folder));
  if (const auto all = standings_of(content); !all.empty()) {
    driver::write_whole((fs::path(folder) / "overview.svg").string(), svg_file(draw_overview(all)),
                        "give --svg another folder");
  }
  std::set<std::string> used{"overview"};
  for (const auto& section : content.sections) {
    for (const auto& chart : section.charts) {
      auto name = plain_name(section.report.benchmark + "-" + chart.title);
      if (!used.insert(name).second) used.insert(name += "-" + chart.id);
      driver::write_whole((fs::path(folder) / (name + ".svg")).string(), svg_file(draw_svg(chart)),
                          "give --svg another folder");
    }
  }
}

/// Writes the page, its other forms and the pictures. Returns whether a condition is true.
bool write(const Options& options) {
  if (options.output.empty() && options.svg_folder.empty() && options.fail_if.empty()) {
    throw SetupError("nothing to do; give -o FILE, --svg DIR or --fail-if");
  }
  auto reports = load(options.inputs);
  const auto readings = readings_of(reports);
  std::optional<std::vector<Change>> changed;
  if (!options.old.empty()) changed = changes(load(options.old), reports);
  auto content = content_of(std::move(reports));
  content.papers = papers_beside(driver::read_papers(driver::papers_folder()), reports_of(content), false);
  content.changes = std::move(changed);
  if (!options.output.empty()) {
    driver::write_whole(options.output, written(content, options), "give -o a path that can be written");
  }
  if (!options.svg_folder.empty()) write_pictures(content, options.svg_folder);
  return driver::tell_conditions(options.fail_if, readings);
}

}  // namespace

void add_report(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<Options>();
  CLI::App& command =
      *app.add_subcommand("report", "Make a page with charts of the results of tonari bench.")->group("Commands");
  command.add_option("INPUT", options->inputs, "Files of `tonari bench NAME --json`, or folders of `tonari bench all`")
      ->type_name("DIR|FILE")
      ->required();
  command.add_option("-o,--output", options->output, "The file to write, completely or not at all")->type_name("FILE");
  command.add_option("--compare", options->old, "Also show what changed since these results, beyond noise")
      ->type_name("DIR|FILE")
      ->expected(1)
      ->take_all();
  command.add_option("--format", options->format, "html (default), csv, gnuplot or markdown")
      ->type_name("FORMAT")
      ->transform(cli::one_of({"html", "csv", "gnuplot", "markdown"}));
  command.add_option("--svg", options->svg_folder, "Also write each chart as an SVG file into this folder")
      ->type_name("DIR");
  command.add_flag("--plain", options->plain, "Plain charts without zoom, for a smaller page")->disable_flag_override();
  driver::add_fail_if(command, options->fail_if);
  command.footer(
      "The page needs no network. Its charts need a tonari that was built with Node and npm; otherwise they are "
      "plain.\n\n"
      "Examples:\n"
      "  tonari report results -o report.html\n"
      "  tonari report results --compare results-of-last-week -o report.html\n"
      "  tonari report pingpong.json --format csv -o /dev/stdout\n"
      "  tonari report results --fail-if 'pingpong.8.ratio > 0.7'");
  command.callback([options, &exit_status] { exit_status = write(*options) ? driver::status_of_true_condition : 0; });
}

}  // namespace tonari::bench::report
