#include "cli/program.hpp"

#include "cli/command.hpp"
#include "cli/command_line.hpp"

#include <utility>

namespace tonari::cli {

namespace {

constexpr auto main_footer =
    "Examples:\n"
    "  tonari run -n 4 ./program\n"
    "  tonari far --local 20% -- ./program\n"
    "  tonari bench pingpong --quick\n"
    "  tonari help run\n"
    "\n"
    "Settings are environment variables, TONARI_...: `tonari info --settings` lists them.";

}  // namespace

int run_program(std::vector<std::string> arguments, void (*add_bench)(CLI::App&, int&)) {
  int exit_status = 0;
  std::vector<std::string> program;
  CLI::App app{"Runs parallel programs and programs that need more memory than their machine has, and measures both.",
               "tonari"};
  set_up(app);
  app.footer(main_footer);
  app.require_subcommand(1);
  add_run(app, program, exit_status);
  add_far(app, program, exit_status);
  add_serve(app, exit_status);
  add_bench(app, exit_status);
  add_info(app, exit_status);
  add_status(app, exit_status);
  add_env(app, exit_status);
  add_help(app);
  add_version(app);
  add_generate(app);
  app.set_help_flag("-h,--help", "Print this text; after a command, print the command's options");
  return run_command_line(app, std::move(arguments), exit_status, &program);
}

}  // namespace tonari::cli
