#include "functions.hpp"
#include "message/exchanges.hpp"
#include "message/reductions.hpp"
#include "mpi/collectives/arguments.hpp"
#include "mpi/collectives/combining.hpp"
#include "mpi/collectives/perform.hpp"

#include <memory>
#include <numeric>
#include <vector>

// The collectives that combine data.
namespace tonari::mpi {

using detail::Reduction;
using message::Operands;
using message::Part;
using message::Schedule;

namespace {

// A reduction as a program asked for it, on one rank: `count` operands, of which `results` are this rank's result.
class Reducing {
 public:
  // `in_place`: sendbuf may be MPI_IN_PLACE; then the operands are in recvbuf.
  Reducing(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Count results, Datatype& datatype, Op& op,
           bool in_place = true)
      : combining_(op, datatype, count), type_(datatype), count_(count), results_(results), result_(recvbuf) {
    if (!in_place) check_buffer(sendbuf, "sendbuf");
    check_buffer(recvbuf, "recvbuf");
    own_ = is_in_place(sendbuf) ? recvbuf : sendbuf;
  }

  [[nodiscard]] const Combining& combining() const noexcept { return combining_; }
  [[nodiscard]] const std::byte* own() const noexcept { return static_cast<const std::byte*>(own_); }
  [[nodiscard]] std::span<std::byte> result() const noexcept {
    return {static_cast<std::byte*>(result_), combining_.bytes()};
  }

  // Executes the reduction that `write(schedule, reduction, operands, address of the result)` records.
  template <class Write>
  void perform(Comm& comm, const How& how, job::Wait what, Write&& write) const {
    mpi::perform(comm, how, what, [&](Schedule& schedule) {
      if (!combining_.is_by_user()) return record(schedule, combining_.reduction(), write);
      const auto kept = std::make_shared<const Combining>(combining_);
      schedule.keep_alive(kept);
      record(schedule, kept->reduction(), write);
    });
  }
  // Records the same for operands that lie inside of each other: `write(schedule, address of the first operand)` gets
  // the combination of all ranks on rank 0.
  template <class Write>
  void perform_nested(Comm& comm, const How& how, Write&& write) const {
    mpi::perform(comm, how, job::Wait::reduce, [&](Schedule& schedule) {
      const auto kept = std::make_shared<const Combining>(combining_);
      schedule.keep_alive(kept);
      const auto staged = stage(schedule);
      message::write_reduce(schedule, *comm.context, staged, staged.data(), kept->reduction(), 0);
      schedule.next_round();
      write(schedule, combining_.address_in(staged.data()));
    });
  }

 private:
  template <class Write>
  void record(Schedule& schedule, const Reduction& reduction, Write&& write) const {
    if (!combining_.is_staged())
      return write(schedule, reduction, Operands{own(), combining_.bytes()}, result().data());
    const auto staged = stage(schedule);
    write(schedule, reduction, Operands{staged}, staged.data());
    if (results_ == 0) return;
    schedule.next_round();
    schedule.copy(cursor(result_, results_, type_), cursor(combining_.address_in(staged.data()), results_, type_));
  }

  [[nodiscard]] std::span<std::byte> stage(Schedule& schedule) const {
    const auto staged = schedule.scratch(combining_.bytes());
    schedule.copy(cursor(combining_.address_in(staged.data()), count_, type_), cursor(own_, count_, type_));
    schedule.next_round();
    return staged;
  }

  Combining combining_;
  const Datatype& type_;
  MPI_Count count_;
  MPI_Count results_;
  const void* own_;
  void* result_;
};

void scan_values(const Reducing& scan, Comm& comm, const How& how, bool exclusive) {
  scan.perform(comm, how, job::Wait::scan,
               [&](Schedule& schedule, const Reduction& reduction, Operands own, std::byte* result) {
                 message::write_scan(schedule, *comm.context, own, result, reduction, exclusive);
               });
}

// `elements`: by rank, the length of its part of the result.
void scatter_reduced(const void* sendbuf, void* recvbuf, const std::vector<std::size_t>& elements, Datatype& datatype,
                     Op& op, Comm& comm, const How& how) {
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
  reducing.perform_nested(comm, how, [&](Schedule& schedule, std::byte* combined) {
    const Part part = cursor(recvbuf, mine, datatype);
    const auto part_of = [&](int rank) {
      const auto* const end = elements.data() + rank;
      const auto before = std::accumulate(elements.data(), end, std::size_t{0});
      return cursor(combined + static_cast<MPI_Count>(before) * datatype.extent, static_cast<MPI_Count>(*end),
                    datatype);
    };
    message::write_scatter(schedule, context, part_of, &part, 0);
  });
}

}  // namespace

void reduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype* datatype, Op& op, int root, Comm& comm,
            const How& how) {
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
  const Reducing reducing(sendbuf, recvbuf, count, count, datatype, op);
  const Combining& combining = reducing.combining();
  message::Context& context = *comm.context;
  if (how.form == How::Form::blocking && !combining.is_staged()) {
    return mpi::check(message::all_reduce(context, reducing.own(), reducing.result(), combining.reduction()));
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
  std::vector<std::size_t> elements;
  if (recvcounts.is_null()) throw Failure(MPI_ERR_ARG, "recvcounts is a null pointer");
  for (int rank = 0; rank < comm.size(); ++rank) {
    check_count(recvcounts[rank], "recvcount", rank);
    elements.push_back(static_cast<std::size_t>(recvcounts[rank]));
  }
  scatter_reduced(sendbuf, recvbuf, elements, datatype, op, comm, how);
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
