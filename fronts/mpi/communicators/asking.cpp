#include "functions.hpp"

// What a program asks about a communicator.
namespace tonari::mpi {

void comm_rank(Comm& comm, int* rank) { *rank = comm.rank(); }
void comm_size(Comm& comm, int* size) { *size = comm.size(); }
void comm_test_inter(Comm& comm, int* flag) { *flag = comm.is_inter ? 1 : 0; }

void comm_remote_size(Comm& comm, int* size) {
  if (!comm.is_inter) throw Failure(MPI_ERR_COMM, "comm has no remote group: it is no inter-communicator");
  *size = comm.peers;
}

}  // namespace tonari::mpi
