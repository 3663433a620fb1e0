// `tonari bench`: measures a benchmark for tonari and its rivals in turn, and prints the results.

#include "driver/command.hpp"

#include "base/edit_distance.hpp"
#include "cli/options.hpp"
#include "cli/standard_streams.hpp"
#include "driver/child.hpp"
#include "driver/machine.hpp"
#include "driver/registry.hpp"
#include "driver/report.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

namespace tonari::bench::driver {

namespace {

/// Shows progress on standard error: one changing line on a terminal, otherwise one line per launch.
class Progress {
 public:
  void begin(const std::string& what) {
    what_ = what;
    if (!terminal_) cli::print_stderr("{}\n", what);
    show("");
  }
  void show(const std::string& detail) {
    if (!terminal_) return;
    cli::print_stderr("\r\033[K{}  {}", what_, detail);
    std::fflush(stderr);
  }
  void end() const {
    if (terminal_) cli::print_stderr("\r\033[K");
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::string what_;
};

/// Runs one launch of a system's workers; adds their output to `results`.
void launch_workers(const Launch& launch, const System& system, Results& results, Progress& progress) {
  ResultFile file;
  const auto command = command_for(system, launch.ask, file.path());
  results.begin_worker(launch.note);
  const int status = run_child(command, [&] {
    file.read_lines([&](std::string_view line) { results.take(line); });
    progress.show(results.progress());
  });
  if (status == 0 && results.end_worker()) return;
  progress.end();
  throw SetupError(fmt::format("{} ended with status {}{}; it was asked: {}", to_string(system), status,
                               status == 0 ? ", before it was done" : "", to_string(command)));
}

std::vector<System> systems_of(const BenchOptions& options) {
  std::vector<System> systems;
  if (!options.rivals_only) systems.push_back({Family::tonari, false});
  for (const auto& rival : parse_rivals(options.rivals)) systems.push_back(rival);
  if (systems.empty()) throw SetupError("--rivals-only without rivals: say which, --rival openmpi,mpich");
  return systems;
}

int rounds_of(const BenchOptions& options) { return options.rounds > 0 ? options.rounds : options.quick ? 1 : 5; }

void say_left_out(const Question& question, const System& system, const SetupError& error) {
  cli::print_stderr("tonari bench {}: without --rival {}: {}\n", question.name(), to_string(system), error.what());
}

/// Throws SetupError if only rivals were to be measured, and all of them are `missing`.
void check_rivals_left(const BenchOptions& options, const std::vector<System>& missing) {
  const auto is_missing = [&](const auto& system) { return std::ranges::count(missing, system) > 0; };
  if (options.rivals_only && std::ranges::all_of(parse_rivals(options.rivals), is_missing)) {
    throw SetupError(
        fmt::format("--rivals-only: none of the rivals {} can be measured here", fmt::join(options.rivals, ", ")));
  }
}

/// Removes the rivals for which this machine cannot limit memory, and says why. Returns them. A StopSignals must exist,
/// so that a signal does not leave a trial behind.
std::vector<System> leave_out_rivals(const Question& question, std::vector<Launch>& launches) {
  std::vector<System> tried;
  std::vector<System> missing;
  for (const auto& launch : launches) {
    for (const auto& system : launch.systems) {
      if (std::ranges::find(tried, system) != tried.end()) continue;
      tried.push_back(system);
      try {
        try_surroundings(system, launch.ask);
      } catch (const SetupError& error) {
        say_left_out(question, system, error);
        missing.push_back(system);
      }
    }
  }
  for (auto& launch : launches) {
    std::erase_if(launch.systems, [&](const auto& system) { return std::ranges::count(missing, system) > 0; });
  }
  return missing;
}

/// Runs all launches, without the rivals that it removes from them. A rival whose memory cannot be limited later on is
/// left out from then on.
Results measure(const Question& question, const BenchOptions& options, std::vector<Launch>& launches) {
  const StopSignals signals;
  auto missing = leave_out_rivals(question, launches);
  check_rivals_left(options, missing);
  const int rounds = rounds_of(options);
  Results results;
  Progress progress;
  bool has_measured = false;
  for (int round = 1; round <= rounds; ++round) {
    for (const auto& launch : launches) {
      for (const auto& system : launch.systems) {
        if (std::ranges::count(missing, system) > 0) continue;
        auto completed = launch;
        if (!question.complete(completed.ask, system, results)) continue;
        progress.begin(fmt::format("round {} of {}: {} {}", round, rounds, to_string(system), launch.note));
        std::unique_ptr<MadeTight> surroundings;
        try {
          surroundings = make_surroundings(system, completed.ask);
        } catch (const SetupError& error) {
          progress.end();
          say_left_out(question, system, error);
          missing.push_back(system);
          continue;
        }
        launch_workers(completed, system, results, progress);
        has_measured |= system.family != Family::local;
      }
    }
  }
  progress.end();
  if (!has_measured) check_rivals_left(options, missing);
  return results;
}

nlohmann::ordered_json report_of(const Question& question, const BenchOptions& options,
                                 const std::vector<Launch>& launches, const Results& results) {
  nlohmann::ordered_json parameters{{"ranks", options.launch.ranks},
                                    {"bind", options.launch.bind.empty() ? "default" : options.launch.bind},
                                    {"apart", options.launch.apart.empty() ? "none" : options.launch.apart},
                                    {"network", options.launch.network.empty() ? "any" : options.launch.network},
                                    {"rounds", rounds_of(options)},
                                    {"quick", options.quick},
                                    {"samples_kept_max", Results::samples_max}};
  parameters.update(question.parameters(options));
  parameters["workers"] = results.parameters();
  auto& commands = parameters["commands"] = nlohmann::ordered_json::array();
  for (const auto& launch : launches) {
    for (const auto& system : launch.systems) commands.push_back(to_string(command_for(system, launch.ask, "RESULTS")));
  }
  return {{"benchmark", question.name()},
          {"version", 1},
          {"machine", machine_as_json()},
          {"parameters", std::move(parameters)},
          {"series", results.series_as_json()}};
}

int run(const Question& question, BenchOptions options) {
  if (options.launch.ranks == 0) options.launch.ranks = std::max(question.default_ranks(), 0);
  cli::check_network_is_used(options.launch);
  auto launches = question.plan(options, systems_of(options));
  for (const auto& launch : launches) {
    for (const auto& system : launch.systems) {
      check_installed(system, launch.ask);
      if (is_tonari(system)) static_cast<void>(cli::settings_of_ranks(launch.ask.launch));
    }
  }
  if (!options.json.empty()) check_writable(options.json);
  auto results = measure(question, options, launches);
  question.conclude(results);

  fmt::print("{}: {}\n{}", question.name(), question.asks(), question.tell(results));
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "standard output");
  if (!options.json.empty()) write_report(options.json, report_of(question, options, launches, results));
  return std::ranges::all_of(results.checks(), &Check::passed) ? 0 : 1;
}

int run_or_stop(const Question& question, const BenchOptions& options) {
  try {
    return run(question, options);
  } catch (const Interrupted& stop) {
    cli::print_stderr("\ntonari bench: stopped by signal {}; nothing was written\n", stop.signal);
    return 128 + stop.signal;
  }
}

void list_questions() {
  fmt::print("Benchmarks, each with its question:\n");
  for (const auto& question : all_questions()) fmt::print("  {:<12} {}\n", question->name(), question->asks());
  fmt::print("\n`tonari bench NAME --help` tells more.\n");
}

[[noreturn]] void refuse(const std::string& name) {
  const auto questions = all_questions();
  std::vector<std::string_view> known;
  known.reserve(questions.size());
  for (const auto& question : questions) known.push_back(question->name());
  const auto meant = likely_meant(name, known);
  const auto hint = meant.empty() ? "" : fmt::format("did you mean {}? ", meant);
  const auto last = known.back();
  known.pop_back();
  throw SetupError(fmt::format("no benchmark is called '{}'; {}there are {} and {}; `tonari bench` says what they ask",
                               name, hint, fmt::join(known, ", "), last));
}

void add_common_options(CLI::App& command, BenchOptions& options, const Question& question) {
  const int default_ranks = question.default_ranks();
  if (default_ranks == Question::no_ranks) {
    cli::add_network_options(command, options.launch);
  } else if (default_ranks == 0) {
    cli::add_placement_options(command, options.launch);
  } else {
    cli::add_rank_options(command, options.launch, std::to_string(default_ranks));
  }
  command.add_option("--rival", options.rivals, fmt::format("Measure these too, in turn: {}", question.rivals()))
      ->type_name("NAME,...")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all()
      ->delimiter(',')
      ->group("Measuring");
  command.add_flag("--rivals-only", options.rivals_only, "Leave tonari out")
      ->disable_flag_override()
      ->group("Measuring");
  command
      .add_option("--rounds", options.rounds,
                  "How often every system is measured, in turn, from 1 to 1000 (default: 5, with --quick 1)")
      ->type_name("N")
      ->transform(cli::whole_number("a number of rounds", 1, 1000))
      ->group("Measuring");
  command.add_flag("--quick", options.quick, "Few sizes, one round: for a first look, and for tests")
      ->disable_flag_override()
      ->group("Measuring");
  command
      .add_option("--json", options.json, "Write everything measured to this file, at the end and whole or not at all")
      ->type_name("FILE")
      ->group("Measuring");
}

}  // namespace

void add_bench(CLI::App& app, int& exit_status) {
  CLI::App& bench = *app.add_subcommand("bench", "Measure tonari, and its rivals in the same run.")->group("Commands");
  bench.footer(
      "Without a name: lists the benchmarks. `tonari bench NAME --help` shows what a benchmark takes.\n\n"
      "Examples:\n"
      "  tonari bench pingpong --quick\n"
      "  tonari bench lu --rival openmpi,mpich --json lu.json");
  const auto name = std::make_shared<std::string>();
  bench.add_option("NAME", *name)->group("");  // takes unknown names, to explain them; hidden from the help text
  for (auto& made : all_questions()) {
    const std::shared_ptr<Question> question = std::move(made);
    CLI::App& command =
        *bench.add_subcommand(std::string(question->name()), std::string(question->asks()))->group("Benchmarks");
    const auto options = std::make_shared<BenchOptions>();
    question->add_options(command, *options);
    add_common_options(command, *options, *question);
    command.footer(std::string(question->examples()));
    command.callback([question, options, &exit_status] { exit_status = run_or_stop(*question, *options); });
  }
  bench.callback([&bench, name] {
    if (!bench.get_subcommands().empty()) return;
    if (!name->empty()) refuse(*name);
    list_questions();
  });
}

}  // namespace tonari::bench::driver
