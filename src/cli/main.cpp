#include "cli/command.hpp"

#include <fcntl.h>
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

}  // namespace

int main(int count, char** arguments) {
  open_missing_descriptors();
  int exit_status = 0;
  CLI::App app{"Your neighbour's memory, next door: run programs that share the memory of several processes", "tonari"};
  app.set_version_flag("--version", "tonari " TONARI_VERSION);
  app.require_subcommand(1);
  std::vector<std::string> program;
  tonari::cli::add_run(app, program, exit_status);

  std::vector<std::string> rest(arguments + std::min(count, 1), arguments + count);
  const std::string name = rest.empty() ? "" : rest.front();
  try {
    if (name == "run") {
      rest.erase(rest.begin());
      program = tonari::cli::take_program(*app.get_subcommand(name), rest);
      rest.insert(rest.begin(), name);
    }
    std::ranges::reverse(rest);  // as CLI11 wants it
    app.parse(std::move(rest));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : usage_error;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tonari %s: %s\n", name.c_str(), error.what());
    return usage_error;
  }
  return exit_status;
}
