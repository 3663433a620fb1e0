#include "cli/completion_table.hpp"

#include "cli/help.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>
#include <vector>

namespace tonari::cli {

namespace {

/// A text between single quotes, for any of the three shells.
std::string shell_quoted(std::string_view text) {
  std::string all = "'";
  for (const char letter : text) all += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return all + "'";
}

/// The beginning of a description, up to the first punctuation mark: shells show one line per word.
std::string short_text(const std::string& text) {
  const auto end = std::min({text.find(". "), text.find("; "), text.find(" ("), text.size()});
  std::string first = text.substr(0, end);
  if (first.ends_with('.')) first.pop_back();
  return first;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }
bool needs_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }

/// The words of a value's name, if it lists them: "[=text|json]".
std::vector<std::string> words_of_value(const CLI::Option& option) {
  std::string name = option_value(option);
  std::erase_if(name, [](char letter) { return std::string_view("[=]").find(letter) != std::string_view::npos; });
  const auto fits = [](unsigned char letter) {
    return std::islower(letter) != 0 || std::isdigit(letter) != 0 || letter == '|' || letter == '_' || letter == '-';
  };
  std::vector<std::string> words;
  if (name.find('|') == name.npos || !std::ranges::all_of(name, fits)) return words;
  std::istringstream parts{name};
  for (std::string word; std::getline(parts, word, '|');) words.push_back(word);
  return words;
}

/// The value of an option: its words, "<file>", "<folder>", or "<value>" for any other text. Behind '=' if it may only
/// be written as in --NAME=VALUE.
std::string value_text(const CLI::Option& option) {
  const auto words = words_of_value(option);
  const auto name = option_value(option);
  std::string text = "<value>";
  if (!words.empty()) text = fmt::format("{}", fmt::join(words, " "));
  if (name == "FILE") text = "<file>";
  if (name == "FOLDER") text = "<folder>";
  return needs_value(option) ? text : "=" + text;
}

/// The kind of words that follow the options: "<program>", "<command>", or empty if shells cannot know them.
std::string operand_text(const CLI::App& command) {
  if (command.get_option_no_throw("PROGRAM") != nullptr) return "<program>";
  if (command.get_option_no_throw("COMMAND") != nullptr) return "<command>";
  return {};
}

std::vector<const CLI::Option*> visible_options(const CLI::App& command) {
  std::vector<const CLI::Option*> options;
  for (const auto& group : option_groups(command)) {
    for (const auto* const option : group.options) {
      if (!option->get_positional()) options.push_back(option);
    }
  }
  return options;
}

std::string described(const std::string& word, const std::string& text) { return word + ":" + short_text(text) + "\n"; }

/// Assignments to the arrays of bash and zsh, which write the key of an element in different ways.
class Table {
 public:
  explicit Table(bool for_zsh) : for_zsh_(for_zsh) {}

  void add(const CLI::App& command) {
    const std::string path = full_name(command);
    std::string commands;
    for (const auto* const each : visible_commands(command)) {
      commands += described(each->get_name(), each->get_description());
    }
    set("_tonari_commands", path, commands);
    add_options(command, path);
    set("_tonari_operands", path, operand_text(command));
    for (const auto* const each : visible_commands(command)) add(*each);
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void add_options(const CLI::App& command, const std::string& path) {
    std::string options;
    for (const auto* const option : visible_options(command)) {
      for (const auto& name : option_names(*option)) {
        options += described(name, option_text(*option));
        if (takes_value(*option)) set("_tonari_values", path + " " + name, value_text(*option));
      }
    }
    set("_tonari_options", path, options);
  }

  void set(std::string_view array, const std::string& key, const std::string& value) {
    if (value.empty()) return;
    text_ += fmt::format("{}+=({}{}{}{})\n", array, for_zsh_ ? "" : "[", shell_quoted(key),
                         for_zsh_ ? " " : "]=", shell_quoted(value));
  }

  bool for_zsh_;
  std::string text_ = "typeset -gA _tonari_commands _tonari_options _tonari_values _tonari_operands\n";
};

// ---- fish ----

std::string fish_option(const std::string& path, const CLI::Option& option) {
  std::string line = fmt::format("complete -c tonari -n {}", shell_quoted("__tonari_at " + path));
  for (const auto& name : option.get_snames()) line += " -s " + name;
  for (const auto& name : option.get_lnames()) line += " -l " + name;
  if (needs_value(option))
    line += value_text(option) == "<file>" || value_text(option) == "<folder>" ? " -r -F" : " -x";
  if (const auto words = words_of_value(option); !words.empty()) {
    line += fmt::format(" -a {}", shell_quoted(fmt::format("{}", fmt::join(words, " "))));
  }
  return fmt::format("{} -d {}\n", line, shell_quoted(short_text(option_text(option))));
}

std::string fish_lines(const CLI::App& command) {
  const std::string path = full_name(command);
  std::string text;
  std::string with_value;
  for (const auto* const each : visible_commands(command)) {
    text += fmt::format("complete -c tonari -n {} -a {} -d {}\n", shell_quoted("__tonari_at " + path), each->get_name(),
                        shell_quoted(short_text(each->get_description())));
    text += fmt::format("set -ga __tonari_commands {}\n", shell_quoted(full_name(*each)));
  }
  for (const auto* const option : visible_options(command)) {
    text += fish_option(path, *option);
    if (!needs_value(*option)) continue;
    for (const auto& name : option_names(*option)) {
      text += fmt::format("set -ga __tonari_with_value {}\n", shell_quoted(path + " " + name));
    }
  }
  if (operand_text(command) == "<program>") {
    text += fmt::format("set -ga __tonari_runs_program {}\n", shell_quoted(path));
  }
  for (const auto* const each : visible_commands(command)) text += fish_lines(*each);
  return text;
}

}  // namespace

std::string completion_table(const CLI::App& app, std::string_view shell) {
  if (shell == "fish") return fish_lines(app);
  Table table{shell == "zsh"};
  table.add(app);
  const std::string first_line = shell == "zsh" ? "#compdef tonari\n" : "";  // by it zsh finds the file
  return first_line + table.text();
}

}  // namespace tonari::cli
