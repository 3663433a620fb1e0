#include "cli/command.hpp"
#include "cli/launch.hpp"

#include <memory>

namespace tonari::cli {

namespace {

constexpr auto footer =
    "Lines of output stay whole; a line longer than 64 KiB may be passed on in pieces. Standard input goes to rank 0.\n"
    "Ends with the first exit status that is not zero; 128 + the signal for a rank that was killed; 124 after\n"
    "--timeout; 126 or 127 when the program cannot be started. SIGINT and SIGTERM reach every rank; a second one "
    "kills.\n"
    "\n"
    "Examples:\n"
    "  tonari run -n 4 ./lu 2000\n"
    "  tonari run -n 2 --tag-output gdb -batch -ex run -ex bt ./lu";

}  // namespace

std::vector<std::string> take_program(const CLI::App& command, std::vector<std::string>& arguments) {
  auto at = arguments.begin();
  while (at != arguments.end() && at->size() > 1 && at->front() == '-' && *at != "--") {
    const bool is_long = at->starts_with("--");
    const std::string name = is_long ? at->substr(0, at->find('=')) : at->substr(0, 2);
    const bool has_value_with_it = at->size() > name.size();
    const CLI::Option* const option = command.get_option_no_throw(name);
    const bool takes_value = option != nullptr && option->get_items_expected_min() > 0;
    ++at;
    if (takes_value && !has_value_with_it && at != arguments.end()) ++at;
  }
  std::vector<std::string> program{at != arguments.end() && *at == "--" ? at + 1 : at, arguments.end()};
  arguments.erase(at, arguments.end());
  return program;
}

void add_run(CLI::App& app, const std::vector<std::string>& program, int& exit_status) {
  CLI::App& run = *app.add_subcommand("run", "Run a program as N ranks on this machine");
  const auto options = std::make_shared<LaunchOptions>();
  add_rank_options(run, *options);
  run.add_flag("--tag-output", options->tag_output, "Begin each line of output with [rank]");
  run.add_option("--timeout", options->timeout_seconds, "Stop the job after so many seconds, with status 124")
      ->type_name("SECONDS")
      ->check(CLI::Validator{CLI::PositiveNumber}.description(""));
  run.add_option("--env", options->environment,
                 "NAME=VALUE: set it for every rank. NAME: it must be set here; all that is set here is passed on")
      ->type_name("NAME[=VALUE]")
      ->expected(1)
      ->take_all();
  run.add_flag("--stats", options->statistics, "Print every rank's counters to standard error at the end");
  // For the help text: take_program() has taken it away.
  run.add_option_function<std::vector<std::string>>(
         "PROGRAM", [](const auto&) {}, "What to run, and its arguments; options for tonari come before it")
      ->type_name(" ");
  run.footer(footer);
  run.callback([options, &program, &exit_status] {
    options->program = program;
    exit_status = launch(*options);
  });
}

}  // namespace tonari::cli
