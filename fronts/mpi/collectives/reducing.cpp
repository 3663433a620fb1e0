#include "mpi/collectives/reducing.hpp"
#include "functions.hpp"
#include "message/exchanges.hpp"
#include "message/reductions.hpp"
#include "mpi/collectives/inter.hpp"
#include "mpi/collectives/nested_scatter.hpp"

#include <numeric>
#include <span>
#include <vector>

// The collectives that combine data.
namespace tonari::mpi {

using message::Part;

namespace {

void scan_values(const Reducing& scan, Comm& comm, const How& how, bool exclusive) {
  check_intra(comm);
  scan.perform(comm, how, job::Wait::scan,
               [&](Schedule& schedule, const Reduction& reduction, Operands own, std::byte* result) {
                 message::write_scan(schedule, *comm.context, own, result, reduction, exclusive);
               });
}

std::vector<std::size_t> lengths_of(const Counts& counts, const Comm& comm) {
  if (counts.is_null()) throw Failure(MPI_ERR_ARG, "recvcounts is a null pointer");
  std::vector<std::size_t> elements;
  for (int rank = 0; rank < comm.size(); ++rank) {
    check_count(counts[rank], "recvcount", rank);
    elements.push_back(static_cast<std::size_t>(counts[rank]));
  }
  return elements;
}

// `elements`: by rank, the length of its part of the result.
void scatter_reduced(const void* sendbuf, void* recvbuf, const std::vector<std::size_t>& elements, Datatype& datatype,
                     Op& op, Comm& comm, const How& how) {
  if (comm.is_inter) [[unlikely]]
    return inter_reduce_scatter(sendbuf, recvbuf, elements, datatype, op, comm, how);
  const auto all = std::accumulate(elements.begin(), elements.end(), std::size_t{0});
  const auto mine = static_cast<MPI_Count>(elements[static_cast<std::size_t>(comm.rank())]);
  const Reducing reducing(sendbuf, recvbuf, static_cast<MPI_Count>(all), mine, datatype, op);
  message::Context& context = *comm.context;
  if (!reducing.combining().is_nested()) {
    return reducing.perform(comm, how, job::Wait::reduce,
                            [&](Schedule& schedule, const Reduction& reduction, Operands own, std::byte* result) {
                              message::write_reduce_scatter(schedule, context, own.data(), elements, result, reduction);
                            });
  }
  reducing.perform_nested(comm, how, [&](Schedule& schedule, const Reduction& reduction, std::span<std::byte> staged) {
    message::write_reduce(schedule, context, staged, staged.data(), reduction, 0);
    schedule.next_round();
    write_scatter_nested(schedule, comm, {reducing.combining().address_in(staged.data()), recvbuf, elements, datatype});
  });
}

}  // namespace

void reduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype* datatype, Op& op, int root, Comm& comm,
            const How& how) {
  if (comm.is_inter) [[unlikely]]
    return inter_reduce(sendbuf, recvbuf, count, datatype, op, root, comm, how);
  check_root(comm, root);
  check_count(count, "count");
  const bool is_root = comm.rank() == root;
  const Reducing reducing(sendbuf, is_root ? recvbuf : nullptr, count, is_root ? count : 0,
                          check_type(datatype, "datatype"), op, is_root);
  reducing.perform(comm, how, job::Wait::reduce,
                   [&](Schedule& schedule, const Reduction& reduction, Operands own, std::byte* result) {
                     message::write_reduce(schedule, *comm.context, own, result, reduction, root);
                   });
}

void allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm,
               const How& how) {
  if (comm.is_inter) [[unlikely]]
    return inter_allreduce(sendbuf, recvbuf, count, datatype, op, comm, how);
  const Reducing reducing(sendbuf, recvbuf, count, count, datatype, op);
  const Combining& combining = reducing.combining();
  message::Context& context = *comm.context;
  if (how.form == How::Form::blocking && !combining.is_staged()) {
    return check_collective(message::all_reduce(context, reducing.own(), reducing.result(), combining.reduction()));
  }
  if (how.form == How::Form::started && !combining.is_by_user()) {
    return finish(comm, how,
                  message::start_all_reduce(context, reducing.own(), reducing.result(), combining.reduction()));
  }
  reducing.perform(comm, how, job::Wait::all_reduce,
                   [&](Schedule& schedule, const Reduction& reduction, Operands own, std::byte* result) {
                     message::write_all_reduce(schedule, context, own, result, reduction);
                   });
}

void reduce_scatter(const void* sendbuf, void* recvbuf, Counts recvcounts, Datatype& datatype, Op& op, Comm& comm,
                    const How& how) {
  scatter_reduced(sendbuf, recvbuf, lengths_of(recvcounts, comm), datatype, op, comm, how);
}

void reduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount, Datatype& datatype, Op& op,
                          Comm& comm, const How& how) {
  const std::vector<std::size_t> elements(static_cast<std::size_t>(comm.size()), static_cast<std::size_t>(recvcount));
  scatter_reduced(sendbuf, recvbuf, elements, datatype, op, comm, how);
}

void scan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm, const How& how) {
  scan_values({sendbuf, recvbuf, count, count, datatype, op}, comm, how, false);
}

void exscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm,
            const How& how) {
  scan_values({sendbuf, recvbuf, count, comm.rank() == 0 ? 0 : count, datatype, op}, comm, how, true);
}

}  // namespace tonari::mpi
