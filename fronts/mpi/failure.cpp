#include "mpi/failure.hpp"

#include "mpi/process.hpp"

namespace tonari::mpi {

int class_of(Status status) noexcept {
  switch (status) {
    case Status::ok: return MPI_SUCCESS;
    case Status::truncated: return MPI_ERR_TRUNCATE;
    case Status::bounds: return MPI_ERR_COUNT;
    case Status::bad_address: return MPI_ERR_BUFFER;
    case Status::peer_gone: return MPI_ERR_PROC_ABORTED;
    case Status::no_memory: return MPI_ERR_NO_MEM;
    case Status::invalid: return MPI_ERR_ARG;
    default: return MPI_ERR_OTHER;
  }
}

Failure failure_of_collective(Status status) {
  if (status != Status::invalid && status != Status::truncated) return {class_of(status), explanation_of(status)};
  return {MPI_ERR_TRUNCATE,
          "the ranks disagree about the size of their data: counts and datatypes must fit on all ranks"};
}

std::string explanation_of(Status status) {
  Process* const process = Process::current();
  if (status != Status::peer_gone || process == nullptr) return std::string(explain(status));
  const std::string deaths = process->job().session().describe_deaths();
  if (deaths.empty()) return "a rank that the call needs has called MPI_Finalize already";
  return "a rank that the call needs has ended: of MPI_COMM_WORLD, " + deaths;
}

void check(Status status) {
  if (status != Status::ok) [[unlikely]]
    throw Failure(class_of(status), explanation_of(status));
}

}  // namespace tonari::mpi
