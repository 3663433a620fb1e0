#pragma once

#include "mpi/object.hpp"

namespace tonari::mpi {
using Errhandler = MPI_ABI_Errhandler;
}

/// The reaction to a function that fails.
struct MPI_ABI_Errhandler : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x65727268;
  enum class Kind { fatal, abort, returns, comm, win, file, session };
  explicit MPI_ABI_Errhandler(Kind what) noexcept : Object(word), kind(what) {}

  Kind kind;
  union {
    MPI_Comm_errhandler_function* of_comm = nullptr;
    MPI_Win_errhandler_function* of_win;
    MPI_File_errhandler_function* of_file;
    MPI_Session_errhandler_function* of_session;
  };
};
