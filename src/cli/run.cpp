#include "cli/command.hpp"
#include "cli/launch.hpp"
#include "cli/options.hpp"

#include <memory>

namespace tonari::cli {

namespace {

constexpr auto run_footer =
    "Output: lines of different ranks do not mix; one longer than 64 KiB may be forwarded in pieces. If standard "
    "output "
    "cannot be written, the job is stopped with status 1. Standard input goes to rank 0.\n"
    "\n"
    "Signals: SIGINT (Ctrl-C) and SIGTERM reach every rank; a second one kills.\n"
    "\n"
    "Several hosts: --hosts executes the launcher that is installed: srun inside a Slurm allocation, otherwise mpirun "
    "of "
    "Open MPI or prterun. It handles output, signals and the exit status. Variables TONARI_..., UCX_... and those "
    "named "
    "by --env are passed to all hosts; the program must be there under the same name.\n"
    "\n"
    "Exit status: the first status of a rank that is not zero; 128 + the signal for a rank that was killed; 124 after "
    "--timeout; 126 or 127 if the program cannot be started; 2 for a wrong command line.\n"
    "\n"
    "Examples:\n"
    "  tonari run -n 4 ./lu 2000\n"
    "  tonari run -n 2 --env TONARI_SPLIT=16 --stats ./lu 2000\n"
    "  tonari run -n 8 --hosts node1,node2 ./lu 2000\n"
    "  tonari run -n 2 --tag-output gdb -batch -ex run -ex bt ./lu";

}  // namespace

void add_run(CLI::App& app, const std::vector<std::string>& program, int& exit_status) {
  CLI::App& run =
      *app.add_subcommand("run", "Run a program as N ranks, on this machine or on several hosts.")->group("Commands");
  const auto options = std::make_shared<LaunchOptions>();
  // For the help text and run_command_line().
  run.add_option_function<std::vector<std::string>>(
         "PROGRAM", [](const auto&) {}, "The program, and its arguments; tonari's options come before it")
      ->option_text("[--] PROGRAM [ARGUMENTS...]")
      ->group("Program");
  add_rank_options(run, *options);
  // A function, because CLI11 treats an empty text as no value of a std::optional.
  run.add_option_function<std::string>(
         "--hosts", [options](const std::string& text) { options->hosts = text; },
         "Start the ranks on these hosts, or on this number of the launcher's hosts, through the launcher that is "
         "installed; -n counts the ranks of all hosts together (default: one rank per host)")
      ->type_name("LIST|N")
      ->group("Ranks");
  run.add_option(
         "--env", options->environment,
         "Set a variable for every rank. Without a value, it must be set here; ranks on this machine inherit all "
         "variables in any case. May be given more than once")
      ->type_name("NAME[=VALUE]")
      ->expected(1)
      ->take_all()
      ->check(variable())
      ->group("Ranks");
  run.add_option("--timeout", options->timeout_seconds,
                 "Stop the job after this time, with status 124 (default: no limit)")
      ->type_name("SECONDS")
      ->check(seconds())
      ->group("Ranks");
  run.add_flag("--tag-output", options->tag_output, "Begin each line of output with [rank]")
      ->disable_flag_override()
      ->group("Output");
  run.add_flag("--stats", options->statistics, "Print every rank's counters to standard error at the end")
      ->disable_flag_override()
      ->group("Output");
  run.footer(run_footer);
  run.callback([options, &program, &exit_status] {
    options->program = program;
    exit_status = launch(*options);
  });
}

}  // namespace tonari::cli
