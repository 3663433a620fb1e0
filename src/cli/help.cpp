#include "cli/help.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <utility>

namespace tonari::cli {

namespace {

constexpr std::size_t columns_max = 80;
constexpr std::size_t text_column = 24;  // first column of the meaning of an option

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

/// "  -n, --ranks N         Number of...", the second part below the first when that is long.
std::string entry(const std::string& name, const std::string& text) {
  std::string line = "  " + name;
  if (line.size() + 2 > text_column) {
    line += "\n" + std::string(text_column, ' ');
  } else {
    line.resize(text_column, ' ');
  }
  return line + wrapped(text, text_column) + "\n";
}

std::string option_entry(const CLI::Option& option) {
  const auto value = option_value(option);
  return entry(fmt::format("{}{}{}", fmt::join(option_names(option), ", "), value.empty() ? "" : " ", value),
               option_text(option));
}

std::string footer_text(const CLI::App& command) {
  std::string text;
  for (const auto& paragraph : footer_paragraphs(command)) {
    const bool has_title = !paragraph.title.empty();
    const auto first = fmt::format("{}{}{}", paragraph.title, has_title ? ": " : "", paragraph.text);
    text += fmt::format("\n{}\n", wrapped(first, 0));
    for (const auto& line : paragraph.listed) text += line + "\n";
  }
  return text;
}

/// Divides "Exit status: the first..." after a title of a few words.
void divide_title(Paragraph& paragraph) {
  constexpr std::size_t title_bytes_max = 24;
  const auto colon = paragraph.text.find(':');
  if (colon == paragraph.text.npos || colon > title_bytes_max) return;
  const auto title = paragraph.text.substr(0, colon);
  const auto is_word = [](unsigned char letter) { return std::isalpha(letter) != 0 || letter == ' '; };
  if (title.empty() || std::isupper(static_cast<unsigned char>(title[0])) == 0 || !std::ranges::all_of(title, is_word))
    return;
  paragraph.title = title;
  paragraph.text.erase(0, std::min(colon + 2, paragraph.text.size()));
}

}  // namespace

std::string full_name(const CLI::App& command) {
  const auto* const parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::vector<const CLI::App*> visible_commands(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); });
}

std::string description_text(const CLI::App& command) {
  auto text = command.get_description();
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string usage_text(const CLI::App& command) {
  const bool has_commands = !visible_commands(command).empty();
  std::string usage = full_name(command) + (has_commands ? "" : " [OPTIONS]");
  for (const auto* const option : command.get_options()) {
    if (option->get_positional() && !option->get_group().empty()) usage += " " + option->get_option_text();
  }
  if (!has_commands) return usage;
  const bool may_stand_alone = command.get_require_subcommand_min() == 0;
  return usage + (may_stand_alone ? " [NAME [OPTIONS]]" : " COMMAND [OPTIONS]");
}

std::vector<OptionGroup> option_groups(const CLI::App& command) {
  const std::string unnamed = "Options";  // CLI11's name for the group of an option that was given none
  const auto members = [&](const std::string& title) {
    return command.get_options([&, title](const CLI::Option* option) {
      return option->get_group() == title && option != command.get_help_ptr();
    });
  };
  std::vector<OptionGroup> groups;
  for (const auto& title : command.get_groups()) {
    if (title != unnamed && !title.empty()) groups.push_back({title, members(title)});
  }
  OptionGroup last{unnamed, members(unnamed)};
  if (last.options.empty()) last.title = "Help";
  last.options.push_back(command.get_help_ptr());
  groups.push_back(std::move(last));
  return groups;
}

std::vector<std::string> option_names(const CLI::Option& option) {
  if (option.get_positional()) return {option.get_name(true)};
  std::vector<std::string> names;
  for (const auto& name : option.get_snames()) names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string option_value(const CLI::Option& option) {
  const bool takes_one = !option.get_positional() && option.get_type_size() != 0;
  return takes_one ? option.get_type_name() : std::string();
}

std::string option_text(const CLI::Option& option) {
  const auto built_in = option.get_default_str();
  return option.get_description() + (built_in.empty() ? "" : fmt::format(" (default: {})", built_in));
}

std::vector<Paragraph> footer_paragraphs(const CLI::App& command) {
  std::vector<Paragraph> paragraphs(1);
  std::istringstream lines{command.get_footer()};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) {
      paragraphs.emplace_back();
    } else if (line.starts_with(' ')) {
      paragraphs.back().listed.push_back(line);
    } else {
      paragraphs.back().text += (paragraphs.back().text.empty() ? "" : " ") + line;
    }
  }
  std::erase_if(paragraphs, [](const Paragraph& each) { return each.text.empty() && each.listed.empty(); });
  std::ranges::for_each(paragraphs, divide_title);
  return paragraphs;
}

std::string help_text(const CLI::App& command) {
  const auto commands = visible_commands(command);
  std::string text = fmt::format("{}\n\nUsage: {}\n", wrapped(description_text(command), 0), usage_text(command));
  if (!commands.empty()) text += fmt::format("\n{}:\n", commands.front()->get_group());
  for (const auto* const each : commands) text += entry(each->get_name(), each->get_description());
  for (const auto& [title, options] : option_groups(command)) {
    text += fmt::format("\n{}:\n", title);
    for (const auto* const option : options) text += option_entry(*option);
  }
  return text + footer_text(command);
}

}  // namespace tonari::cli
