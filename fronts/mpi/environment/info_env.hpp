#pragma once

#include "mpi/comm.hpp"
#include "mpi/info.hpp"

#include <string>
#include <vector>

namespace tonari::mpi {

/// Returns the arguments that this process was started with; empty if the system does not tell.
std::vector<std::string> started_arguments();

/// Returns the keys of MPI_INFO_ENV: command and argv from `arguments`, and what is known of the others. `maxprocs` and
/// `thread_level` are known in a job only.
Hints environment_hints(const std::vector<std::string>& arguments);

/// Sets MPI_INFO_ENV again, after the process has joined a job. Other threads may use it meanwhile.
void refresh_environment();

/// Returns "MPI_THREAD_MULTIPLE" and so on.
const char* thread_level_name(int level) noexcept;

/// Sets a key, replacing the value that it has.
void set_hint(Hints& hints, const std::string& key, const std::string& value);

/// Returns a copy of a communicator's hints.
Hints hints_of(const Comm& comm);

/// The kinds of memory that messages can use, the value of the key mpi_memory_alloc_kinds.
inline constexpr const char* memory_kinds = "system,mpi";

}  // namespace tonari::mpi
