#include "mpi/comm.hpp"

#include "mpi/predefined.hpp"

MPI_ABI_Comm::MPI_ABI_Comm(std::shared_ptr<tonari::message::Context> made)
    : Object(word),
      context(std::move(made)),
      peers(context->size()),
      errhandler(tonari::mpi::find(MPI_ERRORS_ARE_FATAL)) {}
