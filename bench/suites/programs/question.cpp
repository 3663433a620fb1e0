// `tonari bench programs`: its options, launches and tables. See catalog.py and worker.py.

#include "driver/question.hpp"
#include "driver/far_question.hpp"
#include "driver/registry.hpp"

#include "cli/options.hpp"
#include "cli/table.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

namespace tonari::bench::driver::programs {

namespace {

namespace fs = std::filesystem;

const std::vector<std::string> all_programs{
    "R",         "pandas", "polars", "duckdb", "pyarrow", "numpy",       "scikit-learn", "scipy", "redis",
    "memcached", "sqlite", "sort",   "xz",     "zstd",    "imagemagick", "g++",          "javac", "perl"};
constexpr double all_local = 100;
/// tonari limited a program if its peak memory is below this part of the local run's, by at least so many MiB: the
/// worker asks for the memory now and then, so that differences of less say nothing.
constexpr double limited_part_max = 0.9;
constexpr double limited_mib_min = 4;
constexpr double bytes_per_mib = 1 << 20;

/// A folder of this process for the inputs of programs and the files that they write.
class Folder {
 public:
  explicit Folder(const fs::path& parent) : path_(parent / fmt::format("tonari-bench-{}.inputs", ::getpid())) {
    std::error_code error;
    fs::create_directory(path_, error);
    if (error) {
      throw SetupError(
          fmt::format("cannot make {}: {}; --folder says where files are made", path_.string(), error.message()));
    }
  }
  Folder(Folder&&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Throws SetupError if a folder has too little space for the inputs and results of programs.
void check_space(const fs::path& folder, std::size_t programs) {
  constexpr std::uintmax_t largest_bytes = 128 << 20;  // of one program; see catalog.py
  constexpr std::uintmax_t average_bytes = 32 << 20;
  const auto needed_bytes = largest_bytes + programs * average_bytes;
  std::error_code error;
  const auto space = fs::space(folder, error);
  if (error || space.available >= needed_bytes) return;
  throw SetupError(
      fmt::format("{} has {} MiB of free space, and the inputs need {}; --folder says where files are made",
                  folder.string(), space.available >> 20, needed_bytes >> 20));
}

/// The runs of one program by one system, at one share of local memory.
struct Outcome {
  double time_s = 0;  ///< The median. Runs that were too slow count with the time limit.
  double memory_mib = 0;
  bool is_late = false;    ///< The median is of runs that were too slow.
  bool is_killed = false;  ///< The kernel killed it in some round, for lack of memory; other rounds may have a time.

  [[nodiscard]] bool has_time() const { return time_s > 0; }
  [[nodiscard]] std::string text() const {
    if (has_time()) return (is_late ? "> " : "") + format_number(time_s);
    return is_killed ? "killed" : "-";
  }
};

class Outcomes {
 public:
  explicit Outcomes(const Results& results) : results_(results) {}

  /// Returns all samples of a metric, in the order of rounds.
  [[nodiscard]] std::vector<double> samples(const std::string& system, const std::string& program,
                                            std::string_view metric, double x) const {
    for (const auto& series : results_.series()) {
      const auto& name = series.name;
      if (name.system == system && name.label == program && name.metric == metric) return series.samples(x);
    }
    return {};
  }

  [[nodiscard]] Outcome of(const std::string& system, const std::string& program, double x) const {
    auto times = samples(system, program, "time", x);
    const auto late = samples(system, program, "late", x);
    times.insert(times.end(), late.begin(), late.end());
    return {.time_s = summarize(times).median,
            .memory_mib = summarize(samples(system, program, "memory", x)).median,
            .is_late = !late.empty() && 2 * late.size() >= times.size(),
            .is_killed = !samples(system, program, "killed", x).empty()};
  }

  /// Returns the memory that the last run of tonari used. If a run was too slow, returns at least the share of the
  /// memory that the program has without tonari, which such a run may never have reached.
  [[nodiscard]] double used_mib(const std::string& program, double x, double local_mib) const {
    const auto used = samples("tonari", program, "memory", x);
    const double used_mib = used.empty() ? 0 : used.back();
    return !samples("tonari", program, "late", x).empty() ? std::max(used_mib, local_mib * x / 100) : used_mib;
  }

  /// Returns whether `tonari far` limited the program's memory: at its peak it had clearly less than alone.
  [[nodiscard]] bool is_limited(const std::string& program, double x) const {
    const double local_mib = of("local", program, all_local).memory_mib;
    return of("tonari", program, x).memory_mib < std::min(limited_part_max * local_mib, local_mib - limited_mib_min);
  }

  /// Returns the names of the programs that are not installed.
  [[nodiscard]] std::vector<std::string> missing() const {
    std::vector<std::string> names;
    for (const auto& series : results_.series()) {
      if (series.name.metric == "missing") names.push_back(series.name.label);
    }
    return names;
  }

 private:
  const Results& results_;
};

double geometric_mean(const std::vector<double>& ratios) {
  double logarithms = 0;
  for (const double ratio : ratios) logarithms += std::log(ratio);
  return std::exp(logarithms / static_cast<double>(ratios.size()));
}

/// The tables of one run.
class Tables {
 public:
  explicit Tables(const Results& results) : outcomes_(results) {
    for (const auto& series : results.series()) {
      const auto& name = series.name;
      if (name.system == "local" && name.metric == "time") programs_.push_back(name.label);
      if (name.system == "tonari") {
        for (const auto& point : series.points) shares_.insert(point.first);
      }
    }
    std::ranges::copy_if(results.systems(), std::back_inserter(rivals_),
                         [](const auto& system) { return system != "local" && system != "tonari"; });
  }

  [[nodiscard]] std::string text() const {
    std::string text;
    for (auto x = shares_.rbegin(); x != shares_.rend(); ++x) text += share_text(*x);
    return shares_.size() > 1 ? text + slowdown_text() : text;
  }

 private:
  /// The programs at one share of local memory: time and memory, and the ratio to each rival.
  [[nodiscard]] std::string share_text(double x) const {
    std::vector<std::vector<std::string>> rows{{"program", "local", "MiB", "tonari", "MiB"}};
    for (const auto& rival : rivals_) rows[0].insert(rows[0].end(), {rival, "ratio"});
    std::map<std::string, std::vector<double>> ratios;
    std::vector<std::string> unlimited;
    for (const auto& program : programs_) {
      const auto local = outcomes_.of("local", program, all_local);
      const auto tonari = outcomes_.of("tonari", program, x);
      auto& row = rows.emplace_back();
      const bool is_limited = outcomes_.is_limited(program, x);
      if (!is_limited && tonari.has_time()) unlimited.push_back(program);
      row = {program, local.text(), memory_text(local), tonari.text(), memory_text(tonari)};
      for (const auto& rival : rivals_) {
        const auto other = outcomes_.of(rival, program, x);
        const bool both = is_limited && tonari.has_time() && other.has_time() && !(tonari.is_late && other.is_late);
        row.insert(row.end(), {other.text(), both ? fmt::format("{:.2f}x", tonari.time_s / other.time_s) : "-"});
        if (both) ratios[rival].push_back(tonari.time_s / other.time_s);
      }
    }
    auto text = fmt::format("\n{:.0f} % local: time, s, median; peak memory; time of tonari / time of the rival\n{}", x,
                            cli::format_table(rows));
    for (const auto& rival : rivals_) text += summary_text(rival, x, ratios[rival]);
    if (x < all_local && !unlimited.empty()) {
      text += fmt::format("not limited (as much memory as alone), so in no mean: {}\n", fmt::join(unlimited, ", "));
    }
    return text;
  }

  [[nodiscard]] std::string summary_text(const std::string& rival, double x, const std::vector<double>& ratios) const {
    const auto means = ratios.empty() ? std::string("no ratio")
                                      : fmt::format("median {:.2f}x, geometric mean {:.2f}x, of {} program{}",
                                                    summarize(ratios).median, geometric_mean(ratios), ratios.size(),
                                                    ratios.size() == 1 ? "" : "s");
    return fmt::format("tonari / {}: {}{}\n", rival, means, killed_text(rival, x));
  }

  /// The time under tonari against the share of local memory.
  [[nodiscard]] std::string slowdown_text() const {
    std::vector<std::vector<std::string>> rows{{"program"}};
    std::map<double, std::vector<double>> ratios;
    for (auto x = shares_.rbegin(); x != shares_.rend(); ++x) rows[0].push_back(fmt::format("{:.0f} %", *x));
    for (const auto& program : programs_) {
      auto& row = rows.emplace_back();
      row.push_back(program);
      const double local_s = outcomes_.of("local", program, all_local).time_s;
      for (auto x = shares_.rbegin(); x != shares_.rend(); ++x) {
        const auto tonari = outcomes_.of("tonari", program, *x);
        row.push_back(!tonari.has_time() ? "-" : fmt::format("{:.2f}x", tonari.time_s / local_s));
        const bool counts = *x == all_local || outcomes_.is_limited(program, *x);
        if (tonari.has_time() && counts) ratios[*x].push_back(tonari.time_s / local_s);
      }
    }
    auto& last = rows.emplace_back();
    last.emplace_back("geometric mean");
    for (auto x = shares_.rbegin(); x != shares_.rend(); ++x) {
      last.push_back(ratios[*x].empty() ? "-" : fmt::format("{:.2f}x", geometric_mean(ratios[*x])));
    }
    return fmt::format("\ntime of tonari / time with all memory local\n{}", cli::format_table(rows));
  }

  /// Names the programs that the kernel killed in all rounds, and the programs that it killed in some.
  [[nodiscard]] std::string killed_text(const std::string& rival, double x) const {
    std::vector<std::string> always;
    std::vector<std::string> sometimes;
    for (const auto& program : programs_) {
      const auto outcome = outcomes_.of(rival, program, x);
      if (outcome.is_killed) (outcome.has_time() ? sometimes : always).push_back(program);
    }
    return (always.empty() ? "" : fmt::format("; killed: {}", fmt::join(always, ", "))) +
           (sometimes.empty() ? "" : fmt::format("; killed in some rounds: {}", fmt::join(sometimes, ", ")));
  }

  static std::string memory_text(const Outcome& outcome) {
    return outcome.memory_mib == 0 ? "-" : fmt::format("{:.0f}", outcome.memory_mib);
  }

  Outcomes outcomes_;
  std::vector<std::string> programs_;
  std::vector<std::string> rivals_;
  std::set<double> shares_;
};

/// Names the runs for which this metric is not 0: "sort (tonari at 20 %)".
std::vector<std::string> runs_with(const Results& results, std::string_view metric) {
  std::vector<std::string> runs;
  for (const auto& [name, points, better] : results.series()) {
    if (name.metric != metric) continue;
    for (const auto& [x, rounds] : points) {
      const bool is_nonzero = std::ranges::any_of(rounds, [](const auto& round) { return round.second.at(0) != 0; });
      if (is_nonzero) runs.push_back(fmt::format("{} ({} at {:.0f} %)", name.label, name.system, x));
    }
  }
  return runs;
}

class Programs final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "programs"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how long do programs of other projects take when their memory is partly local?";
  }
  [[nodiscard]] int default_ranks() const override { return no_ranks; }
  [[nodiscard]] bool is_of_far_memory() const override { return true; }
  [[nodiscard]] std::string rivals() const override {
    return "swap-zram and swap-file, the kernel's swapping, in a memory cgroup of the size that program and keeper "
           "used under `tonari far`. They need root, and switch swap on for the whole machine meanwhile";
  }
  [[nodiscard]] std::vector<UsualRun> usual_runs(bool quick) const override {
    if (quick) return {{"", {"--rival", "auto"}}};
    return {{"", {"--rounds", "2", "--local", "20,50,80", "--rival", "auto"}}};
  }
  [[nodiscard]] std::string_view examples() const override;

