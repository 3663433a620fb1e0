#pragma once

#include <string>

namespace tonari::mpi {

/// Keeps the text of this thread's last error, for MPI_Error_string.
void remember_error(int code, std::string text) noexcept;
/// Returns the text of this thread's last error if it had this code, otherwise an empty one.
std::string last_error(int code);

}  // namespace tonari::mpi
