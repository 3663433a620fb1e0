#include "cli/help.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tonari::cli {

namespace {

constexpr std::size_t columns_max = 80;
constexpr std::size_t text_column = 24;  // where what an option means begins

/// Lines of at most columns_max - indent characters, each after the first with `indent` spaces in front.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string all;
  std::size_t used = indent;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (!all.empty() && used + 1 + word.size() > columns_max) {
      all += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (!all.empty()) {
      all += ' ';
      ++used;
    }
    all += word;
    used += word.size();
  }
  return all;
}

/// "  -n, --ranks N         How many...", the second part below the first when that is long.
std::string entry(const std::string& name, const std::string& text) {
  std::string line = "  " + name;
  if (line.size() + 2 > text_column) {
    line += "\n" + std::string(text_column, ' ');
  } else {
    line.resize(text_column, ' ');
  }
  return line + wrapped(text, text_column) + "\n";
}

std::string name_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  std::vector<std::string> names;
  for (const auto& name : option.get_snames()) names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) names.push_back("--" + name);
  const auto type = option.get_type_size() == 0 ? "" : option.get_type_name();
  return fmt::format("{}{}{}", fmt::join(names, ", "), type.empty() ? "" : " ", type);
}

std::string text_of(const CLI::Option& option) {
  const auto built_in = option.get_default_str();
  return option.get_description() + (built_in.empty() ? "" : fmt::format(" (default: {})", built_in));
}

std::string entries(const CLI::App& command, const std::string& group) {
  std::string text;
  for (const auto* const option : command.get_options()) {
    const bool belongs = option->get_group() == group && option != command.get_help_ptr();
    if (belongs) text += entry(name_of(*option), text_of(*option));
  }
  return text;
}

std::string options_of(const CLI::App& command) {
  const std::string usual = "Options";  // the group of those that nobody gave one; they go last
  std::string text;
  for (const auto& group : command.get_groups()) {
    if (group != usual && !group.empty()) text += fmt::format("\n{}:\n{}", group, entries(command, group));
  }
  const auto others = entries(command, usual);
  const auto* const help = command.get_help_ptr();
  return text +
         fmt::format("\n{}:\n{}{}", others.empty() ? "Help" : usual, others, entry(name_of(*help), text_of(*help)));
}

std::string description_of(const CLI::App& command) {
  auto text = command.get_description();
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string usage_of(const CLI::App& command, bool has_commands) {
  std::string usage = full_name(command) + (has_commands ? "" : " [OPTIONS]");
  for (const auto* const option : command.get_options()) {
    if (option->get_positional() && !option->get_group().empty()) usage += " " + option->get_option_text();
  }
  if (!has_commands) return usage;
  const bool may_stand_alone = command.get_require_subcommand_min() == 0;
  return usage + (may_stand_alone ? " [NAME [OPTIONS]]" : " COMMAND [OPTIONS]");
}

// Paragraphs are wrapped anew, whatever the lines of the source.
std::string footer_of(const CLI::App& command) {
  std::string text;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) text += wrapped(std::exchange(paragraph, {}), 0) + "\n";
  };
  std::istringstream lines{command.get_footer()};
  for (std::string line; std::getline(lines, line);) {
    const bool stands_alone = line.empty() || line.starts_with(' ');
    if (stands_alone) end_paragraph();
    if (stands_alone) {
      text += line + "\n";
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  end_paragraph();
  return text.empty() ? text : "\n" + text;
}

}  // namespace

std::string full_name(const CLI::App& command) {
  const auto* const parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::vector<const CLI::App*> visible_commands(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); });
}

std::string help_text(const CLI::App& command) {
  const auto commands = visible_commands(command);
  std::string text =
      fmt::format("{}\n\nUsage: {}\n", wrapped(description_of(command), 0), usage_of(command, !commands.empty()));
  if (!commands.empty()) text += fmt::format("\n{}:\n", commands.front()->get_group());
  for (const auto* const one : commands) text += entry(one->get_name(), one->get_description());
  return text + options_of(command) + footer_of(command);
}

}  // namespace tonari::cli
