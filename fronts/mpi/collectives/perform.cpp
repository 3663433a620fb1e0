#include "mpi/collectives/perform.hpp"

#include "mpi/failure.hpp"
#include "mpi/request.hpp"

namespace tonari::mpi {

void check_collective(Status status) {
  if (status != Status::ok) [[unlikely]]
    throw failure_of_collective(status);
}

void finish(Comm& comm, const How& how, tonari::Request request) {
  if (how.form == How::Form::blocking) return check_collective(request.wait().status);
  *how.request = make_request(comm, std::move(request));
}

void finish(Comm& comm, const How& how, std::shared_ptr<message::PersistentCollective> collective) {
  *how.request = make_persistent(comm, [collective = std::move(collective)] { return collective->start(); });
}

}  // namespace tonari::mpi
