#include "functions.hpp"
#include "message/message_runtime.hpp"
#include "message/typed.hpp"
#include "mpi/messages/buffer.hpp"
#include "mpi/messages/errors.hpp"
#include "mpi/messages/peers.hpp"
#include "mpi/request.hpp"

// Sends that copy nothing to an attached buffer. A ready send is a standard one: it gains nothing from the receive that
// is known to be posted.
namespace tonari::mpi {

namespace {

[[gnu::noinline]] void send_slow(const Buffer& data, int dest, int tag, Comm& comm, SendMode mode) {
  if (dest == MPI_PROC_NULL) return;
  message::LayoutCursor cursor = data.cursor();
  const Status status = message::send(*comm.context, cursor, dest, tag, mode);
  if (status != Status::ok) fail_send(status, dest, tag, data.place());
}

template <SendMode mode>
void send_now(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm) {
  const Buffer data(buf, count, datatype);
  if (!datatype.is_plain || dest < 0) [[unlikely]]
    return send_slow(data, dest, tag, comm, mode);
  message::Context& context = *comm.context;
  const Status status =
      context.runtime().send(context, {data.read(), job_rank_of(comm, dest), tag, context.id(), mode});
  if (status != Status::ok) [[unlikely]]
    fail_send(status, dest, tag, data.place());
}

void start(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, MPI_Request* request,
           SendMode mode) {
  const Buffer data(buf, count, datatype);
  tonari::Request started = start_send(comm, data, dest, tag, mode);
  if (!started.complete()) {
    *request = new Request(Request::Kind::send, &comm, std::move(started));
    (*request)->buffer = data.place();
    return;
  }
  const Status status = started.wait().status;
  if (status != Status::ok) fail_send(status, dest, tag, data.place());
  *request = completed_request();
}

}  // namespace

void send(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm) {
  send_now<SendMode::standard>(buf, count, datatype, dest, tag, comm);
}
void rsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm) {
  send_now<SendMode::standard>(buf, count, datatype, dest, tag, comm);
}
void ssend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm) {
  send_now<SendMode::when_posted>(buf, count, datatype, dest, tag, comm);
}

void isend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, MPI_Request* request) {
  start(buf, count, datatype, dest, tag, comm, request, SendMode::standard);
}
void irsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, MPI_Request* request) {
  start(buf, count, datatype, dest, tag, comm, request, SendMode::standard);
}
void issend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, MPI_Request* request) {
  start(buf, count, datatype, dest, tag, comm, request, SendMode::when_posted);
}

}  // namespace tonari::mpi
