#include "functions.hpp"
#include "message/message_runtime.hpp"
#include "message/typed.hpp"
#include "mpi/messages/buffer.hpp"
#include "mpi/messages/errors.hpp"
#include "mpi/messages/peers.hpp"
#include "mpi/request.hpp"
#include "mpi/status.hpp"

// Receives without a probe.
namespace tonari::mpi {

namespace {

[[gnu::noinline]] Result<Envelope> receive_slow(const Buffer& data, int source, int tag, Comm& comm) {
  if (source == MPI_PROC_NULL) return {Status::ok, envelope_of_nobody()};
  message::LayoutCursor cursor = data.cursor();
  return message::receive(*comm.context, cursor, source, runtime_tag(tag));
}

}  // namespace

void recv(void* buf, MPI_Count count, Datatype& datatype, int source, int tag, Comm& comm, MPI_Status* status) {
  const Buffer data(buf, count, datatype);
  message::Context& context = *comm.context;
  const Result<Envelope> result = datatype.is_plain && source != MPI_PROC_NULL
                                      ? context.runtime().receive(context, {data.write(), job_source_of(comm, source),
                                                                            runtime_tag(tag), context.id()})
                                      : receive_slow(data, source, tag, comm);
  write_status(status, result.value);
  if (result.status != Status::ok) [[unlikely]]
    fail_receive(comm, result, data.place());
}

void irecv(void* buf, MPI_Count count, Datatype& datatype, int source, int tag, Comm& comm, MPI_Request* request) {
  const Buffer data(buf, count, datatype);
  auto* const made = new Request(Request::Kind::receive, &comm, start_receive(comm, data, source, tag));
  made->buffer = data.place();
  *request = made;
}

}  // namespace tonari::mpi
