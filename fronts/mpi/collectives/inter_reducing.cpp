#include "message/exchanges.hpp"
#include "message/inter_collectives.hpp"
#include "mpi/collectives/inter.hpp"
#include "mpi/collectives/nested_scatter.hpp"
#include "mpi/collectives/reducing.hpp"

#include <numeric>
#include <vector>

// The collectives on inter-communicators that combine data.
namespace tonari::mpi {

using message::Part;

namespace {

// Rank 0 of each side has the other side's combination in `all`, and sends each rank of its side its part.
void write_scatter_parts(Schedule& schedule, const Comm& comm, std::span<const std::size_t> elements,
                         std::size_t element_bytes, std::span<std::byte> all, std::byte* result) {
  const auto part_of = [&](int rank) {
    const auto before = elements.first(static_cast<std::size_t>(rank));
    const auto first = std::accumulate(before.begin(), before.end(), std::size_t{0});
    return Part(all.subspan(first * element_bytes, elements[before.size()] * element_bytes));
  };
  const Part mine({result, elements[static_cast<std::size_t>(comm.rank())] * element_bytes});
  message::write_scatter(schedule, *comm.context, part_of, &mine, 0);
}

}  // namespace

void inter_reduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype* datatype, Op& op, int root, Comm& comm,
                  const How& how) {
  const int target = inter_root(comm, root);
  if (target == message::takes_no_part) return perform(comm, how, job::Wait::reduce, [](Schedule&) {});
  check_count(count, "count");
  Datatype& type = check_type(datatype, "datatype");
  const Reducing reducing = target == message::self_is_root ? Reducing::without_operands(recvbuf, count, type, op)
                                                            : Reducing(sendbuf, nullptr, count, 0, type, op, false);
  reducing.perform(comm, how, job::Wait::reduce,
                   [&](Schedule& schedule, const Reduction& reduction, Operands own, std::byte* result) {
                     message::write_inter_reduce(schedule, *comm.context, own, {result, own.size()}, reduction, target);
                   });
}

void inter_allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm,
                     const How& how) {
  const Reducing reducing(sendbuf, recvbuf, count, count, datatype, op, false);
  reducing.perform(comm, how, job::Wait::all_reduce,
                   [&](Schedule& schedule, const Reduction& reduction, Operands own, std::byte* result) {
                     message::write_inter_all_reduce(schedule, *comm.context, own, result, reduction);
                   });
}

void inter_reduce_scatter(const void* sendbuf, void* recvbuf, std::span<const std::size_t> elements, Datatype& datatype,
                          Op& op, Comm& comm, const How& how) {
  const auto count = static_cast<MPI_Count>(std::accumulate(elements.begin(), elements.end(), std::size_t{0}));
  const auto mine = static_cast<MPI_Count>(elements[static_cast<std::size_t>(comm.rank())]);
  const Reducing reducing(sendbuf, recvbuf, count, mine, datatype, op, false);
  message::Context& context = *comm.context;
  if (reducing.combining().is_nested()) {
    return reducing.perform_nested(
        comm, how, [&](Schedule& schedule, const Reduction& reduction, std::span<std::byte> staged) {
          message::write_inter_leaders_reduce(schedule, context, staged, staged.data(), reduction);
          const std::byte* const first = reducing.combining().address_in(staged.data());
          write_scatter_nested(schedule, comm, {first, recvbuf, elements, datatype});
        });
  }
  reducing.perform(comm, how, job::Wait::reduce,
                   [&](Schedule& schedule, const Reduction& reduction, Operands own, std::byte* result) {
                     const auto all = schedule.scratch(own.size());
                     message::write_inter_leaders_reduce(schedule, context, own, all.data(), reduction);
                     write_scatter_parts(schedule, comm, elements, reduction.element_bytes, all, result);
                   });
}

}  // namespace tonari::mpi
