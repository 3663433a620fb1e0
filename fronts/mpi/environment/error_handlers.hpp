#pragma once

#include "mpi/checks.hpp"

#include <string>

// Which error handler is called for an error, and what it does. Threads: any.
namespace tonari::mpi {

/// Returns the error handler of a communicator, window, file or session.
Ref<Errhandler> error_handler(const Ref<Errhandler>& slot) noexcept;
/// Replaces it. The old one lives on while it handles an error.
void set_error_handler(Ref<Errhandler>& slot, Ref<Errhandler> handler) noexcept;

/// The same for a communicator. Once a communicator with other ranks has a handler that does not end the job, this
/// process outlives deaths, and calls that need a dead rank fail instead.
void set_error_handler(Comm& comm, Errhandler& handler) noexcept;

/// Returns the error handler that MPI_COMM_WORLD and MPI_COMM_SELF start with, and that hears of errors before and
/// after them: the one that `mpiexec -initial-errhandler` names, otherwise MPI_ERRORS_ARE_FATAL.
Ref<Errhandler> initial_error_handler() noexcept;
/// Returns its name, as the standard's key mpi_initial_errhandler has it. Throws Failure if mpiexec has named none of
/// the predefined ones.
const char* initial_error_handler_name();

/// Calls the error handler of the holder. MPI_ERRORS_ARE_FATAL and MPI_ERRORS_ABORT print `text`, and end the job.
void handle_error(Function function, const Holder& holder, int code, const std::string& text) noexcept;

/// Returns "MPI_Send on MPI_COMM_WORLD".
std::string call_text(Function function, const Holder& holder);

/// Returns "rank 3 on node7: ", or an empty text while MPI does not run.
std::string place();

/// Prints that the function failed, and ends the job.
[[noreturn]] void end_job(Function function, const std::string& text) noexcept;

}  // namespace tonari::mpi
