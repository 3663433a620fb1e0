#include "driver/papers.hpp"

#include "driver/statistics.hpp"
#include "report/papers.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace {

using namespace tonari::bench::driver;
using tonari::bench::report::ExhibitView;
using tonari::bench::report::papers_beside;
using tonari::bench::report::Point;
using tonari::bench::report::Report;
using tonari::bench::report::view_of;
using Row = std::vector<std::string>;

/// Returns a point whose rounds measured these values, one sample each.
Point point(double x, const std::vector<double>& rounds) {
  const auto said = summarize(rounds);
  Point point;
  point.x = x;
  point.min = said.min;
  point.median = said.median;
  point.max = said.max;
  point.mean = said.mean;
  point.stddev = said.stddev;
  point.n = said.n;
  point.rounds = rounds;
  return point;
}

/// Returns a report of one benchmark with the systems "fast" and "slow": medians 20 and 40 us at x = 8, 2 and 4 ms at
/// x = 4096.
Report made_up(std::vector<double> slow = {36, 40, 44}) {
  Report report;
  report.benchmark = "made-up";
  report.file = "folder/made-up.json";
  report.parameters = {{"apart", "none"}, {"quick", false}};
  report.series = {
      {"fast",
       "case",
       "latency",
       "us",
       "bytes",
       Better::low,
       {point(8, {18, 20, 22}), point(4096, {2000, 2000, 2000})}},
      {"slow", "case", "latency", "us", "bytes", Better::low, {point(8, slow), point(4096, {4000, 4000, 4000})}}};
  return report;
}

Source source(const std::string& system, double x = 8) {
  return {"made-up", {system, "case", "latency", Quantity::At::value, x}};
}

Exhibit exhibit(std::vector<ExhibitRow> rows) { return {"figure 1", "2", "times", "", false, std::move(rows)}; }

ExhibitView view(const Exhibit& one, const Report& report) { return view_of(one, {&report}); }

TEST(BenchPapers, NumbersAndRatiosStandBesideEachOther) {
  const auto shown = view(
      exhibit(
          {{.label = "fast", .printed = Printed{0.5, 0.5}, .unit = "ms", .relative_to = "fast", .ours = source("fast")},
           {.label = "slow", .printed = Printed{2, 2}, .unit = "ms", .relative_to = "fast", .ours = source("slow")}}),
      made_up({36, 40, 44}));

  EXPECT_EQ(shown.table.caption, "figure 1 (section 2): times");
  EXPECT_EQ(shown.table.head, (Row{"row", "the paper", "here", "ratio to #1, the paper", "ratio to #1, here"}));
  ASSERT_EQ(shown.table.rows.size(), 2u);
  EXPECT_EQ(shown.table.rows[0], (Row{"#1 fast", "0.5 ms", "0.0200 ms", "1x", "1x"}));
  EXPECT_EQ(shown.table.rows[1], (Row{"#2 slow", "2 ms", "0.0400 ms", "4.00x", "2.00x [2.00, 2.00]"}));
  EXPECT_TRUE(shown.is_measured);
}

TEST(BenchPapers, RatiosOfOneRoundHaveNoInterval) {
  auto report = made_up();
  for (auto& series : report.series) series.points = {point(8, {series.system == "fast" ? 5.0 : 15.0})};
  const auto shown = view(
      exhibit({{.label = "a", .ours = source("fast")}, {.label = "b", .relative_to = "a", .ours = source("slow")}}),
      report);

  EXPECT_EQ(shown.table.rows[1][4], "3.00x");
}

TEST(BenchPapers, ASpeedUpIsTheOtherTimeDividedByTheRowsTime) {
  auto times = exhibit({{.label = "one", .printed = Printed{8, 8}, .relative_to = "one", .ours = source("slow")},
                        {.label = "two", .printed = Printed{2, 4}, .relative_to = "one", .ours = source("fast")}});
  times.is_speed_up = true;
  const auto shown = view(times, made_up({36, 40, 44}));

  EXPECT_EQ(shown.table.head[3], "speed-up to #1, the paper");
  EXPECT_EQ(shown.table.rows[1][3], "2.00x to 4.00x");
  EXPECT_EQ(shown.table.rows[1][4], "2.00x [2.00, 2.00]");
}

TEST(BenchPapers, ASpeedUpOfOneRoundHasNoInterval) {
  auto times = exhibit(
      {{.label = "one", .ours = source("slow")}, {.label = "two", .relative_to = "one", .ours = source("fast")}});
  times.is_speed_up = true;
  auto report = made_up();
  for (auto& series : report.series) series.points = {point(8, {series.system == "fast" ? 5.0 : 15.0})};

  EXPECT_EQ(view(times, report).table.rows[1][4], "3.00x");
}

TEST(BenchPapers, ARatioThatThePaperPrintsIsShownAsPrinted) {
  const auto shown = view(exhibit({{.label = "a", .printed = Printed{3, 3}, .ours = source("fast")},
                                   {.label = "b",
                                    .printed = Printed{2, 2},
                                    .relative_to = "a",
                                    .printed_ratio = Printed{0.67, 0.67, "about"},
                                    .ours = source("slow")}}),
                          made_up());

  EXPECT_EQ(shown.table.rows[0][3], "-");
  EXPECT_EQ(shown.table.rows[1][3], "about 0.67x");
}

