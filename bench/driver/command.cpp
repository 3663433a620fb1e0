// `tonari bench`: measures a benchmark for tonari and its rivals in turn, and prints the results.

#include "driver/command.hpp"

#include "base/edit_distance.hpp"
#include "cli/options.hpp"
#include "cli/standard_streams.hpp"
#include "driver/child.hpp"
#include "driver/comparing.hpp"
#include "driver/machine.hpp"
#include "driver/measuring.hpp"
#include "driver/papers.hpp"
#include "driver/registry.hpp"
#include "driver/report.hpp"
#include "driver/run_all.hpp"
#include "driver/verdict.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>

namespace tonari::bench::driver {

namespace {

/// Returns the arguments of this process, without the name of the program.
std::vector<std::string> arguments_of_user() {
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  if (!words.empty()) words.erase(words.begin());
  return words;
}

nlohmann::ordered_json report_of(const Question& question, const BenchOptions& options,
                                 const std::vector<Launch>& launches, const Results& results,
                                 const std::vector<Verdict>& verdicts, const std::vector<std::string>& unfit) {
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
  auto failed = nlohmann::ordered_json::array();
  for (const auto& [system, cause] : results.failed()) failed.push_back({{"system", system}, {"cause", cause}});
  return {{"benchmark", question.name()},          {"version", 2},
          {"machine", machine_as_json()},          {"unfit", unfit},
          {"command", arguments_of_user()},        {"parameters", std::move(parameters)},
          {"failed", std::move(failed)},           {"series", results.series_as_json()},
          {"again", results.again_as_json()},      {"comparisons", comparisons_as_json(results)},
          {"verdicts", verdicts_as_json(verdicts)}};
}

void say_unfit(const std::vector<std::string>& reasons) {
  for (const auto& reason : reasons) cli::print_stderr("tonari bench: warning: {}\n", reason);
}

std::string tell_failed(const Results& results) {
  std::string text;
  for (const auto& [system, cause] : results.failed()) text += fmt::format("\nnot measured: {}: {}\n", system, cause);
  return text;
}

/// Returns the launches of one round, over each of the networks in turn if there are several. Systems without a network
/// are measured once.
std::vector<Launch> plan(const Question& question, BenchOptions& options) {
  if (!options.networks.empty()) options.launch.network = options.networks.front();
  cli::check_network_is_used(options.launch);
  const auto systems = systems_of(question, options);
  if (options.networks.size() < 2) return question.plan(options, systems);
  if (question.is_of_far_memory()) throw SetupError("--network: benchmarks of far memory take one network at a time");
  std::vector<Launch> all;
  for (const auto& network : options.networks) {
    options.launch.network = network;
    for (auto& launch : question.plan(options, systems)) {
      const bool is_first = network == options.networks.front();
      const auto is_local = [&](const System& system) {
        return launch.ask.launch.network.empty() || is_single_process(system);
      };
      if (!is_first) std::erase_if(launch.systems, is_local);
      for (auto& system : launch.systems) {
        if (!is_local(system)) system.network = network;
      }
      if (!launch.systems.empty()) all.push_back(std::move(launch));
    }
  }
  options.launch.network = fmt::format("{}", fmt::join(options.networks, ","));
  return all;
}

int run(const Question& question, BenchOptions options) {
  if (options.launch.ranks == 0) options.launch.ranks = std::max(question.default_ranks(), 0);
  auto launches = plan(question, options);
  for (const auto& launch : launches) {
    for (const auto& system : launch.systems) {
      check_installed(system, launch.ask);
      if (is_tonari(system)) static_cast<void>(cli::settings_of_ranks(launch.ask.launch));
    }
  }
  if (!options.json.empty()) check_writable(options.json);
  const auto findings = findings_of(question.name(), papers_folder());
  auto unfit = unfit_before();
  say_unfit(unfit);
  const auto begin = ProcessorTime::now();
  auto results = measure(question, options, launches);
  const auto stolen = unfit_during(ProcessorTime::now().since(begin));
  say_unfit(stolen);
  unfit.insert(unfit.end(), stolen.begin(), stolen.end());
  question.conclude(results);
  results.judge_by(question.metrics());

  const auto verdicts = judge_all(findings, results);
  const bool is_check = options.quick && question.is_of_far_memory();
  fmt::print("{}: {}\n{}{}{}{}", question.name(), question.asks(),
             is_check ? "--quick: this run checks that the programs work; its data are too small to measure\n" : "",
             tell_noise(results) + question.tell(results), tell_failed(results) + tell_broken_bounds(results),
             tell_verdicts(verdicts));
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "standard output");
  if (!options.json.empty())
    write_report(options.json, report_of(question, options, launches, results, verdicts, unfit));
  const bool is_true = tell_conditions(options.fail_if, readings_of(question.name(), results));
  if (!std::ranges::all_of(results.checks(), &Check::passed)) return 1;
  return is_true ? status_of_true_condition : 0;
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
  command.remove_option(command.get_option("--network"));
  command
      .add_option("--network", options.networks,
                  "The transport between hosts: TCP, verbs by reliable connections (rc) or by datagrams (ud), or the "
                  "fastest of these (any) (default: any). Several are measured in turn, as systems of one table")
      ->type_name("any|tcp|rc|ud,...")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all()
      ->delimiter(',')
      ->check(cli::one_of({"any", "tcp", "rc", "ud"}))
      ->group("Ranks");
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
  command
      .add_flag("--no-noise-floor", options.no_noise_floor,
                "Do not repeat one system in each round. Without its repetition noise may look like a difference")
      ->disable_flag_override()
      ->group("Measuring");
  command.add_flag("--quick", options.quick, "Few sizes, one round: for a first look, and for tests")
      ->disable_flag_override()
      ->group("Measuring");
  command
      .add_option("--json", options.json, "Write everything measured to this file, at the end and whole or not at all")
      ->type_name("FILE")
      ->group("Measuring");
  add_fail_if(command, options.fail_if)->group("Measuring");
}

/// Adds `bench all`, or `bench papers`.
void add_run_all(CLI::App& bench, int& exit_status, bool papers, const TellPapers& tell_papers) {
  const auto options = std::make_shared<AllOptions>();
  options->papers = papers;
  options->tell_papers = tell_papers;
  CLI::App& command =
      *bench
           .add_subcommand(papers ? "papers" : "all", papers ? "Run the benchmarks behind the five papers' tables, "
                                                               "figures and findings, and set both side by side."
                                                             : "Run all benchmarks, with all rivals of this machine.")
           ->group("Benchmarks");
  command.add_option("NAME", options->only, "Only these benchmarks");
  command.add_option("-o,--output", options->folder, "The folder of the results; it is made if it is missing")
      ->type_name("DIR")
      ->required();
  const auto add_effort = [&](const char* name, Effort effort, const char* help) {
    return command
        .add_flag_callback(
            name, [options, effort] { options->effort = effort; }, help)
        ->disable_flag_override();
  };
  auto* const quick = add_effort("--quick", Effort::quick, "Few sizes, one round: minutes, for a first look");
  add_effort("--full", Effort::full, "Ten rounds instead of five: smaller differences are seen")->excludes(quick);
  command.footer(
      "Each benchmark NAME leaves NAME.json and NAME.txt in the folder. The same command continues an interrupted "
      "run: benchmarks whose results are there, from this version of tonari, are not run again. A benchmark that fails "
      "does not end the run. At the end: the papers' tables and figures with the numbers that they print, beside the "
      "results in the folder; also as papers.md in the folder.");
  command.callback([options, &exit_status] { exit_status = run_all(*options); });
}

}  // namespace

void add_bench(CLI::App& app, int& exit_status, const TellPapers& tell_papers) {
  CLI::App& bench = *app.add_subcommand("bench", "Measure tonari, and its rivals in the same run.")->group("Commands");
  bench.footer(
      "Without a name: lists the benchmarks. `tonari bench NAME --help` shows what a benchmark takes.\n\n"
      "Examples:\n"
      "  tonari bench pingpong --quick\n"
      "  tonari bench lu --rival openmpi,mpich --json lu.json\n"
      "  tonari bench all --quick -o results\n"
      "  tonari report results -o report.html    # one page with charts");
  const auto name = std::make_shared<std::string>();
  bench.add_flag_callback(
      "--list", [] {}, "List the benchmarks with their questions, as without a name");
  add_run_all(bench, exit_status, false, tell_papers);
  add_run_all(bench, exit_status, true, tell_papers);
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
