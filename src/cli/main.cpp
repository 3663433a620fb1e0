#include "cli/command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int usage_error = 2;

// Started with a standard descriptor closed, the next thing opened would take its number and be written to.
void open_missing_descriptors() {
  for (int number = 0; number <= STDERR_FILENO; ++number) {
    if (::fcntl(number, F_GETFD) < 0) ::open("/dev/null", number == 0 ? O_RDONLY : O_WRONLY);
  }
}

int refuse(const std::string& command, const std::string& why) {
  fmt::print(stderr, "tonari{}{}: {}\n", command.empty() ? "" : " ", command, why);
  return usage_error;
}

bool has_command(const CLI::App& app, const std::string& name) {
  return !app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; }).empty();
}

}  // namespace

int main(int count, char** arguments) {
  open_missing_descriptors();
  int exit_status = 0;
  CLI::App app{"Your neighbour's memory, next door: run programs that share the memory of several processes", "tonari"};
  app.set_version_flag("--version", "tonari " TONARI_VERSION);
  app.require_subcommand(1);
  std::vector<std::string> program;
  tonari::cli::add_run(app, program, exit_status);
  tonari::cli::add_bench(app, exit_status);
  tonari::cli::add_info(app, exit_status);
  tonari::cli::add_status(app, exit_status);

  std::vector<std::string> rest(arguments + std::min(count, 1), arguments + count);
  if (rest.empty()) return refuse("", "a command is missing; see tonari --help");
  const std::string name = rest.front();
  const bool is_option = name.starts_with('-');
  const std::string command = is_option ? "" : name;
  if (!is_option && !has_command(app, name)) return refuse("", "there is no command " + name + "; see tonari --help");
  try {
    if (name == "run") {
      rest.erase(rest.begin());
      program = tonari::cli::take_program(*app.get_subcommand(name), rest);
      rest.insert(rest.begin(), name);
    }
    std::ranges::reverse(rest);  // as CLI11 wants it
    app.parse(std::move(rest));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    return refuse(command, fmt::format("{}; see tonari{}{} --help", error.what(), is_option ? "" : " ", command));
  } catch (const std::exception& error) {
    return refuse(command, error.what());
  }
  return exit_status;
}
