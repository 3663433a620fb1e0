// The page: all text and tables are in the HTML, so that it can be read without the script.

#include "report/page.hpp"
#include "report/svg.hpp"
#include "report/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace tonari::bench::report {

namespace {

constexpr const char* page_style = R"(
:root{color-scheme:light dark;--back:#fff;--text:#1b1b1b;--soft:#555;--line:#ccc;--link:#0b57a4;--head:#f0f3f6}
@media screen and (prefers-color-scheme:dark){
:root{--back:#16181b;--text:#e8e8e8;--soft:#b5b5b5;--line:#454a50;--link:#8ec5ff;--head:#24282d}}
body{margin:0 auto;max-width:70rem;padding:1rem;background:var(--back);color:var(--text);font:16px/1.5 sans-serif}
a{color:var(--link)}.skip{position:absolute;left:-100rem}.skip:focus{position:static}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
nav ul{columns:12rem;padding-left:1.2rem}
.wide{overflow-x:auto}table{border-collapse:collapse;margin:.5rem 0;font-size:.875rem}
caption{text-align:left;color:var(--soft)}th,td{border:1px solid var(--line);padding:.2rem .6rem;text-align:left}
thead th{background:var(--head)}td{font-variant-numeric:tabular-nums}
figure{margin:1rem 0}.chart{width:100%;max-width:60rem}.drawn{height:26rem}.hint,.note{color:var(--soft);font-size:.875rem}
pre{overflow-x:auto;background:var(--head);padding:.6rem;white-space:pre-wrap;overflow-wrap:anywhere}
@media print{nav,.skip,.hint{display:none}body{max-width:none;padding:0;font-size:10pt}.wide{overflow:visible}
figure,tr{break-inside:avoid}section{break-before:page}.drawn{height:9cm}a{color:inherit;text-decoration:none}}
)";

class Page {
 public:
  Page(const Content& content, const std::string& script) : content_(content), script_(script) {}

  std::string write() {
    add("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'; img-src data:\">\n<title>tonari: "
        "measurements</title>\n<style>{}{}</style>\n</head>\n"
        "<body>\n<a class=\"skip\" href=\"#main\">Skip to the results</a>\n",
        page_style, svg_style);
    write_header();
    add("<main id=\"main\" tabindex=\"-1\">\n");
    write_overview();
    if (content_.changes) write_changes(*content_.changes);
    for (const auto& paper : content_.papers) write_paper(paper);
    for (const auto& section : content_.sections) write_section(section);
    add("</main>\n<footer><p class=\"note\">Written by <code>tonari report</code>.</p></footer>\n");
    write_script();
    add("</body>\n</html>\n");
    return std::move(text_);
  }

 private:
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> form, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text_), form, std::forward<Arguments>(arguments)...);
  }

  void write_header() {
    add("<header><h1>tonari: measurements</h1>\n<p>Compare only numbers of one run. Values are medians, with the "
        "95&nbsp;% interval of the median over the rounds, or with min and p99 if there are too few rounds. Ratios are "
        "geometric means over the pairs of the rounds, with the 99.5&nbsp;% interval.</p>\n");
    if (script_.empty()) {
      add("<p class=\"note\" id=\"reduced\">This is the reduced form of the page: its charts are plain pictures, "
          "without "
          "zoom. A tonari built with Node and npm draws the others.</p>\n");
    }
    add("</header>\n<nav aria-label=\"Questions\"><ul>\n<li><a href=\"#overview\">Overview</a></li>\n");
    if (content_.changes) add("<li><a href=\"#changes\">Changes</a></li>\n");
    for (const auto& paper : content_.papers) {
      add("<li><a href=\"#{}\">Paper: {}</a></li>\n", paper.id, escape_html(paper.name));
    }
    for (const auto& section : content_.sections) {
      add("<li><a href=\"#{}\">{}</a></li>\n", section.id, escape_html(name_of_run(section.report)));
    }
    add("</ul></nav>\n");
  }

  void write_table(const Table& table) {
    const auto caption = escape_html(table.caption);
    add("<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"Table: {}\">\n<table><caption>{}</caption>\n"
        "<thead><tr>",
        caption, caption);
    for (const auto& name : table.head) add("<th scope=\"col\">{}</th>", escape_html(name));
    add("</tr></thead>\n<tbody>\n");
    for (const auto& row : table.rows) {
      add("<tr><th scope=\"row\">{}</th>", escape_html(row.front()));
      for (std::size_t i = 1; i < row.size(); ++i) add("<td>{}</td>", escape_html(row[i]));
      add("</tr>\n");
    }
    add("</tbody></table></div>\n");
  }

  void write_overview() {
    add("<section id=\"overview\" aria-labelledby=\"overview-title\"><h2 id=\"overview-title\">Overview</h2>\n");
    const auto overview = overview_table(content_);
    if (overview.rows.empty()) {
      add("<p>No rival was measured.</p>\n");
    } else {
      add("<p>Below 1x tonari is better where low values are, above 1x where high values are. The interval of a mean "
          "assumes that all comparisons err in the same direction, so it is rather too wide.</p>\n");
      add("<figure><div class=\"chart\">{}</div>\n", draw_overview(standings_of(content_)));
      write_table(overview);
      add("<figcaption>Points: geometric means. Thick lines: their intervals. Thin lines: the range.</figcaption>\n"
          "</figure>\n");
    }
    if (const auto verdicts = count_verdicts(content_.papers); !verdicts.rows.empty()) {
      add("<h3>Findings of the papers</h3>\n");
      write_table(verdicts);
    }
    for (const auto& section : content_.sections) write_failed(section.report);
    add("</section>\n");
  }

