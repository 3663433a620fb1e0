#pragma once

#include <string>
#include <string_view>

// Error classes and codes, of the standard and of the program. The front's functions fail with error
// classes of the standard, which are error codes, too.
//
// Threads: any. Functions that change the table throw Failure.
namespace tonari::mpi {

/// Returns the name of an error class of the standard, such as MPI_ERR_RANK. Empty for all other numbers.
std::string_view error_class_name(int code) noexcept;
/// Returns one sentence about an error class of the standard, or the text that the program gave the code. Empty if the
/// code exists and has no text.
std::string error_sentence(int code);
/// Returns the class of a code. MPI_ERR_UNKNOWN if there is no such code.
int error_class_of(int code);
/// Returns true if `code` is an error class of the standard, or was added and not removed.
bool is_error_code(int code);

/// Returns the address of the largest code in use, the value of the attribute MPI_LASTUSEDCODE. It stays valid.
int* last_used_code() noexcept;

}  // namespace tonari::mpi
