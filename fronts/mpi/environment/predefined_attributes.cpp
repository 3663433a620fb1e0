#include "mpi/environment/predefined_attributes.hpp"

#include "mpi.h"
#include "mpi/environment/error_codes.hpp"
#include "mpi/process.hpp"

#include <atomic>
#include <cstdlib>
#include <limits>

namespace tonari::mpi {

namespace {

// The program reads the values where they are. Each thread that asks stores the same.
int* keep(int& place, int value) noexcept {
  std::atomic_ref(place).store(value, std::memory_order_relaxed);
  return &place;
}

int tag_ub = 0;
int io = 0;
int host = 0;
int wtime_is_global = 0;
int appnum = 0;
int universe_size = 0;

// Programs of one mpiexec are numbered: mpiexec a : b.
int number_of_program() noexcept {
  const char* const text = std::getenv("TONARI_MPI_APPNUM");
  return text != nullptr ? std::atoi(text) : 0;
}

}  // namespace

int* predefined_attribute(int keyval) noexcept {
  switch (keyval) {
    case MPI_TAG_UB: return keep(tag_ub, std::numeric_limits<int>::max());
    case MPI_IO: return keep(io, MPI_ANY_SOURCE);  // every rank can use files
    case MPI_HOST: return keep(host, MPI_PROC_NULL);
    // MPI_Wtime reads the host's monotonic clock.
    case MPI_WTIME_IS_GLOBAL: return keep(wtime_is_global, Process::current()->job().hosts() == 1 ? 1 : 0);
    case MPI_APPNUM: return keep(appnum, number_of_program());
    case MPI_LASTUSEDCODE: return last_used_code();
    case MPI_UNIVERSE_SIZE: return keep(universe_size, Process::current()->job().size());
    default: return nullptr;
  }
}

}  // namespace tonari::mpi
