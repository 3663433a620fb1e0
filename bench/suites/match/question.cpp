// `tonari bench match`: its options, launches and tables. See measure.hpp.

#include "cli/table.hpp"
#include "driver/registry.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace tonari::bench::driver::match {

namespace {

constexpr int depth_max = 1'000'000;
constexpr int payload_max = 8192;
constexpr int searches_payload = 4096;  // the message size of the paper's comparison
constexpr int copies_payload = 100;     // longer than the rest of a line of 64 bytes, shorter than that of 128
constexpr int copies_depth_max = 1000;

constexpr std::size_t head_bytes = 64;
constexpr std::size_t unexpected_bytes_min = std::size_t{64} << 20;

class Match final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "match"; }
  [[nodiscard]] std::string_view asks() const override {
    return "what does finding a message cost, against how many are in its way?";
  }
  [[nodiscard]] int default_ranks() const override { return 2; }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints the time of a receive, the median of all rounds, in nanoseconds, and a line fitted to it:\n"
           "what each message in the way costs. Beside tonari: tonari-scan, whose queues are always searched in\n"
           "order; and searches without a runtime: lhs, 64-byte heads in line; lhs-128, longer heads; no-lhs, "
           "envelopes\n"
           "inside whole messages; alpu, 256 cells compared at once, then as no-lhs. copied compares heads that have\n"
           "the beginning of a long message (lhs-cut) with heads that have none.\n"
           "\n"
           "Examples:\n"
           "  tonari bench match --quick\n"
           "  tonari bench match --cases unexpected,any-source --depths 0,1000,1000000\n"
           "  tonari bench match --payloads 0,40,4096 --rival openmpi,mpich --json match.json";
  }

  void add_options(CLI::App& command, BenchOptions&) override {
    command
        .add_option("--depths", depths_,
                    "Messages or receives in the way, each from 0 to 1000000 (default: 0,10,100,1000,10000,100000)")
        ->type_name("LIST")
        ->group("The question");
    command
        .add_option("--payloads", payloads_,
                    "Bytes of each message in the way, each from 0 to 8192; lhs and no-lhs are measured with 4096 too")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("The question");
    command
        .add_option("--cases", cases_,
                    "unexpected: a receive behind messages. unexpected-cold: with empty caches. any-source: a receive "
                    "from any source. posted: a message behind receives. drain-reverse, drain-random: receives of all "
                    "messages, not in their order. copied, copied-cold: a search and the copy of its message, without "
                    "a runtime")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("The question");
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"depths", depths(options)},
            {"payloads", payloads()},
            {"cases", cases_},
            {"budget_us", budget_us(options)},
            {"cold_samples", colds(options)}};
  }
  void conclude(Results& results) const override;
  [[nodiscard]] std::vector<Metric> metrics() const override { return {{"latency", Better::low}}; }
  [[nodiscard]] std::string tell(const Results& results) const override;

 private:
  [[nodiscard]] std::vector<int> depths(const BenchOptions& options) const {
    const auto* const usual = options.quick ? "0,10,100,1000" : "0,10,100,1000,10000,100000";
    return parse_ascending("--depths", depths_.value_or(usual), 0, depth_max);
  }
  [[nodiscard]] std::vector<int> payloads() const { return parse_ascending("--payloads", payloads_, 0, payload_max); }
  [[nodiscard]] static double budget_us(const BenchOptions& options) { return options.quick ? 1000 : 4000; }
  [[nodiscard]] static int colds(const BenchOptions& options) { return options.quick ? 2 : 8; }

  std::optional<std::string> depths_;
  std::string payloads_ = "0";
  std::string cases_ = "unexpected,unexpected-cold,any-source,posted,drain-reverse,drain-random,copied,copied-cold";
};