TEST(BenchPapers, RowsWithSeveralBasesNameThem) {
  const auto shown = view(exhibit({{.label = "a", .ours = source("fast")},
                                   {.label = "b", .relative_to = "a", .ours = source("slow")},
                                   {.label = "c", .relative_to = "b", .ours = source("fast", 4096)}}),
                          made_up());

  EXPECT_EQ(shown.table.head.back(), "to");
  EXPECT_EQ(shown.table.rows[0].back(), "-");
  EXPECT_EQ(shown.table.rows[1].back(), "#1");
  EXPECT_EQ(shown.table.rows[2].back(), "#2");
}

TEST(BenchPapers, RowsWithoutANumberOfOursSayWhy) {
  const auto needs = "a Myrinet network";
  const auto shown = view(exhibit({{.label = "a", .printed = Printed{1, 1}, .needs = needs},
                                   {.label = "b", .ours = source("missing")},
                                   {.label = "c", .ours = source("fast", 16), .needs = needs},
                                   {.label = "d", .needs = needs},
                                   {.label = "e", .ours = source("fast"), .needs = "nothing, it is measured"},
                                   {.label = "f", .needs = needs},
                                   {.label = "g", .ours = Source{"other", {"fast", "case", "latency"}}}}),
                          made_up());

  EXPECT_EQ(shown.table.rows[0][2], "-");
  EXPECT_EQ(shown.table.rows[1][2], "not measured");
  EXPECT_EQ(shown.table.rows[2][2], "not measured");
  EXPECT_EQ(shown.notes, (std::vector<std::string>{"#1, #3, #4, #6: needs a Myrinet network.",
                                                   "#7: `tonari bench other` measures this."}));
}

TEST(BenchPapers, AnOpenXIsShown) {
  auto last = source("fast");
  last.quantity.at = Quantity::At::last;
  auto nearest = source("fast", 100);  // 8 is 12 times less, 4096 is 41 times more
  nearest.quantity.at = Quantity::At::nearest;
  auto begins = source("fast");
  begins.quantity.label = "ca*";
  const auto shown =
      view(exhibit({{.label = "a", .ours = last}, {.label = "b", .ours = nearest}, {.label = "c", .ours = begins}}),
           made_up());

  EXPECT_EQ(shown.table.rows[0][2], "2.00 ms (4 KiB)");
  EXPECT_EQ(shown.table.rows[1][2], "20.0 us (8)");
  EXPECT_EQ(shown.table.rows[2][2], "20.0 us (case)");
}

TEST(BenchPapers, StatisticsOfASeriesAreSelected) {
  auto maximum = source("slow");
  maximum.quantity.statistic = Quantity::Statistic::maximum;
  auto minimum = source("slow");
  minimum.quantity.statistic = Quantity::Statistic::minimum;
  const auto shown =
      view(exhibit({{.label = "a", .ours = minimum}, {.label = "b", .relative_to = "a", .ours = maximum}}),
           made_up({10, 20, 70}));

  EXPECT_EQ(shown.table.rows[0][2], "10.0 us");
  EXPECT_EQ(shown.table.rows[1][2], "70.0 us");
  EXPECT_EQ(shown.table.rows[1][4], "7.00x") << "extremes have no interval";
}

TEST(BenchPapers, TheRunMustHaveTheParametersThatARowAsksFor) {
  auto asked = source("fast");
  asked.with = {{"apart", "network"}};
  const auto one = exhibit({{.label = "a", .ours = asked}});
  const auto here = made_up();
  auto network = made_up();
  network.parameters["apart"] = "network";
  network.series[0].points[0].median = 99;

  EXPECT_EQ(view_of(one, {&here}).table.rows[0][2], "not measured");
  EXPECT_EQ(view_of(one, {&here, &network}).table.rows[0][2], "99.0 us");
}

TEST(BenchPapers, OtherUnitsStayAsTheyAre) {
  auto report = made_up();
  report.series[0].unit = "ns/message";
  const auto shown = view(exhibit({{.label = "a", .unit = "ms", .ours = source("fast")}}), report);

  EXPECT_EQ(shown.table.rows[0][2], "20.0 ns/message");
}

Paper paper() {
  Paper paper{"P", "A paper", {exhibit({{.label = "a", .ours = source("fast")}})}, {}, {{"no", "3", "needs luck"}}};
  paper.exhibits.push_back(exhibit({{.label = "b", .ours = source("missing")}}));
  paper.exhibits.back().name = "figure 2";
  Finding finding{"it is fast", "P", "2", {"fast", "case", "latency"}, {}, 1.0, {1, {}}, 43.0, "made-up"};
  paper.findings = {finding, finding};
  paper.findings[1].says = "it is faster over verbs";
  paper.findings[1].needs = "verbs";
  return paper;
}

