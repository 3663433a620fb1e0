// `tonari generate`: manual pages, and tables for completion by shells. The build runs it; help texts do not show it.

#include "cli/command.hpp"
#include "cli/completion_table.hpp"
#include "cli/help.hpp"
#include "cli/manual_page.hpp"
#include "cli/options.hpp"

#include <tonari/status.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

namespace tonari::cli {

namespace {

namespace fs = std::filesystem;

/// The day of SOURCE_DATE_EPOCH, with which two builds of one source are the same, or today.
std::string date_of_build() {
  const char* const epoch = std::getenv("SOURCE_DATE_EPOCH");
  const std::time_t seconds = epoch == nullptr ? std::time(nullptr) : std::strtol(epoch, nullptr, 10);
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(seconds));
}

void write_pages(const CLI::App& command, const fs::path& folder, const std::string& date) {
  const fs::path path = folder / (manual_page_name(command) + ".1");
  std::ofstream file{path};
  file << manual_page(command, date);
  file.close();
  if (!file)
    throw SetupError(fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(errno)));
  for (const auto* const each : visible_commands(command)) write_pages(*each, folder, date);
}

}  // namespace

void add_generate(CLI::App& app) {
  CLI::App& generate = *app.add_subcommand("generate", "Write manual pages, or tables for shells.")->group("");
  generate.require_subcommand(1);

  CLI::App& pages = *generate.add_subcommand("man", "Write the manual page of each command.")->group("Commands");
  const auto folder = std::make_shared<std::string>();
  pages.add_option("FOLDER", *folder, "The folder to write them to; it is made if need be")->required();
  pages.callback([&app, folder] {
    fs::create_directories(*folder);
    write_pages(app, *folder, date_of_build());
  });

  CLI::App& table = *generate.add_subcommand("completion", "Print the table for completion.")->group("Commands");
  const auto shell = std::make_shared<std::string>();
  table.add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(one_of({"bash", "zsh", "fish"}));
  table.callback([&app, shell] { fmt::print("{}", completion_table(app, *shell)); });
}

}  // namespace tonari::cli