  void add_options(CLI::App& command, BenchOptions& options) override;
  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] bool complete(Ask& ask, const System& system, const Results& results) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override;
  void conclude(Results& results) const override;
  [[nodiscard]] std::vector<Metric> metrics() const override { return {{"time", Better::low}}; }
  [[nodiscard]] std::string tell(const Results& results) const override;

 private:
  [[nodiscard]] std::vector<std::string> programs(const BenchOptions& options) const {
    if (!programs_) return options.quick ? std::vector<std::string>{"redis", "sqlite", "imagemagick"} : all_programs;
    return parse_choices("--programs", *programs_, all_programs);
  }
  [[nodiscard]] std::vector<int> local(const BenchOptions& options) const {
    return parse_ascending("--local", local_.value_or(options.quick ? "20" : "10,20,50,80"), 1, 100);
  }

  std::optional<std::string> programs_;
  std::optional<std::string> local_;
  int time_limit_s_ = 60;
  std::string heap_ = "R";
  FarLaunch launch_;
  std::string folder_ = "/var/tmp";
};

std::string_view Programs::examples() const {
  return "Prints for each share of local memory the median time of each program, its peak memory, and the time under "
         "`tonari far` divided by that of each rival. Memory is what the kernel counts as anonymous (RssAnon), of the "
         "program and all processes of tonari beside it. The output of each run is compared with that of the local "
         "run. Programs that are not installed are left out: scripts/setup programs installs them.\n"
         "\n"
         "Examples:\n"
         "  tonari bench programs --quick\n"
         "  tonari bench programs --local 20 --rounds 1 --rival swap-zram\n"
         "  tonari bench programs --rival swap-zram,swap-file --json programs.json";
}

void Programs::add_options(CLI::App& command, BenchOptions&) {
  command
      .add_option("--programs", programs_,
                  fmt::format("Some of {} (default: all, with --quick redis,sqlite,imagemagick)",
                              fmt::join(all_programs, ", ")))
      ->type_name("LIST")
      ->group("The question");
  command
      .add_option(
          "--local", local_,
          "Far data that may be local, each from 1 to 100 per cent of the program's peak memory alone (default: "
          "10,20,50,80, with --quick 20)")
      ->type_name("LIST")
      ->group("The question");
  command
      .add_option("--time-limit", time_limit_s_,
                  "End a run after this number of seconds, from 1 to 86400, and report it as too slow")
      ->type_name("SECONDS")
      ->transform(cli::whole_number("a number of seconds", 1, 86400))
      ->capture_default_str()
      ->group("The question");
  command.add_option("--heap", heap_, "Programs whose small objects are far, too, as for `tonari far`; or none")
      ->type_name("LIST")
      ->capture_default_str()
      ->group("Memory");
  add_far_launch_options(command, launch_);
  command.add_option("--folder", folder_, "Where inputs and swap files are made: on a disk")
      ->type_name("PATH")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str()
      ->group("Memory");
}

std::vector<Launch> Programs::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  if (options.rivals_only) {
    throw SetupError("--rivals-only: rivals get the memory that the same run of tonari used; leave the option out");
  }
  const auto parent = fs::absolute(folder_);
  const auto chosen = programs(options);
  std::vector<std::string> heap_choices = all_programs;
  heap_choices.emplace_back("none");
  const auto with_heap = parse_choices("--heap", heap_, heap_choices);
  check_space(parent, chosen.size());
  const auto folder = std::make_shared<const Folder>(parent);
  std::vector<Launch> launches;
  for (const auto& program : chosen) {
    Ask ask{"programs",
            options.launch,
            {"--inputs=" + folder->path().string(), fmt::format("--time-limit-s={}", time_limit_s_)}};
    ask.far = FarAsk{.launch = launch_, .folder = parent, .program = program, .inputs = folder};
    ask.far->launch.heap = std::ranges::find(with_heap, program) != with_heap.end();
    launches.push_back({ask, {{Family::local, false}}, program});
    for (const int percent : local(options)) {
      ask.far->local_percent = percent;
      const bool has_rivals = percent < all_local;
      launches.push_back({ask, has_rivals ? systems : std::vector<System>{{Family::tonari, false}},
                          fmt::format("{} local {}", program, percent)});
    }
  }
  return launches;
}

