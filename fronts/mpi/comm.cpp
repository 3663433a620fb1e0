#include "mpi/comm.hpp"

#include "mpi/predefined.hpp"

MPI_ABI_Comm::MPI_ABI_Comm() : Object(word), errhandler(tonari::mpi::find(MPI_ERRORS_ARE_FATAL)) {}

MPI_ABI_Comm::MPI_ABI_Comm(std::shared_ptr<tonari::message::Context> made) : MPI_ABI_Comm() {
  context = std::move(made);
  settle();
}

void MPI_ABI_Comm::settle() noexcept {
  peers = context->peers().size();
  is_inter = context->is_inter();
}
