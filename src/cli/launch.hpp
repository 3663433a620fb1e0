#pragma once

#include "base/settings.hpp"

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace tonari::cli {

/// The program that `tonari run` starts, and how. `tonari bench` uses one for its own ranks.
struct LaunchOptions {
  int ranks = 0;                         ///< 0: one per core that may be used.
  std::string bind = "";                 ///< "core", "none", or empty: core unless there are more ranks than cores.
  std::optional<std::string> hosts;      ///< Names separated by commas, or a number; if empty, only this machine.
  std::string apart = "";                ///< "memory", "network", or empty: as TONARI_APART says.
  std::string network = "";              ///< any, tcp, rc, ud, or empty: as TONARI_NETWORK says.
  bool tag_output = false;               ///< Each line of output begins with "[rank] ".
  double timeout_seconds = 0;            ///< The job is stopped after it, with status 124. 0: no limit.
  std::vector<std::string> environment;  ///< NAME=VALUE is set for every rank. NAME must be set here.
  bool statistics = false;               ///< Prints every rank's counters to standard error at the end.
  std::vector<std::string> program;      ///< The program and its arguments. Looked up in PATH.
};

/// Adds -n, --bind, --apart and --network, which every command that starts ranks takes. `default_ranks` is for the help
/// text.
void add_rank_options(CLI::App& command, LaunchOptions& options, const std::string& default_ranks = "one per core");
/// Adds --bind, --apart and --network.
void add_placement_options(CLI::App& command, LaunchOptions& options);
/// Adds --apart and --network.
void add_network_options(CLI::App& command, LaunchOptions& options);

/// Returns the settings that ranks started with these options will read, as far as they are known here. Throws
/// SetupError if no rank could start with them.
Settings settings_of_ranks(const LaunchOptions& options);

/// Throws SetupError if --network is given, but the ranks would use the memory of this machine.
void check_network_is_used(const LaunchOptions& options);

/// Starts the ranks, forwards output and signals, and waits for their end. With hosts, executes their launcher instead.
/// May be called again, but not at the same time. Throws SetupError if the job cannot be started at all.
///
/// Returns the exit status:
/// - the first of a rank that is not zero; 128 + the signal for a rank that was killed;
/// - 126 or 127, with a message, for a program that cannot be started;
/// - 124 after the time limit; 1 if standard output cannot be written.
int launch(const LaunchOptions& options);

/// Returns the number of cores that this process may use; 1 if the system does not tell.
int usable_cores() noexcept;

}  // namespace tonari::cli
