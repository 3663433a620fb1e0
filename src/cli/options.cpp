#include "cli/options.hpp"

#include "base/edit_distance.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

namespace tonari::cli {

namespace {

constexpr double seconds_max = 1e9;  // 64 bits of nanoseconds hold nine times as much

template <class Value>
std::optional<Value> read_whole(std::string_view text) {
  Value value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string unknown_option_text(const CLI::App& command, const std::string& name) {
  std::vector<std::string> options;
  for (const CLI::Option* const option : command.get_options()) {
    for (const std::string& each : option->get_lnames()) options.push_back("--" + each);
  }
  const std::vector<std::string_view> known{options.begin(), options.end()};
  const auto meant = likely_meant(name, known);
  return fmt::format("no option is called {}{}", name, meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
}

}  // namespace

CLI::Validator whole_number(std::string_view what, std::uint64_t min, std::uint64_t max) {
  return {[right = fmt::format("must be {} from {} to {}", what, min, max), min, max](std::string& text) {
            const auto value = read_whole<std::uint64_t>(text);
            if (!value || *value < min || *value > max) return fmt::format("{}, not '{}'", right, text);
            text = std::to_string(*value);
            return std::string();
          },
          ""};
}

std::size_t parse_size(std::string_view text) noexcept {
  constexpr std::string_view units = "KMGT";
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return 0;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const auto power = unit.size() == 1 ? units.find(unit.front()) : units.npos;
  if (!unit.empty() && power == units.npos) return 0;
  const auto shift = unit.empty() ? 0 : 10 * (power + 1);
  return value > std::numeric_limits<std::size_t>::max() >> (shift + 1) ? 0 : value << shift;
}

CLI::Validator size_in_bytes() {
  return {[](std::string& text) {
            const std::size_t bytes = parse_size(text);
            if (bytes == 0) return fmt::format("must be a size, such as 512M or 4G, not '{}'", text);
            text = std::to_string(bytes);
            return std::string();
          },
          ""};
}

CLI::Validator size_in_units_of(std::uint64_t unit) {
  return {[size = size_in_bytes(), unit](std::string& text) {
            const std::string given = text;
            std::string error = size(text);
            if (!error.empty() || parse_size(text) % unit == 0) return error;
            return fmt::format("must be a multiple of {} MiB, such as 512M or 4G, not '{}'", unit >> 20, given);
          },
          ""};
}

CLI::Validator seconds() {
  return {[](std::string& text) {
            const auto value = read_whole<double>(text);
            if (value && *value > 0 && *value <= seconds_max) return std::string();
            return fmt::format("must be a number of seconds above 0, such as 60 or 0.5, up to {:.0f}, not '{}'",
                               seconds_max, text);
          },
          ""};
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  return {[words](std::string& text) {
            if (std::ranges::find(words, text) != words.end()) return std::string();
            return fmt::format("must be {}, not '{}'", fmt::join(words, " or "), text);
          },
          ""};
}

CLI::Validator variable() {
  return {[](std::string& text) {
            constexpr auto ours =
                std::to_array<std::string_view>({"TONARI_RANK", "TONARI_SIZE", "TONARI_JOIN", "TONARI_SECRET"});
            const auto name = std::string_view(text).substr(0, text.find('='));
            if (name.empty()) return fmt::format("must be NAME=VALUE or NAME, but '{}' has no name", text);
            if (std::ranges::find(ours, name) == ours.end()) return std::string();
            return fmt::format("{} is set by `tonari run` for each rank", name);
          },
          ""};
}

std::string explain(const CLI::App& app, const CLI::App& command, const CLI::ParseError& error) {
  std::string said = error.what();
  if (const auto extras = app.remaining(true); !extras.empty()) {
    const std::string& first = extras.front();
    const bool is_option = first.size() > 1 && first.front() == '-';
    return is_option ? unknown_option_text(command, first.substr(0, first.find('=')))
                     : fmt::format("'{}' is one argument too many", first);
  }
  if (error.get_name() != "ArgumentMismatch") return said;
  // CLI11's texts: "--env: 1 required NAME[=VALUE] missing", "--bind: At Most 1 required but received 2".
  constexpr std::string_view required = " required ";
  constexpr std::string_view missing = " missing";
  const auto name = said.substr(0, said.find_first_of(": "));
  const auto at = said.find(required);
  if (at != said.npos && said.ends_with(missing)) {
    const auto what = at + required.size();
    return fmt::format("{} needs a value: {}", name, said.substr(what, said.size() - missing.size() - what));
  }
  if (said.find("override") != said.npos) return fmt::format("--{} takes no value", name);
  if (at != said.npos) return fmt::format("{} is given more than once", name);
  return said;
}

}  // namespace tonari::cli
