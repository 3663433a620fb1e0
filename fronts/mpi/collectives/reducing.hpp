#pragma once

#include "message/reductions.hpp"
#include "mpi/collectives/arguments.hpp"
#include "mpi/collectives/combining.hpp"
#include "mpi/collectives/perform.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace tonari::mpi {

using detail::Reduction;
using message::Operands;
using message::Schedule;

/// A reduction as a program asked for it, on one rank: `count` operands, of which `results` are this rank's result.
class Reducing {
 public:
  /// `in_place`: sendbuf may be MPI_IN_PLACE; then the operands are in recvbuf.
  Reducing(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Count results, Datatype& datatype, Op& op,
           bool in_place = true)
      : combining_(op, datatype, count), type_(datatype), count_(count), results_(results), result_(recvbuf) {
    const bool is_in_result = in_place && is_in_place(sendbuf);
    check_buffer(recvbuf, is_in_result ? count : results, datatype, "recvbuf");
    if (!is_in_result) check_buffer(sendbuf, count, datatype, "sendbuf");
    own_ = is_in_result ? recvbuf : sendbuf;
  }
  /// A rank that has no operands.
  static Reducing without_operands(void* recvbuf, MPI_Count count, Datatype& datatype, Op& op) {
    Reducing reducing(recvbuf, recvbuf, count, count, datatype, op);
    reducing.own_ = nullptr;
    reducing.has_operands_ = false;
    return reducing;
  }

  [[nodiscard]] const Combining& combining() const noexcept { return combining_; }
  [[nodiscard]] const std::byte* own() const noexcept { return static_cast<const std::byte*>(own_); }
  [[nodiscard]] std::span<std::byte> result() const noexcept {
    return {static_cast<std::byte*>(result_), combining_.bytes()};
  }

  /// Executes the reduction that `write(schedule, reduction, operands, address of the result)` records.
  template <class Write>
  void perform(Comm& comm, const How& how, job::Wait what, Write&& write) const {
    mpi::perform(comm, how, what, [&](Schedule& schedule) {
      if (!combining_.is_by_user()) return record(schedule, combining_.reduction(), write);
      const auto kept = std::make_shared<const Combining>(combining_);
      schedule.keep_alive(kept);
      record(schedule, kept->reduction(), write);
    });
  }
  /// The same for operands that lie inside of each other: `write(schedule, reduction, operands)` gets staged memory, in
  /// which it may write.
  template <class Write>
  void perform_nested(Comm& comm, const How& how, Write&& write) const {
    mpi::perform(comm, how, job::Wait::reduce, [&](Schedule& schedule) {
      const auto kept = std::make_shared<const Combining>(combining_);
      schedule.keep_alive(kept);
      write(schedule, kept->reduction(), stage(schedule));
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
    if (!has_operands_) return staged;
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
  bool has_operands_ = true;
};

}  // namespace tonari::mpi