/// Gives the output of the local run, and the memory that tonari used.
bool Programs::complete(Ask& ask, const System& system, const Results& results) const {
  const auto& program = ask.far->program;
  const auto known = results.parameters().find("local " + program);
  if (known != results.parameters().end()) {
    ask.arguments.push_back("--expect=" + (*known)["digest"].get<std::string>());
  }
  if (system.family == Family::local) return true;
  if (known == results.parameters().end()) return false;  // not installed, or it failed
  const Outcomes outcomes(results);
  const double local_mib = outcomes.of("local", program, all_local).memory_mib;
  ask.far->data_bytes = static_cast<std::uint64_t>(local_mib * bytes_per_mib);
  ask.far->limit_bytes =
      static_cast<std::uint64_t>(outcomes.used_mib(program, ask.far->local_percent, local_mib) * bytes_per_mib);
  return true;
}

nlohmann::ordered_json Programs::parameters(const BenchOptions& options) const {
  return {{"programs", programs(options)},
          {"local", local(options)},
          {"time_limit_s", time_limit_s_},
          {"servers", or_default(launch_.servers)},
          {"memory", or_default(launch_.memory)},
          {"faults", or_default(launch_.faults)},
          {"heap", heap_}};
}

void Programs::conclude(Results& results) const {
  if (Outcomes(results).missing().size() == results.series().size()) {
    throw SetupError("none of the programs is installed; run: scripts/setup programs");
  }
}

std::string Programs::tell(const Results& results) const {
  auto text = Tables(results).text();
  const auto add = [&](std::string_view what, const std::vector<std::string>& names) {
    if (!names.empty()) text += fmt::format("{}: {}\n", what, fmt::join(names, ", "));
  };
  text += "\n";
  add("not installed: scripts/setup programs", Outcomes(results).missing());
  add("too slow, ended after the time limit", runs_with(results, "late"));
  add("WRONG, the output differs from that of the local run", runs_with(results, "differs"));
  add("WRONG, the output is too short", runs_with(results, "short"));
  add("WRONG, the exit status is not 0", runs_with(results, "failed"));
  const bool passed = std::ranges::all_of(results.checks(), &Check::passed);
  if (passed) text += fmt::format("results of {} checks: all as they should be\n", results.checks().size());
  return text;
}

const Registered<Programs> registered(Topic::far_memory, 6);

}  // namespace

}  // namespace tonari::bench::driver::programs
