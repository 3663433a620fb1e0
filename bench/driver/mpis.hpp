#pragma once

#include "driver/systems.hpp"

#include <span>
#include <string_view>
#include <vector>

// The MPIs that are rivals: Debian's or Ubuntu's, and the newest ones, which scripts/pypi-mpis installs from PyPI, each
// into a folder of its own.
namespace tonari::bench::driver {

struct Mpi {
  Family family;
  std::string_view name;      ///< Names the rival, the folder of its programs, and the folder that PyPI's is in.
  std::string_view launcher;  ///< A program in PATH; empty: PyPI's mpiexec.
  std::string_view packages;  ///< Debian's.
};

std::span<const Mpi> mpis() noexcept;
std::vector<std::string_view> names_of_mpis();
/// Returns null if the family is no MPI, or tonari's own.
const Mpi* mpi_of(Family family) noexcept;

/// Throws SetupError, with the remedy, if the MPI or its program for the benchmark is missing.
void check_mpi(const Mpi& mpi, std::string_view benchmark);

/// Returns the command that starts the MPI's program for `ask`, bound and apart as `ask` says.
Command command_of_mpi(const Mpi& mpi, const System& system, const Ask& ask);

}  // namespace tonari::bench::driver
