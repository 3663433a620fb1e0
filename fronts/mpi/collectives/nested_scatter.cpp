#include "mpi/collectives/nested_scatter.hpp"

#include "message/exchanges.hpp"

#include <numeric>

namespace tonari::mpi {

void write_scatter_nested(message::Schedule& schedule, const Comm& comm, const NestedResult& result) {
  const auto count_of = [&](int rank) {
    return static_cast<MPI_Count>(result.elements[static_cast<std::size_t>(rank)]);
  };
  const auto part_of = [&](int rank) {
    const auto before = result.elements.first(static_cast<std::size_t>(rank));
    const auto first = std::accumulate(before.begin(), before.end(), std::size_t{0});
    return cursor(result.combined + static_cast<MPI_Count>(first) * result.type.extent, count_of(rank), result.type);
  };
  const message::Part mine = cursor(result.recvbuf, count_of(comm.rank()), result.type);
  message::write_scatter(schedule, *comm.context, part_of, &mine, 0);
}

}  // namespace tonari::mpi
