#include "functions.hpp"
#include "message/exchanges.hpp"
#include "mpi/collectives/arguments.hpp"
#include "mpi/collectives/inter.hpp"
#include "mpi/collectives/perform.hpp"

#include <functional>
#include <optional>

// The collectives that move data without combining them.
namespace tonari::mpi {

using message::Part;
using message::Parts;
using message::Schedule;

namespace {

// The own data of a rank, or nothing if they are in place.
const Part* pointer_to(const std::optional<Part>& part) noexcept { return part ? &*part : nullptr; }

[[noreturn]] void refuse_in_place() {
  throw Failure(MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE, which is not allowed on an inter-communicator");
}

void gather_parts(Comm& comm, const How& how, int root, const std::optional<Part>& mine, const Parts& all) {
  perform(comm, how, job::Wait::gather,
          [&](Schedule& schedule) { message::write_gather(schedule, *comm.context, pointer_to(mine), all, root); });
}

void scatter_parts(Comm& comm, const How& how, int root, const Parts& all, const std::optional<Part>& mine) {
  perform(comm, how, job::Wait::scatter,
          [&](Schedule& schedule) { message::write_scatter(schedule, *comm.context, all, pointer_to(mine), root); });
}

void all_gather_parts(Comm& comm, const How& how, const std::optional<Part>& mine, const Parts& all) {
  if (comm.is_inter) [[unlikely]] {
    if (!mine) refuse_in_place();
    return inter_exchange([&](int) { return *mine; }, all, comm, how);
  }
  perform(comm, how, job::Wait::all_gather,
          [&](Schedule& schedule) { message::write_all_gather(schedule, *comm.context, pointer_to(mine), all); });
}

void exchange_parts(Comm& comm, const How& how, const Parts& sent, const Parts& received) {
  if (comm.is_inter) [[unlikely]]
    return inter_exchange(sent, received, comm, how);
  perform(comm, how, job::Wait::all_to_all,
          [&](Schedule& schedule) { message::write_all_to_all(schedule, *comm.context, sent, received); });
}

void exchange_parts_in_place(Comm& comm, const How& how, const Parts& exchanged) {
  if (comm.is_inter) refuse_in_place();
  perform(comm, how, job::Wait::all_to_all,
          [&](Schedule& schedule) { message::write_all_to_all_in_place(schedule, *comm.context, exchanged); });
}

std::optional<Part> sent_part(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype) {
  return Blocks(sendbuf, sendcount, sendtype, names_of_sent).whole();
}
std::optional<Part> sent_unless_in_place(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype) {
  if (is_in_place(sendbuf)) return std::nullopt;
  return sent_part(sendbuf, sendcount, sendtype);
}

}  // namespace

void barrier(Comm& comm, const How& how) {
  if (comm.is_inter) [[unlikely]]
    return inter_barrier(comm, how);
  message::Context& context = *comm.context;
  switch (how.form) {
    case How::Form::blocking: return check_collective(message::barrier(context));
    case How::Form::started: return finish(comm, how, message::start_barrier(context));
    case How::Form::persistent:
      return perform(comm, how, job::Wait::barrier,
                     [&](Schedule& schedule) { message::write_barrier(schedule, context); });
  }
}

void bcast(void* buffer, MPI_Count count, Datatype* datatype, int root, Comm& comm, const How& how) {
  if (comm.is_inter) [[unlikely]]
    return inter_bcast(buffer, count, datatype, root, comm, how);
  check_root(comm, root);
  const Part data = Blocks(buffer, count, datatype, names_of_one).whole();
  message::Context& context = *comm.context;
  switch (how.form) {
    case How::Form::blocking: return check_collective(message::broadcast(context, data, root));
    case How::Form::started: return finish(comm, how, message::start_broadcast(context, data, root));
    case How::Form::persistent:
      return perform(comm, how, job::Wait::broadcast,
                     [&](Schedule& schedule) { message::write_broadcast(schedule, context, data, root); });
  }
}

void gather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
            Datatype* recvtype, int root, Comm& comm, const How& how) {
  if (comm.is_inter) [[unlikely]]
    return inter_gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, how);
  check_root(comm, root);
  if (comm.rank() != root) return gather_parts(comm, how, root, sent_part(sendbuf, sendcount, sendtype), {});
  const Blocks all(recvbuf, recvcount, recvtype, names_of_received);
  gather_parts(comm, how, root, sent_unless_in_place(sendbuf, sendcount, sendtype), std::cref(all));
}

void gatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, Counts recvcounts,
             Counts displs, Datatype* recvtype, int root, Comm& comm, const How& how) {
  if (comm.is_inter) [[unlikely]]
    return inter_gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, how);
  check_root(comm, root);
  if (comm.rank() != root) return gather_parts(comm, how, root, sent_part(sendbuf, sendcount, sendtype), {});
  const CountedBlocks all(recvbuf, recvcounts, displs, recvtype, comm.size(), names_of_received);
  gather_parts(comm, how, root, sent_unless_in_place(sendbuf, sendcount, sendtype), std::cref(all));
}

void scatter(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
             Datatype* recvtype, int root, Comm& comm, const How& how) {
  if (comm.is_inter) [[unlikely]]
    return inter_scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, how);
  check_root(comm, root);
  std::optional<Part> mine;
  if (comm.rank() != root || !is_in_place(recvbuf)) {
    mine = Blocks(recvbuf, recvcount, recvtype, names_of_received).whole();
  }
  if (comm.rank() != root) return scatter_parts(comm, how, root, {}, mine);
  const Blocks all(sendbuf, sendcount, sendtype, names_of_sent);
  scatter_parts(comm, how, root, std::cref(all), mine);
}

void scatterv(const void* sendbuf, Counts sendcounts, Counts displs, Datatype* sendtype, void* recvbuf,
              MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm, const How& how) {
  if (comm.is_inter) [[unlikely]]
    return inter_scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, how);
  check_root(comm, root);
  std::optional<Part> mine;
  if (comm.rank() != root || !is_in_place(recvbuf)) {
    mine = Blocks(recvbuf, recvcount, recvtype, names_of_received).whole();
  }
  if (comm.rank() != root) return scatter_parts(comm, how, root, {}, mine);
  const CountedBlocks all(sendbuf, sendcounts, displs, sendtype, comm.size(), names_of_sent);
  scatter_parts(comm, how, root, std::cref(all), mine);
}

void allgather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
               Datatype* recvtype, Comm& comm, const How& how) {
  const Blocks all(recvbuf, recvcount, recvtype, names_of_received);
  all_gather_parts(comm, how, sent_unless_in_place(sendbuf, sendcount, sendtype), std::cref(all));
}

void allgatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, Counts recvcounts,
                Counts displs, Datatype* recvtype, Comm& comm, const How& how) {
  const CountedBlocks all(recvbuf, recvcounts, displs, recvtype, comm.peers, names_of_received);
  all_gather_parts(comm, how, sent_unless_in_place(sendbuf, sendcount, sendtype), std::cref(all));
}

void alltoall(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
              Datatype* recvtype, Comm& comm, const How& how) {
  const Blocks received(recvbuf, recvcount, recvtype, names_of_received);
  if (is_in_place(sendbuf)) return exchange_parts_in_place(comm, how, std::cref(received));
  const Blocks sent(sendbuf, sendcount, sendtype, names_of_sent);
  exchange_parts(comm, how, std::cref(sent), std::cref(received));
}

void alltoallv(const void* sendbuf, Counts sendcounts, Counts sdispls, Datatype* sendtype, void* recvbuf,
               Counts recvcounts, Counts rdispls, Datatype* recvtype, Comm& comm, const How& how) {
  const CountedBlocks received(recvbuf, recvcounts, rdispls, recvtype, comm.peers, names_of_received);
  if (is_in_place(sendbuf)) return exchange_parts_in_place(comm, how, std::cref(received));
  const CountedBlocks sent(sendbuf, sendcounts, sdispls, sendtype, comm.peers, names_of_sent);
  exchange_parts(comm, how, std::cref(sent), std::cref(received));
}

void alltoallw(const void* sendbuf, Counts sendcounts, Counts sdispls, const MPI_Datatype* sendtypes, void* recvbuf,
               Counts recvcounts, Counts rdispls, const MPI_Datatype* recvtypes, Comm& comm, const How& how) {
  const TypedBlocks received(recvbuf, recvcounts, rdispls, recvtypes, comm.peers, names_of_received);
  if (is_in_place(sendbuf)) return exchange_parts_in_place(comm, how, std::cref(received));
  const TypedBlocks sent(sendbuf, sendcounts, sdispls, sendtypes, comm.peers, names_of_sent);
  exchange_parts(comm, how, std::cref(sent), std::cref(received));
}

}  // namespace tonari::mpi
