#pragma once

#include "message/collectives.hpp"
#include "mpi/collectives/how.hpp"
#include "mpi/comm.hpp"

#include <memory>
#include <utility>

namespace tonari::mpi {

/// Throws the Failure that the status of a collective means, unless it is ok.
void check_collective(Status status);
/// Waits for a collective that is not persistent, or gives it to the program.
void finish(Comm& comm, const How& how, tonari::Request request);
/// Gives a persistent collective to the program.
void finish(Comm& comm, const How& how, std::shared_ptr<message::PersistentCollective> collective);

/// Executes the collective `what`, which `write(message::Schedule&)` records, as the program called it. `write` must
/// not throw Failure, because the other ranks wait for this one.
template <class Write>
void perform(Comm& comm, const How& how, job::Wait what, Write&& write) {
  message::Context& context = *comm.context;
  if (how.form == How::Form::persistent) {
    finish(comm, how, std::make_shared<message::PersistentCollective>(context, what, std::forward<Write>(write)));
  } else {
    finish(comm, how, message::start_collective(context, what, std::forward<Write>(write)));
  }
}

}  // namespace tonari::mpi
