#pragma once

#include "base/settings.hpp"

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace tonari::cli {

/// What `tonari run` starts and how. `tonari bench` fills one for its own ranks.
struct LaunchOptions {
  int ranks = 0;                         ///< 0: as many as there are cores to use.
  std::string bind = "";                 ///< "core", "none", or empty: core when there are no more ranks than cores.
  std::optional<std::string> hosts;      ///< Names with commas between, or a number; none: this machine alone.
  std::string apart = "";                ///< "memory", "network", or empty: as TONARI_APART says.
  std::string network = "";              ///< any, tcp, rc, ud, or empty: as TONARI_NETWORK says.
  bool tag_output = false;               ///< Each line of output begins with "[rank] ".
  double timeout_seconds = 0;            ///< 0: none. The job is stopped after it, with status 124.
  std::vector<std::string> environment;  ///< NAME=VALUE: set for every rank. NAME: must be set, and is passed on.
  bool statistics = false;               ///< Prints every rank's counters to standard error at the end.
  std::vector<std::string> program;      ///< What to run, with its arguments. Looked up in PATH.
};

/// Adds -n, --bind, --apart and --network to a command: what every command that starts ranks takes. `default_ranks` is
/// for the help text.
void add_rank_options(CLI::App& command, LaunchOptions& options, const std::string& default_ranks = "one a core");
/// All of these but -n.
void add_placement_options(CLI::App& command, LaunchOptions& options);
/// --apart and --network alone.
void add_network_options(CLI::App& command, LaunchOptions& options);

/// The settings that ranks started with these options will read, as far as we know them. Throws SetupError on those
/// that no rank could start with.
Settings settings_of_ranks(const LaunchOptions& options);

/// Throws SetupError where --network is given, but the ranks of this machine would use its memory.
void check_network_is_used(const LaunchOptions& options);

/// Starts the ranks, forwards output and signals, waits for their end, and answers the exit status: the first that is
/// not zero, 128 + the signal for a rank that was killed. With hosts, becomes their launcher instead. May be called any
/// number of times, one at a time. Throws SetupError when the job cannot be started at all; a program that cannot be
/// started is told on standard error and answers 127 or 126.
int launch(const LaunchOptions& options);

/// Returns the number of cores that this process may use; 1 if the system does not tell.
int usable_cores() noexcept;

}  // namespace tonari::cli
