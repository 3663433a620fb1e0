#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/standard_streams.hpp"

#include <algorithm>
#include <string>
#include <vector>

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

int main(int count, char** arguments) {
  tonari::cli::open_missing_descriptors();
  int exit_status = 0;
  std::vector<std::string> program;
  CLI::App app{"Your neighbour's memory, next door: runs programs that are many processes, and measures how they talk.",
               "tonari"};
  tonari::cli::set_up(app);
  app.footer(main_footer);
  app.require_subcommand(1);
  tonari::cli::add_run(app, program, exit_status);
  tonari::cli::add_far(app, program, exit_status);
  tonari::cli::add_serve(app, exit_status);
  tonari::cli::add_bench(app, exit_status);
  tonari::cli::add_info(app, exit_status);
  tonari::cli::add_status(app, exit_status);
  tonari::cli::add_help(app);
  tonari::cli::add_version(app);
  app.set_help_flag("-h,--help", "Print this text; after a command, what that command takes");
  return tonari::cli::run_command_line(app, {arguments + std::min(count, 1), arguments + count}, exit_status, &program);
}
