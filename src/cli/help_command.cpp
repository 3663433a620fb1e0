// `tonari help` and `tonari version`.

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/help.hpp"

#include <fmt/format.h>

#include <memory>

namespace tonari::cli {

void add_help(CLI::App& app) {
  CLI::App& help = *app.add_subcommand("help", "Show what a command does and takes.")->group("Commands");
  const auto names = std::make_shared<std::vector<std::string>>();
  help.add_option("COMMAND", *names, "The command; without it: lists all of them")
      ->option_text("[COMMAND...]")
      ->group("Help");
  help.footer(
      "`tonari help run` prints the same text as `tonari run --help`.\n"
      "\n"
      "Examples:\n"
      "  tonari help run\n"
      "  tonari help bench pingpong");
  help.callback([&app, names] { fmt::print("{}", help_text(find_command(app, *names))); });
}

void add_version(CLI::App& app) {
  CLI::App& version = *app.add_subcommand("version", "Print the version.")->group("Commands");
  version.footer(
      "Examples:\n"
      "  tonari version");
  version.callback([] { fmt::print("tonari {}\n", TONARI_VERSION); });
}

}  // namespace tonari::cli
