#include "cli/command_line.hpp"

#include "base/edit_distance.hpp"
#include "cli/help.hpp"
#include "cli/options.hpp"
#include "cli/standard_streams.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>

namespace tonari::cli {

namespace {

constexpr int usage_error = 2;

int refuse(const CLI::App& command, std::string_view why) {
  print_stderr("{}: {}\n", full_name(command), why);
  return usage_error;
}

/// Adds where to read more; a text that ends with a question is followed by a new sentence.
std::string with_reference(std::string_view text, const CLI::App& command) {
  return fmt::format("{}{} {} --help", text, text.ends_with('?') ? " See" : "; see", full_name(command));
}

/// "Benchmarks" as "benchmark".
std::string kind_of(const CLI::App& command) {
  std::string kind = command.get_group();
  if (kind.ends_with('s')) kind.pop_back();
  std::ranges::transform(kind, kind.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return kind;
}

const CLI::App* command_named(const CLI::App& parent, const std::string& name) {
  const auto found = parent.get_subcommands([&](const CLI::App* each) { return each->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

std::string unknown_command_text(const CLI::App& parent, std::string_view name) {
  const auto commands = visible_commands(parent);
  std::vector<std::string_view> known;
  known.reserve(commands.size());
  for (const CLI::App* const each : commands) known.push_back(each->get_name());
  const auto meant = likely_meant(name, known);
  return with_reference(fmt::format("no {} is called '{}'{}", kind_of(*commands.front()), name,
                                    meant.empty() ? "" : fmt::format("; did you mean {}?", meant)),
                        parent);
}

/// The command that `arguments` begin with. Stops at the first one that is no command's name.
const CLI::App& command_of(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* at = &app;
  for (const std::string& each : arguments) {
    const CLI::App* const next = command_named(*at, each);
    if (next == nullptr) break;
    at = next;
  }
  return *at;
}

/// Why no command follows `parent`, which needs one; empty when one does, or an option that CLI11 looks at.
std::string missing_command_text(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* at = &app;
  for (const std::string& each : arguments) {
    if (at->get_require_subcommand_min() == 0 || each.starts_with('-')) return {};
    const CLI::App* const next = command_named(*at, each);
    if (next == nullptr) return unknown_command_text(*at, each);
    at = next;
  }
  return at->get_require_subcommand_min() == 0 ? std::string() : with_reference("a command is missing", *at);
}

/// Turns mpirun's spelling of -n into ours.
void accept_mpirun_spelling(const CLI::App& command, std::string& argument) {
  const bool is_ranks = argument == "-np" || argument == "--np";
  if (is_ranks && command.get_option_no_throw("-n") != nullptr) argument = "-n";
}

/// Moves the program and its arguments out of `arguments`, from `first` on: what follows `--`, or begins with the first
/// word that is neither an option of `command` nor an option's value.
std::vector<std::string> take_program(const CLI::App& command, std::vector<std::string>& arguments, std::size_t first) {
  auto at = arguments.begin() + static_cast<std::ptrdiff_t>(first);
  while (at != arguments.end() && at->size() > 1 && at->front() == '-' && *at != "--") {
    accept_mpirun_spelling(command, *at);
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

std::size_t depth_of(const CLI::App& command) {
  return command.get_parent() == nullptr ? 0 : 1 + depth_of(*command.get_parent());
}

int parse_and_run(CLI::App& app, std::vector<std::string> arguments, const int& exit_status,
                  std::vector<std::string>* program) {
  if (const auto why = missing_command_text(app, arguments); !why.empty()) return refuse(app, why);
  const CLI::App& command = command_of(app, arguments);
  try {
    if (program != nullptr && command.get_option_no_throw("PROGRAM") != nullptr) {
      *program = take_program(command, arguments, depth_of(command));
    }
    for (std::string& each : arguments) accept_mpirun_spelling(command, each);
    std::ranges::reverse(arguments);  // as CLI11 expects
    app.parse(std::move(arguments));
    return exit_status;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    return refuse(command, with_reference(explain(app, command, error), command));
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) throw;
    return refuse(command, error.what());
  }
}

}  // namespace

void set_up(CLI::App& app) {
  app.formatter_fn([](const CLI::App* of, const std::string&, CLI::AppFormatMode) { return help_text(*of); });
  app.set_help_flag("-h,--help", "Print this text");
  app.set_version_flag("--version", "tonari " TONARI_VERSION, "Print the version");
}

int run_command_line(CLI::App& app, std::vector<std::string> arguments, const int& exit_status,
                     std::vector<std::string>* program) {
  int status = 0;
  int output_error = 0;
  try {
    status = parse_and_run(app, std::move(arguments), exit_status, program);
  } catch (const std::system_error& error) {  // of fmt::print
    output_error = error.code().value();
  }
  if (std::fflush(stdout) != 0) output_error = errno;
  if (output_error == 0) return status;
  print_stderr("{}: {}\n", full_name(app), output_failure_text(output_error));
  return status == 0 ? 1 : status;
}

const CLI::App& find_command(const CLI::App& app, const std::vector<std::string>& names) {
  const CLI::App* at = &app;
  for (const std::string& name : names) {
    const CLI::App* const next = command_named(*at, name);
    if (next != nullptr) {
      at = next;
    } else if (visible_commands(*at).empty()) {
      throw SetupError(
          with_reference(fmt::format("{} has no commands of its own, such as '{}'", full_name(*at), name), *at));
    } else {
      throw SetupError(unknown_command_text(*at, name));
    }
  }
  return *at;
}

}  // namespace tonari::cli
