#include "message/inter_collectives.hpp"
#include "mpi/collectives/arguments.hpp"
#include "mpi/collectives/inter.hpp"
#include "mpi/collectives/perform.hpp"

#include <functional>

// The collectives on inter-communicators that move data without combining them.
namespace tonari::mpi {

using message::Part;
using message::Parts;
using message::Schedule;
using message::self_is_root;
using message::takes_no_part;

namespace {

Part no_part() noexcept { return Part(std::span<std::byte>{}); }

void gather_parts(Comm& comm, const How& how, int root, const Part& mine, const Parts& all) {
  perform(comm, how, job::Wait::gather,
          [&](Schedule& schedule) { message::write_inter_gather(schedule, *comm.context, mine, all, root); });
}

void scatter_parts(Comm& comm, const How& how, int root, const Parts& all, const Part& mine) {
  perform(comm, how, job::Wait::scatter,
          [&](Schedule& schedule) { message::write_inter_scatter(schedule, *comm.context, all, mine, root); });
}

}  // namespace

void inter_barrier(Comm& comm, const How& how) {
  perform(comm, how, job::Wait::barrier,
          [&](Schedule& schedule) { message::write_inter_barrier(schedule, *comm.context); });
}

void inter_bcast(void* buffer, MPI_Count count, Datatype* datatype, int root, Comm& comm, const How& how) {
  const int source = inter_root(comm, root);
  const Part data = source == takes_no_part ? no_part() : Blocks(buffer, count, datatype, names_of_one).whole();
  perform(comm, how, job::Wait::broadcast,
          [&](Schedule& schedule) { message::write_inter_broadcast(schedule, *comm.context, data, source); });
}

void inter_gather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                  Datatype* recvtype, int root, Comm& comm, const How& how) {
  const int target = inter_root(comm, root);
  if (target == takes_no_part) return gather_parts(comm, how, target, no_part(), {});
  if (target != self_is_root) {
    return gather_parts(comm, how, target, Blocks(sendbuf, sendcount, sendtype, names_of_sent).whole(), {});
  }
  const Blocks all(recvbuf, recvcount, recvtype, names_of_received);
  gather_parts(comm, how, target, no_part(), std::cref(all));
}

void inter_gatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, Counts recvcounts,
                   Counts displs, Datatype* recvtype, int root, Comm& comm, const How& how) {
  const int target = inter_root(comm, root);
  if (target != self_is_root) {
    return inter_gather(sendbuf, sendcount, sendtype, nullptr, 0, nullptr, root, comm, how);
  }
  const CountedBlocks all(recvbuf, recvcounts, displs, recvtype, comm.peers, names_of_received);
  gather_parts(comm, how, target, no_part(), std::cref(all));
}

void inter_scatter(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                   Datatype* recvtype, int root, Comm& comm, const How& how) {
  const int source = inter_root(comm, root);
  if (source == takes_no_part) return scatter_parts(comm, how, source, {}, no_part());
  if (source != self_is_root) {
    return scatter_parts(comm, how, source, {}, Blocks(recvbuf, recvcount, recvtype, names_of_received).whole());
  }
  const Blocks all(sendbuf, sendcount, sendtype, names_of_sent);
  scatter_parts(comm, how, source, std::cref(all), no_part());
}

void inter_scatterv(const void* sendbuf, Counts sendcounts, Counts displs, Datatype* sendtype, void* recvbuf,
                    MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm, const How& how) {
  const int source = inter_root(comm, root);
  if (source != self_is_root) {
    return inter_scatter(nullptr, 0, nullptr, recvbuf, recvcount, recvtype, root, comm, how);
  }
  const CountedBlocks all(sendbuf, sendcounts, displs, sendtype, comm.peers, names_of_sent);
  scatter_parts(comm, how, source, std::cref(all), no_part());
}

void inter_exchange(const Parts& sent, const Parts& received, Comm& comm, const How& how) {
  perform(comm, how, job::Wait::all_to_all,
          [&](Schedule& schedule) { message::write_inter_exchange(schedule, *comm.context, sent, received); });
}

}  // namespace tonari::mpi
