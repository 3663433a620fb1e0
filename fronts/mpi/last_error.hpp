#pragma once

#include <string>

namespace tonari::mpi {

/// Keeps the text of this thread's last error, for MPI_Error_string. MPI_ERR_IN_STATUS keeps its parts, too.
void remember_error(int code, std::string text) noexcept;
/// Keeps the text of a failed request, before MPI_ERR_IN_STATUS is raised; the first one of each code. `is_first`: of
/// the call, so that older texts are dropped.
void remember_part(int code, std::string text, bool is_first) noexcept;
/// Returns the text of this thread's last error, or of a part of it, if it had this code; otherwise an empty one.
std::string last_error(int code);

}  // namespace tonari::mpi
