#pragma once

namespace tonari::mpi {

/// Returns the address of the value of an attribute that every communicator has, such as MPI_TAG_UB. It stays valid.
/// Null for all other keys. Needs a running Process.
int* predefined_attribute(int keyval) noexcept;

}  // namespace tonari::mpi
