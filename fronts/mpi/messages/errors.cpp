#include "mpi/messages/errors.hpp"

#include <fmt/format.h>

namespace tonari::mpi {

std::string text_of_send(Status status, int dest, int tag) {
  return fmt::format("sending to rank {} with tag {}: {}", dest, tag, explanation_of(status));
}

std::string text_of_receive(const Result<Envelope>& result, std::size_t buffer_bytes) {
  const Envelope& envelope = result.value;
  if (result.status != Status::truncated) return "receiving: " + explanation_of(result.status);
  return fmt::format(
      "a message of {} bytes from rank {} with tag {} is longer than the buffer of {} bytes, which has its first part: "
      "receive it with a larger count, or ask for its length first with MPI_Probe",
      envelope.bytes, envelope.source.value(), envelope.tag.value(), buffer_bytes);
}

void fail_send(Status status, int dest, int tag) { throw Failure(class_of(status), text_of_send(status, dest, tag)); }

void fail_receive(Comm& comm, const Result<Envelope>& result, std::size_t buffer_bytes) {
  throw CommFailure(class_of(result.status), text_of_receive(result, buffer_bytes), Ref<Comm>(&comm));
}

}  // namespace tonari::mpi