TEST(BenchPapers, FindingsHaveTheVerdictsOfEachReportOrTheReasonForNone) {
  auto report = made_up();
  report.verdicts = {{.finding = "it is fast",
                      .paper = "P",
                      .section = "2",
                      .outcome = "holds",
                      .at = "4 KiB",
                      .ratio = 41,
                      .low = 38,
                      .high = 44,
                      .printed = 43}};
  const auto views = papers_beside({paper()}, {&report, &report}, false);

  ASSERT_EQ(views.size(), 1u);
  const Row judged{"it is fast", "2", "holds", "41.0x [38.0, 44.0], 4 KiB", "43x", "made-up"};
  ASSERT_EQ(views[0].verdicts.rows.size(), 3u);
  EXPECT_EQ(views[0].verdicts.rows[0], judged);
  EXPECT_EQ(views[0].verdicts.rows[1], judged);
  EXPECT_EQ(views[0].verdicts.rows[2], (Row{"it is faster over verbs", "2", "not judged", "needs verbs", "43x", "-"}));
  EXPECT_EQ(views[0].unjudged.rows, (std::vector<Row>{{"no", "3", "needs luck"}}));
  EXPECT_EQ(tonari::bench::report::count_verdicts(views).rows, (std::vector<Row>{{"P", "2", "0", "0", "0", "1", "1"}}));
}

TEST(BenchPapers, ExhibitsThatWereNotMeasuredAreLeftOutUnlessAllAreAskedFor) {
  const auto report = made_up();
  const auto some = papers_beside({paper()}, {&report}, false);
  ASSERT_EQ(some.size(), 1u);
  EXPECT_EQ(some[0].exhibits.size(), 1u);
  EXPECT_EQ(some[0].not_measured, (std::vector<std::string>{"figure 2"}));

  EXPECT_TRUE(papers_beside({paper()}, {}, false).empty());
  const auto all = papers_beside({paper()}, {}, true);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].exhibits.size(), 2u);
}

/// A folder for files of papers.
class PapersFolder : public testing::Test {
 protected:
  PapersFolder() { std::filesystem::create_directory(folder_); }
  ~PapersFolder() override { std::filesystem::remove_all(folder_); }

  void store(const std::string& text, const std::string& name = "1.json") const {
    std::ofstream(folder_ / name) << text;
  }

  [[nodiscard]] std::string error() const {
    try {
      static_cast<void>(read_papers(folder_));
    } catch (const tonari::SetupError& error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path folder_ = std::filesystem::temp_directory_path() / fmt::format("tonari-papers-{}", ::getpid());
};

/// Returns the text of a paper with one exhibit, of one row.
std::string with_row(const std::string& row) {
  return R"({"paper": "P", "title": "T", "unjudged": [], "findings": [{"benchmark": "b", "says": "s", "section": "1",
             "ours": {"case": "c", "metric": "m", "near": 6000}, "above": 1}],
             "exhibits": [{"name": "table 1", "section": "1", "shows": "s", "unit": "ms", "rows": [)" +
         row + "]}]}";
}

TEST_F(PapersFolder, AFileIsRead) {
  store(with_row(R"({"label": "a", "printed": [37, 65], "said": "about", "relative_to": "a",
                     "ours": {"benchmark": "b", "case": "c", "metric": "m", "x": 4, "with": {"apart": "network"}}})"));
  const auto papers = read_papers(folder_);

  ASSERT_EQ(papers.size(), 1u);
  const auto& row = papers[0].exhibits.at(0).rows.at(0);
  EXPECT_EQ(row.printed->low, 37);
  EXPECT_EQ(row.printed->high, 65);
  EXPECT_EQ(row.printed->said, "about");
  EXPECT_EQ(row.unit, "ms");
  EXPECT_EQ(row.ours->quantity.x, 4);
  EXPECT_EQ(row.ours->with.at("apart"), "network");
  EXPECT_EQ(papers[0].findings.at(0).ours.at, Quantity::At::nearest);
  EXPECT_EQ(findings_of("b", folder_).size(), 1u);
  EXPECT_TRUE(findings_of("other", folder_).empty());
}

TEST_F(PapersFolder, AFileOfAnotherFormIsRefusedWithItsName) {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "parse error"},
           {"{", "parse error"},
           {"[]", "does not describe a paper"},
           {R"({"paper": "P"})", "key 'title' not found"},
           {with_row(R"({"label": "a"})"), "the row 'a' has neither 'ours' nor 'needs'"},
           {with_row(R"({"label": "a", "needs": "n", "relative_to": "b"})"), "table 1 has no row 'b'"},
           {with_row(R"({"label": "a", "ours": {"benchmark": "b", "case": "c"}})"), "key 'metric' not found"}}) {
    store(text);
    EXPECT_NE(error().find("1.json does not describe a paper"), std::string::npos) << text;
    EXPECT_NE(error().find(why), std::string::npos) << error();
  }
}

TEST_F(PapersFolder, AFolderWithoutPapersIsRefused) {
  EXPECT_NE(error().find("no .json file"), std::string::npos);
  std::filesystem::remove(folder_);
  EXPECT_NE(error().find("No such file"), std::string::npos);
}

}  // namespace
