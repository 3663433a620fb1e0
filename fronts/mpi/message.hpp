#pragma once

#include "base/spare_memory.hpp"
#include "message/operation.hpp"
#include "mpi/comm.hpp"
#include "mpi/object.hpp"
#include "mpi/predefined.hpp"

namespace tonari::mpi {
using Message = MPI_ABI_Message;
}

/// A message that a matched probe has taken out of the queue.
struct MPI_ABI_Message : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x6d736773;
  MPI_ABI_Message(tonari::mpi::Comm& of_comm, tonari::message::Operation& has_it) noexcept
      : Object(word), comm(&of_comm), probe(has_it) {}
  static void* operator new(std::size_t /*bytes*/) { return tonari::SpareMemory<MPI_ABI_Message>::take(); }
  static void operator delete(void* memory) noexcept { tonari::SpareMemory<MPI_ABI_Message>::give(memory); }

  tonari::mpi::Ref<tonari::mpi::Comm> comm;
  tonari::message::Operation& probe;  ///< Becomes its receive.
};

namespace tonari::mpi {

/// Returns the message that a handle names. Null if it is MPI_MESSAGE_NULL, MPI_MESSAGE_NO_PROC or wrong.
inline Message* find(MPI_Message handle) noexcept { return find_made(handle); }

}  // namespace tonari::mpi
