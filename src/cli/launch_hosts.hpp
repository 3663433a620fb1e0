#pragma once

#include "cli/launch.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::cli {

/// A program that starts ranks on several hosts. They join through its PMIx server.
struct Launcher {
  enum class Kind : std::uint8_t { open_mpi_4, open_mpi_5, prterun, srun };

  Kind kind;
  std::string command;  ///< Its name.
  std::string path;     ///< The file to execute, or a name to be looked up in PATH.
  std::string text;     ///< Name and version, for messages.
};

/// Returns the launchers that are installed, in order of preference. Slurm's srun is among them only inside an
/// allocation, because it starts nothing outside. Runs each to read its version.
std::vector<Launcher> find_launchers();

/// Throws SetupError if this process is root's and the launcher would start nothing for root: Open MPI's needs two
/// variables to be set. `option` begins the text.
void check_root_may_launch(std::string_view option);

/// Executes the preferred launcher with the ranks and the program of `options`, in place of this process. If that
/// fails, prints why and returns the exit status. Throws SetupError if no launcher is installed, or it cannot do what
/// `options` ask for.
int launch_on_hosts(const LaunchOptions& options);

}  // namespace tonari::cli
