#include "cli/info.hpp"

#include "base/settings.hpp"
#include "cli/command.hpp"
#include "cli/standard_streams.hpp"
#include "cli/table.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>

namespace tonari::cli {

namespace {

constexpr auto info_footer =
    "Each feature is `ok`, or its line names the cost of doing without it and the remedy.\n"
    "\n"
    "Settings are environment variables. Sizes take K, M, G and T, powers of 1024. An empty variable counts as unset; "
    "any other wrong value is refused, and the message says which values are right.\n"
    "\n"
    "Examples:\n"
    "  tonari info\n"
    "  TONARI_RING_SLOTS=256 tonari info --settings";

nlohmann::ordered_json settings_as_json() {
  auto list = nlohmann::ordered_json::array();
  for (const SettingText& setting : describe_settings()) {
    list.push_back({{"name", setting.name},
                    {"value", setting.value},
                    {"default", setting.built_in},
                    {"from", to_string(setting.origin)},
                    {"meaning", setting.meaning}});
  }
  return {{"settings", list}};
}

void print_settings() {
  std::vector<std::vector<std::string>> rows{{"setting", "value", "default", "from", "meaning"}};
  for (const SettingText& setting : describe_settings()) {
    rows.push_back({std::string{setting.name}, setting.value, setting.built_in, std::string{to_string(setting.origin)},
                    std::string{setting.meaning}});
  }
  fmt::print("{}", format_table(rows));
  fmt::print("An empty variable counts as unset: the default holds.\n");
}

nlohmann::ordered_json machine_and_features_as_json() {
  nlohmann::ordered_json machine;
  for (const auto& [name, text] : describe_machine()) machine[name] = text;
  auto features = nlohmann::ordered_json::array();
  for (const Feature& feature : check_features()) {
    features.push_back({{"name", feature.name}, {"works", feature.works}, {"text", feature.text}});
  }
  return {{"machine", machine}, {"features", features}};
}

// The machine is described whatever the settings are; programs would be refused because of this one.
void print_wrong_setting() {
  try {
    (void)read_settings();
  } catch (const SetupError& error) {
    print_stderr("tonari info: {}\n", error.what());
  }
}

void print_machine() {
  std::vector<std::vector<std::string>> rows{{"machine"}};
  for (const auto& [name, text] : describe_machine()) rows.push_back({"  " + name, text});
  rows.push_back({"features"});
  for (const Feature& feature : check_features()) {
    const std::string detail = feature.text.empty() ? "" : " (" + feature.text + ")";
    rows.push_back({"  " + feature.name, feature.works ? "ok" + detail : feature.text});
  }
  fmt::print("{}", format_table(rows));
}

}  // namespace

void add_info(CLI::App& app, int&) {
  CLI::App& info =
      *app.add_subcommand("info", "Show this machine, and the features of it that tonari can use.")->group("Commands");
  const auto settings = std::make_shared<bool>(false);
  const auto mpi = std::make_shared<bool>(false);
  const auto as_json = std::make_shared<bool>(false);
  info.add_flag("--settings", *settings, "Show every setting instead: its value, its default, and its origin")
      ->disable_flag_override();
  info.add_flag("--mpi", *mpi, "Show instead which functions of MPI are not supported yet")
      ->disable_flag_override()
      ->excludes("--settings");
  info.add_flag("--json", *as_json, "Print JSON")->disable_flag_override();
  info.footer(info_footer);
  info.callback([settings, mpi, as_json] {
    if (*mpi) return *as_json ? fmt::print("{}\n", mpi_as_json().dump(2)) : print_mpi();
    for (const std::string& line : unknown_settings()) print_stderr("tonari info: {}\n", line);
    if (!*settings) print_wrong_setting();
    if (*as_json) {
      fmt::print("{}\n", (*settings ? settings_as_json() : machine_and_features_as_json()).dump(2));
    } else {
      *settings ? print_settings() : print_machine();
    }
  });
}

}  // namespace tonari::cli
