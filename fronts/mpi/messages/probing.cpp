#include "functions.hpp"
#include "message/message_runtime.hpp"
#include "mpi/environment/handle_names.hpp"
#include "mpi/message.hpp"
#include "mpi/messages/buffer.hpp"
#include "mpi/messages/errors.hpp"
#include "mpi/messages/peers.hpp"
#include "mpi/request.hpp"
#include "mpi/requests/progress.hpp"
#include "mpi/status.hpp"

#include <memory>
#include <optional>

// Probes, and receives of the messages that matched probes have taken.
namespace tonari::mpi {

namespace {

using message::MessageRuntime;
using message::Operation;

struct FreeOperation {
  void operator()(Operation* operation) const noexcept { operation->call.context->runtime().free_operation(operation); }
};

// Returns nothing if there is no message yet.
std::optional<Envelope> look(int source, int tag, Comm& comm, bool wait) {
  if (source == MPI_PROC_NULL) return envelope_of_nobody();
  MessageRuntime& runtime = comm.context->runtime();
  const auto result = runtime.probe(*comm.context, job_source_of(comm, source), runtime_tag(tag), wait);
  if (!result) return std::nullopt;
  if (result->status != Status::ok) fail_receive(comm, *result, {});
  return result->value;
}

bool take(int source, int tag, Comm& comm, MPI_Message* message, MPI_Status* status, bool wait) {
  if (source == MPI_PROC_NULL) {
    *message = MPI_MESSAGE_NO_PROC;
    write_status(status, envelope_of_nobody());
    return true;
  }
  MessageRuntime& runtime = comm.context->runtime();
  std::unique_ptr<Operation, FreeOperation> probe(runtime.make_started(Operation::Kind::matched_probe, *comm.context));
  const auto result = runtime.matched_probe(*probe, job_source_of(comm, source), runtime_tag(tag), wait);
  if (!result) return false;
  if (result->status != Status::ok) fail_receive(comm, *result, {});
  *message = new Message(comm, *probe);
  (void)probe.release();
  write_status(status, result->value);
  return true;
}

// Takes the message away from its handle, because it can be received only once.
Ref<Message> take(MPI_Message* handle) {
  Message* const message = find(*handle);
  if (message == nullptr && *handle != MPI_MESSAGE_NO_PROC) {
    fail_handle(MPI_ERR_REQUEST, "message", "message", *handle);
  }
  *handle = MPI_MESSAGE_NULL;
  return Ref<Message>::adopt(message);
}

}  // namespace

void probe(int source, int tag, Comm& comm, MPI_Status* status) {
  write_status(status, *look(source, tag, comm, true));
}

void iprobe(int source, int tag, Comm& comm, int* flag, MPI_Status* status) {
  const auto envelope = look(source, tag, comm, false);
  *flag = envelope ? 1 : 0;
  if (!envelope) return let_others_run();
  write_status(status, *envelope);
}

void mprobe(int source, int tag, Comm& comm, MPI_Message* message, MPI_Status* status) {
  (void)take(source, tag, comm, message, status, true);
}

void improbe(int source, int tag, Comm& comm, int* flag, MPI_Message* message, MPI_Status* status) {
  *flag = take(source, tag, comm, message, status, false) ? 1 : 0;
  if (*flag == 0) let_others_run();
}

void mrecv(void* buf, MPI_Count count, Datatype& datatype, MPI_Message* message, MPI_Status* status) {
  const Buffer data(buf, count, datatype);
  const Ref<Message> taken = take(message);
  if (!taken) return write_status(status, envelope_of_nobody());
  const Result<Envelope> result = start_receive_matched(taken->probe, data).wait();
  write_status(status, result.value);
  if (result.status != Status::ok) fail_receive(*taken->comm, result, data.place());
}

void imrecv(void* buf, MPI_Count count, Datatype& datatype, MPI_Message* message, MPI_Request* request) {
  const Buffer data(buf, count, datatype);
  const Ref<Message> taken = take(message);
  auto made = std::make_unique<Request>(Request::Kind::receive, taken ? taken->comm.get() : nullptr);
  made->buffer = data.place();
  made->running = taken ? start_receive_matched(taken->probe, data) : receive_from_nobody();
  *request = made.release();
}

}  // namespace tonari::mpi
