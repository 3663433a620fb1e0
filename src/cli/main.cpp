#include "cli/command.hpp"
#include "cli/help.hpp"
#include "cli/options.hpp"
#include "cli/saying.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

constexpr int usage_error = 2;

constexpr auto main_footer =
    "Examples:\n"
    "  tonari run -n 4 ./program\n"
    "  tonari far --local 20% -- ./program\n"
    "  tonari bench pingpong --quick\n"
    "\n"
    "Settings are environment variables, TONARI_...: `tonari info --settings` lists them.";

// Started with a standard descriptor closed, the next thing opened would take its number and be written to.
void open_missing_descriptors() {
  for (int number = 0; number <= STDERR_FILENO; ++number) {
    if (::fcntl(number, F_GETFD) < 0) ::open("/dev/null", number == 0 ? O_RDONLY : O_WRONLY);
  }
}

using tonari::cli::command_path;
using tonari::cli::explain;
using tonari::cli::help_text;
using tonari::cli::say;

int refuse(const std::string& command, const std::string& why) {
  say("tonari{}{}: {}\n", command.empty() ? "" : " ", command, why);
  return usage_error;
}

bool has_command(const CLI::App& app, const std::string& name) {
  return !app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; }).empty();
}

/// What we have printed is out, or the exit status says that it is not.
int finish(int exit_status) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_status;
  say("tonari: cannot write standard output: {}\n", std::generic_category().message(errno));
  return exit_status == 0 ? 1 : exit_status;
}

int run_command(int count, char** arguments) {
  int exit_status = 0;
  CLI::App app{"Your neighbour's memory, next door: runs programs that are many processes, and measures how they talk.",
               "tonari"};
  app.formatter_fn([](const CLI::App* of, const std::string&, CLI::AppFormatMode) { return help_text(*of); });
  app.set_help_flag("-h,--help", "Print this text");  // of commands too
  app.set_version_flag("--version", "tonari " TONARI_VERSION, "Print the version");
  app.footer(main_footer);
  app.require_subcommand(1);
  std::vector<std::string> program;
  tonari::cli::add_run(app, program, exit_status);
  tonari::cli::add_far(app, program, exit_status);
  tonari::cli::add_serve(app, exit_status);
  tonari::cli::add_bench(app, exit_status);
  tonari::cli::add_info(app, exit_status);
  tonari::cli::add_status(app, exit_status);
  app.set_help_flag("-h,--help", "Print this text; after a command, what that command takes");

  std::vector<std::string> rest(arguments + std::min(count, 1), arguments + count);
  if (rest.empty()) return refuse("", "a command is missing; see tonari --help");
  const std::string name = rest.front();
  const bool is_option = name.starts_with('-');
  if (!is_option && !has_command(app, name)) return refuse("", "there is no command " + name + "; see tonari --help");
  try {
    if (name == "run" || name == "far") {
      rest.erase(rest.begin());
      program = tonari::cli::take_program(*app.get_subcommand(name), rest);
      rest.insert(rest.begin(), name);
    }
    std::ranges::reverse(rest);  // as CLI11 wants it
    app.parse(std::move(rest));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    const std::string command = command_path(app);
    return refuse(command,
                  fmt::format("{}; see tonari{}{} --help", explain(app, error), command.empty() ? "" : " ", command));
  } catch (const std::exception& error) {
    return refuse(command_path(app), error.what());
  }
  return exit_status;
}

}  // namespace

int main(int count, char** arguments) {
  open_missing_descriptors();
  return finish(run_command(count, arguments));
}
