#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace tonari::cli {

/// Returns the text of --help, in at most 80 columns: groups of options in their order; footers wrapped, except lines
/// that are indented.
std::string help_text(const CLI::App& command);

// The parts of that text, from which manual pages and tables for shells are made, too.

/// Returns the names from the program to the command: "tonari bench pingpong".
std::string full_name(const CLI::App& command);

/// Returns the commands of `command` that help texts show. A command that belongs to no group is hidden.
std::vector<const CLI::App*> visible_commands(const CLI::App& command);

/// Returns the description, which begins with a capital letter.
std::string description_text(const CLI::App& command);

/// Returns the form of the command line: "tonari run [OPTIONS] [--] PROGRAM [ARGUMENTS...]".
std::string usage_text(const CLI::App& command);

struct OptionGroup {
  std::string title;
  std::vector<const CLI::Option*> options;  ///< Also positionals.
};
/// Returns the groups in their order. The last one has the options of no named group, and --help.
std::vector<OptionGroup> option_groups(const CLI::App& command);

/// Returns the names with their dashes: {"-n", "--ranks"}; one without a dash for a positional.
std::vector<std::string> option_names(const CLI::Option& option);
/// Returns the name of the value that the option takes; empty if it takes none or is a positional.
std::string option_value(const CLI::Option& option);
/// Returns what the option means, with its default if CLI11 knows it.
std::string option_text(const CLI::Option& option);

/// A paragraph of a footer. One that begins with "Title: " is divided into its title and its text.
struct Paragraph {
  std::string title;
  std::string text;                 ///< One line, to be wrapped.
  std::vector<std::string> listed;  ///< Indented lines, to be left as they are.
};
std::vector<Paragraph> footer_paragraphs(const CLI::App& command);

}  // namespace tonari::cli
