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

/// Returns the object of a handle: predefined ones have the numbers from `base` on, in the order of `table`. Null if
/// the handle names none.
template <std::uintptr_t base, class T, std::size_t size>
T* find_among(const std::array<T*, size>& table, T* handle) noexcept {
  static_assert(base % size == 0 && base + size <= first_address);  // the last bits are the index
  const std::uintptr_t number = number_of(handle);
  if (number < first_address) return number - base < size ? table[number - base] : nullptr;
  return handle->magic == T::word ? handle : nullptr;
}
/// The same for kinds without predefined objects.
template <class T>
T* find_made(T* handle) noexcept {
  return number_of(handle) >= first_address && handle->magic == T::word ? handle : nullptr;
}

inline Comm* find(MPI_Comm handle) noexcept { return find_among<0x100>(predefined.comms, handle); }
inline Group* find(MPI_Group handle) noexcept { return find_among<0x108>(predefined.groups, handle); }
inline Info* find(MPI_Info handle) noexcept { return find_among<0x130>(predefined.infos, handle); }
inline Errhandler* find(MPI_Errhandler handle) noexcept { return find_among<0x140>(predefined.errhandlers, handle); }
inline Op* find(MPI_Op handle) noexcept { return find_among<0x20>(predefined.ops, handle); }
inline Datatype* find(MPI_Datatype handle) noexcept { return find_among<0x200>(predefined.types, handle); }
/// The same for types that may be used in communication.
inline Datatype* find_committed(MPI_Datatype handle) noexcept {
  Datatype* const type = find(handle);
  return type != nullptr && type->is_committed ? type : nullptr;
}
inline Session* find(MPI_Session handle) noexcept { return find_made(handle); }
inline Win* find(MPI_Win handle) noexcept { return find_made(handle); }
inline File* find(MPI_File handle) noexcept { return find_made(handle); }
inline File* find_or_null(MPI_File handle) noexcept {
  return handle == MPI_FILE_NULL ? predefined.no_file : find_made(handle);
}

/// Returns the handle that programs know for a communicator: a number for a predefined one.
inline MPI_Comm handle_of(Comm* comm) noexcept {
  for (std::size_t i = 0; i < predefined.comms.size(); ++i) {
    if (predefined.comms[i] == comm) return reinterpret_cast<MPI_Comm>(std::uintptr_t{0x100} + i);
  }
  return comm;
}

}  // namespace tonari::mpi
