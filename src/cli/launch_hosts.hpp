#pragma once

#include "cli/launch.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::cli {

/// A program that starts ranks on several hosts, and by whose PMIx they join.
struct Launcher {
  enum class Kind : std::uint8_t { open_mpi_4, open_mpi_5, prterun, srun };

  Kind kind;
  std::string command;  ///< As it is found in PATH.
  std::string text;     ///< For people: with its version, where it tells.
};

/// Those that are installed, the one to use first. Of Slurm's, srun, only inside an allocation: it could start nothing
/// outside. Runs each for its version.
std::vector<Launcher> find_launchers();

/// Throws SetupError if this process is root's and the launcher would start nothing for root: Open MPI's needs two
/// variables to be set. `option` begins the text.
void check_root_may_launch(std::string_view option);

/// Becomes the launcher that is installed, with the ranks and the program of `options`. Returns only when the launcher
/// does not start, with the exit status for that. Throws SetupError when there is none, or it cannot do what is asked.
int launch_on_hosts(const LaunchOptions& options);

}  // namespace tonari::cli
