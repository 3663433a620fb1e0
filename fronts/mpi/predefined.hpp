#pragma once

#include "mpi/comm.hpp"
#include "mpi/datatype.hpp"
#include "mpi/errhandler.hpp"
#include "mpi/file.hpp"
#include "mpi/group.hpp"
#include "mpi/info.hpp"
#include "mpi/op.hpp"
#include "mpi/session.hpp"
#include "mpi/win.hpp"

#include <array>

namespace tonari::mpi {

/// The objects behind predefined handles. A handle's last bits are its index, as the standard's numbers allow. Null
/// where there is no object: null handles, and everything that needs a job before MPI_Init and after MPI_Finalize.
///
/// Threads: written while the library is loaded, by MPI_Init and by MPI_Finalize; read by any thread.
struct Predefined {
  std::array<Datatype*, 512> types{};
  std::array<Op*, 32> ops{};
  std::array<Comm*, 4> comms{};
  std::array<Group*, 4> groups{};
  std::array<Info*, 4> infos{};
  std::array<Errhandler*, 4> errhandlers{};
  File* no_file = nullptr;  ///< Has the error handler of MPI_FILE_NULL, which new files start with.
};
extern Predefined predefined;

/// Returns the object that a handle names, or null if it names none.
inline Comm* find(MPI_Comm handle) noexcept {
  const std::uintptr_t number = number_of(handle);
  if (number < first_address) return (number & ~std::uintptr_t{3}) == 0x100 ? predefined.comms[number & 3] : nullptr;
  return handle->magic == Comm::word ? handle : nullptr;
}
inline Datatype* find(MPI_Datatype handle) noexcept {
  const std::uintptr_t number = number_of(handle);
  if (number < first_address)
    return (number & ~std::uintptr_t{511}) == 0x200 ? predefined.types[number & 511] : nullptr;
  return handle->magic == Datatype::word ? handle : nullptr;
}
/// The same for types that may be used in communication.
inline Datatype* find_committed(MPI_Datatype handle) noexcept {
  Datatype* const type = find(handle);
  return type != nullptr && type->is_committed ? type : nullptr;
}
inline Op* find(MPI_Op handle) noexcept {
  const std::uintptr_t number = number_of(handle);
  if (number < first_address) return (number & ~std::uintptr_t{31}) == 0x20 ? predefined.ops[number & 31] : nullptr;
  return handle->magic == Op::word ? handle : nullptr;
}
inline Group* find(MPI_Group handle) noexcept {
  const std::uintptr_t number = number_of(handle);
  if (number < first_address) return (number & ~std::uintptr_t{3}) == 0x108 ? predefined.groups[number & 3] : nullptr;
  return handle->magic == Group::word ? handle : nullptr;
}
inline Info* find(MPI_Info handle) noexcept {
  const std::uintptr_t number = number_of(handle);
  if (number < first_address) return (number & ~std::uintptr_t{3}) == 0x130 ? predefined.infos[number & 3] : nullptr;
  return handle->magic == Info::word ? handle : nullptr;
}
inline Errhandler* find(MPI_Errhandler handle) noexcept {
  const std::uintptr_t number = number_of(handle);
  if (number < first_address) {
    return (number & ~std::uintptr_t{3}) == 0x140 ? predefined.errhandlers[number & 3] : nullptr;
  }
  return handle->magic == Errhandler::word ? handle : nullptr;
}
template <class T>
T* find_made(T* handle) noexcept {
  return number_of(handle) >= first_address && handle->magic == T::word ? handle : nullptr;
}
/// Returns the handle that programs know for a communicator: a number for a predefined one.
inline MPI_Comm handle_of(Comm* comm) noexcept {
  for (std::size_t i = 0; i < predefined.comms.size(); ++i) {
    if (predefined.comms[i] == comm) return reinterpret_cast<MPI_Comm>(std::uintptr_t{0x100} + i);
  }
  return comm;
}
inline Session* find(MPI_Session handle) noexcept { return find_made(handle); }
inline Win* find(MPI_Win handle) noexcept { return find_made(handle); }
inline File* find(MPI_File handle) noexcept { return find_made(handle); }
inline File* find_or_null(MPI_File handle) noexcept {
  return handle == MPI_FILE_NULL ? predefined.no_file : find_made(handle);
}

}  // namespace tonari::mpi
