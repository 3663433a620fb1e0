#pragma once

#include "message/context.hpp"
#include "mpi/attributes.hpp"
#include "mpi/errhandler.hpp"
#include "mpi/info.hpp"
#include "mpi/object.hpp"
#include "mpi/session_buffer.hpp"
#include "mpi/topology.hpp"

#include <memory>
#include <string>

namespace tonari::mpi {
using Comm = MPI_ABI_Comm;
}

/// A communicator: the runtime's Context, and what MPI adds to it.
struct MPI_ABI_Comm : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x636f6d6d;
  explicit MPI_ABI_Comm(std::shared_ptr<tonari::message::Context> made);
  /// A communicator that is being made: settle() when it has its context.
  MPI_ABI_Comm();
  void settle() noexcept;

  [[nodiscard]] int rank() const noexcept { return context->rank(); }
  [[nodiscard]] int size() const noexcept { return context->size(); }
  [[nodiscard]] bool is_peer(int rank) const noexcept {
    return static_cast<unsigned>(rank) < static_cast<unsigned>(peers);
  }
  [[nodiscard]] bool is_peer_or_null(int rank) const noexcept { return is_peer(rank) || rank == MPI_PROC_NULL; }
  [[nodiscard]] bool is_source(int rank) const noexcept { return is_peer_or_null(rank) || rank == MPI_ANY_SOURCE; }

  std::shared_ptr<tonari::message::Context> context;
  int peers = 0;          ///< Number of ranks that sends and receives name: of the remote group, if there is one.
  bool is_inter = false;  ///< It has a remote group.
  tonari::mpi::Ref<tonari::mpi::Errhandler> errhandler;
  tonari::mpi::Attributes attributes;
  std::unique_ptr<tonari::mpi::Topology> topology;  ///< Null if it has none.
  tonari::mpi::Hints hints;
  std::shared_ptr<tonari::mpi::AttachedBuffer> attached_buffer;  ///< For buffered sends. Null if it has none.
  std::shared_ptr<tonari::mpi::SessionBuffer> session_buffer;    ///< Null if the communicator is of no session.
  std::string name;
};