  void write_failed(const Report& report) {
    for (const auto& failed : report.failed) {
      add("<p><strong>Not measured in {}:</strong> {}: {}</p>\n", escape_html(report.benchmark),
          escape_html(failed.system), escape_html(failed.cause));
    }
  }

  void write_changes(const std::vector<Change>& changes) {
    add("<section id=\"changes\" aria-labelledby=\"changes-title\"><h2 id=\"changes-title\">Changes</h2>\n"
        "<p>Medians of tonari's rounds, new divided by old, with the 99.5&nbsp;% interval (Welch's, of logarithms). "
        "The "
        "two runs were not measured in turn: a change of the machine's speed between them looks like a change of "
        "tonari. About 5 in 1,000 comparisons without a difference appear as changed.</p>\n");
    for (const bool beyond_noise : {true, false}) {
      const auto table = change_table(changes, beyond_noise);
      add("<h3>{}</h3>\n", table.caption);
      if (table.rows.empty()) {
        add("<p>None.</p>\n");
      } else {
        write_table(table);
      }
    }
    add("</section>\n");
  }

  void write_paper(const PaperView& paper) {
    const auto name = escape_html(paper.name);
    add("<section id=\"{}\" aria-labelledby=\"{}-title\"><h2 id=\"{}-title\">Paper: {}</h2>\n<p>{}</p>\n", paper.id,
        paper.id, paper.id, name, escape_html(paper.title));
    if (!paper.note.empty()) add("<p class=\"note\">{}</p>\n", escape_html(paper.note));
    for (const auto& exhibit : paper.exhibits) {
      write_table(exhibit.table);
      for (const auto& note : exhibit.notes) add("<p class=\"note\">{}</p>\n", escape_html(note));
    }
    if (!paper.not_measured.empty()) {
      add("<p><strong>Not measured:</strong> {}</p>\n",
          escape_html(fmt::format("{}", fmt::join(paper.not_measured, ", "))));
    }
    write_table(paper.verdicts);
    if (!paper.unjudged.rows.empty()) write_table(paper.unjudged);
    add("</section>\n");
  }

  void write_section(const Section& section) {
    const auto& report = section.report;
    add("<section id=\"{}\" aria-labelledby=\"{}-title\"><h2 id=\"{}-title\">{}</h2>\n", section.id, section.id,
        section.id, escape_html(name_of_run(report)));
    write_failed(report);
    if (!report.verdicts.empty()) {
      add("<h3>Verdicts</h3>\n");
      write_table(verdict_table(report.verdicts));
    }
    for (const auto& chart : section.charts) write_chart(chart);
    add("<h3>How to measure this again</h3>\n<pre>{}</pre>\n", escape_html(command_of(report)));
    add("<details><summary>Parameters and commands of the run</summary><pre>{}</pre></details>\n",
        escape_lines(report.parameters.dump(1)));
    write_machine(report);
    add("</section>\n");
  }

  /// Returns the text for <pre>, whose lines stay lines.
  static std::string escape_lines(const std::string& text) {
    std::string escaped;
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = std::min(text.find('\n', begin), text.size());
      escaped += escape_html(std::string_view(text).substr(begin, end - begin)) + "\n";
      begin = end + 1;
    }
    return escaped;
  }

  void write_chart(const Chart& chart) {
    const auto title = escape_html(chart.title);
    add("<h3>{}</h3>\n<figure id=\"{}\"><div class=\"chart\" data-chart=\"{}\">{}</div>", title, chart.id, chart.id,
        draw_svg(chart));
    if (!script_.empty()) {
      add("<p class=\"hint\" hidden>Zoom: drag the bar below the chart, or turn the wheel with Ctrl; with the "
          "keyboard, "
          "focus the chart and press + and -, the arrows, and 0 for all.</p>");
    }
    add("\n");
    write_table(chart.table);
    add("</figure>\n");
  }

  void write_machine(const Report& report) {
    Table table{.caption = fmt::format("The machine that measured {}", report.benchmark),
                .head = {"property", "value"},
                .rows = {}};
    for (const auto& [name, value] : report.machine.items()) {
      table.rows.push_back({name, value.is_string() ? value.get<std::string>() : value.dump()});
    }
    add("<h3>Machine</h3>\n");
    for (const auto& reason : report.unfit) {
      add("<p class=\"warning\"><strong>Unfit for measurements:</strong> {}</p>\n", escape_html(reason));
    }
    write_table(table);
  }

  void write_script() {
    if (script_.empty()) return;
    auto charts = nlohmann::ordered_json::array();
    for (const auto& section : content_.sections) {
      for (const auto& chart : section.charts) charts.push_back(as_json(chart));
    }
    auto json = charts.dump(-1, ' ', true);
    // HTML ends a script at "</script", and treats "<!--" specially; in JSON "<" is only in strings.
    for (auto place = json.find('<'); place != json.npos; place = json.find('<', place))
      json.replace(place, 1, "\\u003c");
    text_ +=
        "<script type=\"application/json\" id=\"charts\">" + json + "</script>\n<script>" + script_ + "</script>\n";
  }

  const Content& content_;
  const std::string& script_;
  std::string text_;
};

}  // namespace

std::string write_html(const Content& content, const std::string& script) { return Page(content, script).write(); }

}  // namespace tonari::bench::report