std::vector<Launch> Match::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  if (options.launch.ranks != 2) throw SetupError("match needs two ranks, no more: -n 2");
  const auto all_depths = depths(options);
  auto all_payloads = payloads();
  const auto deepest = static_cast<std::size_t>(all_depths.back());
  const auto longest = static_cast<std::size_t>(all_payloads.back());
  const auto direct_bytes = cli::settings_of_ranks(options.launch).direct_bytes;
  if (longest != 0 && longest >= direct_bytes) {
    throw SetupError(
        fmt::format("--payloads: with TONARI_DIRECT_BYTES={} a message of {} bytes waits at its sender, and is not in "
                    "the way; choose shorter ones",
                    direct_bytes, longest));
  }

  const auto chosen = parse_choices("--cases", cases_,
                                    {"unexpected", "unexpected-cold", "any-source", "posted", "drain-reverse",
                                     "drain-random", "copied", "copied-cold"});
  std::vector<std::string> cases;   // of runtimes
  std::vector<std::string> copies;  // of searches that copy
  for (const auto& one : chosen) (one.starts_with("copied") ? copies : cases).push_back(one);
  Ask ask{"match", options.launch, {}};
  // Twice the contents of the queue: at three quarters of the limit senders are asked to keep their messages.
  ask.launch.environment.push_back(fmt::format(
      "TONARI_UNEXPECTED_BYTES={}", std::max(unexpected_bytes_min, 2 * (deepest + 100) * (head_bytes + longest))));
  ask.arguments = {worker_option("depths", all_depths), worker_option("payloads", all_payloads),
                   worker_option("cases", cases), fmt::format("--budget-us={}", budget_us(options)),
                   fmt::format("--colds={}", colds(options))};
  std::vector<Launch> launches;
  if (!cases.empty()) launches.push_back({ask, systems, ""});

  if (!cases.empty() && systems.front().family == Family::tonari) {
    auto scan = ask;
    scan.launch.environment.emplace_back("TONARI_SCAN_DEPTH=4294967296");
    scan.arguments.emplace_back("--name=tonari-scan");
    launches.push_back({std::move(scan), {{Family::tonari, false}}, "scan"});
  }
  const bool searches = std::ranges::any_of(cases, [](const auto& name) { return name.starts_with("unexpected"); });
  if (searches) {
    if (std::ranges::find(all_payloads, searches_payload) == all_payloads.end()) {
      all_payloads.push_back(searches_payload);
    }
    auto searching = ask;
    searching.arguments.push_back(worker_option("payloads", all_payloads));  // the later option overrides the former
    launches.push_back(
        {std::move(searching),
         {{Family::lhs, false}, {Family::lhs_128, false}, {Family::no_lhs, false}, {Family::alpu, false}},
         ""});
  }
  if (!copies.empty()) {
    std::vector<int> few_depths;
    std::ranges::copy_if(all_depths, std::back_inserter(few_depths),
                         [](int depth) { return depth <= copies_depth_max; });
    if (few_depths.empty()) few_depths.push_back(copies_depth_max);
    auto lengths = payloads();
    lengths.insert(lengths.end(), {copies_payload, searches_payload});
    std::erase(lengths, 0);
    std::ranges::sort(lengths);
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    ask.arguments.insert(ask.arguments.end(), {worker_option("depths", few_depths), worker_option("payloads", lengths),
                                               worker_option("cases", copies)});
    launches.push_back(
        {std::move(ask),
         {{Family::lhs, false}, {Family::lhs_128, false}, {Family::lhs_cut, false}, {Family::no_lhs, false}},
         "copies"});
  }
  return launches;
}

/// Adds slope and intercept of each case, one sample per round.
void Match::conclude(Results& results) const {
  const auto measured = results.series();
  for (const auto& series : measured) {
    const double deepest = series.points.rbegin()->first;
    for (const auto& [round, line] : series.lines(fit_least_squares)) {
      results.add(round, {series.name.system, series.name.label, "slope", "ns/message", "depth up to"}, deepest,
                  {line.slope});
      results.add(round, {series.name.system, series.name.label, "intercept", "ns", "depth up to"}, deepest,
                  {line.at_zero});
    }
  }
}

std::string Match::tell(const Results& results) const {
  auto text = Question::tell(results);
  std::vector<std::vector<std::string>> rows{{"fit", "system", "ns per message", "ns at depth 0"}};
  for (const auto& series : results.series()) {
    if (series.name.metric != "slope") continue;
    rows.push_back({series.name.label, series.name.system, format_number(results.median_beside(series.name, "slope")),
                    format_number(results.median_beside(series.name, "intercept"))});
  }
  return rows.size() == 1 ? text : text + "\n" + cli::format_table(rows);
}

const Registered<Match> registered(Topic::messages, 3);

}  // namespace

}  // namespace tonari::bench::driver::match
