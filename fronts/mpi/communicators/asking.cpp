#include "functions.hpp"

#include <algorithm>

// Questions of a program about a communicator.
namespace tonari::mpi {

namespace {

int compare(const tonari::Group& left, const tonari::Group& right) {
  if (left.ranks() == right.ranks()) return MPI_CONGRUENT;
  const bool same = left.size() == right.size() &&
                    std::ranges::all_of(left.ranks(), [&](JobRank rank) { return right.position(rank).has_value(); });
  return same ? MPI_SIMILAR : MPI_UNEQUAL;
}

void check_inter(const Comm& comm) {
  if (!comm.is_inter) throw Failure(MPI_ERR_COMM, "comm has no remote group: it is no inter-communicator");
}

}  // namespace

void comm_rank(Comm& comm, int* rank) { *rank = comm.rank(); }
void comm_size(Comm& comm, int* size) { *size = comm.size(); }
void comm_test_inter(Comm& comm, int* flag) { *flag = comm.is_inter ? 1 : 0; }
void comm_group(Comm& comm, MPI_Group* group) { *group = new Group(comm.context->group(), comm.session_buffer); }

void comm_remote_size(Comm& comm, int* size) {
  check_inter(comm);
  *size = comm.peers;
}

void comm_remote_group(Comm& comm, MPI_Group* group) {
  check_inter(comm);
  *group = new Group(comm.context->peers(), comm.session_buffer);
}

void comm_compare(Comm& comm1, Comm& comm2, int* result) {
  *result = MPI_IDENT;
  if (&comm1 == &comm2) return;
  *result = MPI_UNEQUAL;
  if (comm1.is_inter != comm2.is_inter) return;
  // The greatest constant is the greatest difference.
  *result = std::max(compare(comm1.context->group(), comm2.context->group()),
                     compare(comm1.context->peers(), comm2.context->peers()));
}

}  // namespace tonari::mpi
