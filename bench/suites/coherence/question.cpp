// `tonari bench coherence`: its options, launches and tables. See measure.hpp.

#include "cli/table.hpp"
#include "driver/registry.hpp"
#include "driver/table.hpp"

#include "job/arena.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::bench::driver::coherence {

namespace {

const std::vector<std::string> all_cases{"read-random",      "read-sequential", "read-strided", "write-upgrade",
                                         "release",          "barrier",         "lock-again",   "lock-handover",
                                         "guarded-handover", "guarded-read",    "invalidate",   "update"};

/// Returns true for cases with one writer and several numbers of readers.
bool has_readers(const std::string& name) { return name == "guarded-read" || name == "invalidate" || name == "update"; }

/// One row per case, one column per number of readers: the times of the first and the last reader.
std::string tell_readers(const Results& results) {
  std::vector<std::string> heading{"readers"};
  std::vector<std::vector<std::string>> rows;
  for (const auto& first : results.series()) {
    if (first.name.metric != "first") continue;
    const auto& last = results.beside(first.name, "last");
    auto& row = rows.emplace_back(1, first.name.label);
    for (const auto& [readers, samples] : first.points) {
      if (rows.size() == 1) heading.push_back(fmt::format("{:.0f}", readers));
      row.push_back(fmt::format("{} to {}", format_number(first.summary(readers).median),
                                format_number(last.summary(readers).median)));
    }
  }
  if (rows.empty()) return "";
  rows.insert(rows.begin(), heading);
  return fmt::format("\nthe first reader to the last, us, medians\n{}", cli::format_table(rows));
}

class Coherence final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "coherence"; }
  [[nodiscard]] std::string_view asks() const override {
    return "what does it cost to share pages and guarded data between hosts, and to synchronise?";
  }
  [[nodiscard]] int default_ranks() const override { return 2; }
  [[nodiscard]] std::string rivals() const override { return "no other system supports this benchmark"; }
  [[nodiscard]] std::vector<UsualRun> usual_runs(bool /*quick*/) const override {
    // No rival shares memory between hosts. The Fagus paper compares verbs with IP.
    return {{"", {}},
            {"-network",
             {"--cases", "guarded-read,invalidate,update", "--readers", "1,2,3", "--apart", "network", "--network",
              "tcp,rc"}}};
  }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints medians of all rounds, in microseconds: of a page read or written first; of a release after\n"
           "writing so many pages; of a barrier; of taking a mutex and letting it go; of guarded data that two ranks\n"
           "write in turn, and that one writes and others read. Ranks are hosts of their own, by --apart memory "
           "unless\n"
           "it is given.\n"
           "\n"
           "Examples:\n"
           "  tonari bench coherence --quick\n"
           "  tonari bench coherence --cases release --sizes 1-1K\n"
           "  tonari bench coherence --cases invalidate,update --readers 1,3,7\n"
           "  tonari bench coherence --apart network --network tcp --json coherence.json";
  }
  void add_options(CLI::App& command, BenchOptions& options) override {
    command.add_option("--cases", cases_, "Which ones")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("The question");
    add_sizes(command, options, "Pages written before a release; bytes of guarded data handed over",
              fmt::format("{}; {}", usual_pages, usual_bytes));
    command
        .add_option(
            "--readers", readers_,
            "Numbers of ranks that read while one writes, one after the other (default: 1 to 7, with --quick 1,2)")
        ->type_name("LIST")
        ->group("The question");
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override {
    if (options.launch.ranks < 2) throw SetupError("coherence needs two ranks at least: -n 2");
    auto cases = parse_choices("--cases", cases_, all_cases);
    const auto with_readers = std::ranges::stable_partition(cases, std::not_fn(has_readers));
    const std::vector<std::string> of_two(cases.begin(), with_readers.begin());
    std::vector<Launch> launches;
    if (!of_two.empty()) launches.push_back({ask(options, of_two, options.launch.ranks), systems, ""});
    if (with_readers.empty()) return launches;
    for (const int readers : this->readers(options)) {
      const std::vector<std::string> rest(with_readers.begin(), with_readers.end());
      launches.push_back({ask(options, rest, readers + 1), systems, fmt::format("readers {}", readers)});
    }
    return launches;
  }
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"cases", cases_},         {"sizes", sizes(options, usual_pages)}, {"bytes", sizes(options, usual_bytes)},
            {"pages", pages(options)}, {"readers", readers(options)},          {"guarded_bytes", guarded_bytes}};
  }
  [[nodiscard]] std::vector<Metric> metrics() const override {
    return {{"latency", Better::low},
            {"first", Better::low, Metric::Form::untold},
            {"last", Better::low, Metric::Form::untold}};
  }
  [[nodiscard]] std::string tell(const Results& results) const override {
    return Question::tell(results) + tell_readers(results);
  }

 private:
  static constexpr const char* usual_pages = "1,8,64,512";
  static constexpr const char* usual_bytes = "8,256,4K,16K";
  static constexpr int guarded_bytes = 4096;  // in the cases with readers

  [[nodiscard]] Ask ask(const BenchOptions& options, const std::vector<std::string>& cases, int ranks) const {
    Ask ask{"coherence", options.launch, {}};
    ask.launch.ranks = ranks;
    if (ask.launch.apart.empty()) ask.launch.apart = "memory";
    ask.arguments = {worker_option("cases", cases),
                     worker_option("sizes", sizes(options, usual_pages)),
                     worker_option("bytes", sizes(options, usual_bytes)),
                     fmt::format("--pages={}", pages(options)),
                     fmt::format("--guarded-bytes={}", guarded_bytes),
                     fmt::format("--rounds={}", options.quick ? 20 : 100),
                     fmt::format("--budget-us={}", options.quick ? 3000 : 20000)};
    return ask;
  }
  [[nodiscard]] static std::vector<std::size_t> sizes(const BenchOptions& options, std::string_view usual) {
    const std::string_view quick = usual == usual_pages ? "1,64" : "8,4K";
    return parse_sizes("--sizes", options.sizes.value_or(std::string(options.quick ? quick : usual)));
  }
  [[nodiscard]] std::vector<int> readers(const BenchOptions& options) const {
    return parse_ascending("--readers", readers_.value_or(options.quick ? "1,2" : "1,2,3,4,5,6,7"), 1,
                           job::ranks_per_host_max - 1);
  }
  [[nodiscard]] static int pages(const BenchOptions& options) { return options.quick ? 256 : 4096; }

  std::string cases_ = fmt::format("{}", fmt::join(all_cases, ","));
  std::optional<std::string> readers_;
};

const Registered<Coherence> registered(Topic::sharing, 1);

}  // namespace

}  // namespace tonari::bench::driver::coherence
