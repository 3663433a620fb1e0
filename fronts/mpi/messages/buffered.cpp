#include "functions.hpp"
#include "mpi/messages/attached_buffer.hpp"
#include "mpi/messages/errors.hpp"
#include "mpi/request.hpp"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <utility>

// Buffered sends, and the buffers that programs attach for them.
namespace tonari::mpi {

namespace {

using Attached = std::shared_ptr<AttachedBuffer>;

// Protects the pointers in communicators, sessions and here.
constinit std::mutex buffers_mutex;
Attached& of_process() noexcept {
  static Attached& attached = *new Attached;  // lives until the process ends, which must not wait for messages
  return attached;
}

Attached get(const Attached& from) {
  const std::lock_guard guard(buffers_mutex);
  return from;
}

// Returns the buffer for messages on a communicator; null if there is none.
Attached get_for(const Comm& comm) {
  const std::lock_guard guard(buffers_mutex);
  if (comm.attached_buffer != nullptr) return comm.attached_buffer;
  if (comm.session_buffer != nullptr && comm.session_buffer->attached != nullptr) return comm.session_buffer->attached;
  return of_process();
}

void drop(Attached& from) {
  Attached dropped;  // its end waits for messages, without the lock
  const std::lock_guard guard(buffers_mutex);
  dropped.swap(from);
}

void attach(Attached& to, void* buffer, MPI_Count size) {
  const bool is_automatic = buffer == MPI_BUFFER_AUTOMATIC;
  if (buffer == nullptr && size != 0) throw Failure(MPI_ERR_BUFFER, "buffer is a null pointer");
  Attached made = is_automatic ? std::make_shared<AttachedBuffer>()
                               : std::make_shared<AttachedBuffer>(buffer, static_cast<std::size_t>(size));
  const std::lock_guard guard(buffers_mutex);
  if (to != nullptr) throw Failure(MPI_ERR_BUFFER, "a buffer is attached already: detach it first");
  to = std::move(made);
}

// Writes the address and the length of the buffer, which is the program's again.
void detach(Attached& from, void* address, MPI_Count* size) {
  if (address == nullptr) throw Failure(MPI_ERR_ARG, "buffer_addr is a null pointer");
  Attached detached;
  {
    const std::lock_guard guard(buffers_mutex);
    detached.swap(from);
  }
  if (detached == nullptr) throw Failure(MPI_ERR_BUFFER, "no buffer is attached");
  detached->flush();
  *static_cast<void**>(address) = detached->is_automatic() ? MPI_BUFFER_AUTOMATIC : detached->memory();
  *size = static_cast<MPI_Count>(detached->bytes());
}

void flush(const Attached& from) {
  if (const Attached buffer = get(from)) buffer->flush();
}

// Complete when the messages that were in the buffer when it was made have left.
class Flush final : public Conduct {
 public:
  explicit Flush(Attached buffer) noexcept : buffer_(std::move(buffer)), number_(buffer_->last_number()) {}
  Next go_on(Request& /*request*/) override { return buffer_->have_left(number_) ? Next::complete : Next::later; }
  void block(Request& /*request*/) override { buffer_->flush_until(number_); }

 private:
  Attached buffer_;
  std::uint64_t number_;
};

void start_flush(const Attached& from, Comm* comm, MPI_Request* request) {
  Attached buffer = get(from);
  if (buffer == nullptr || buffer->have_left(buffer->last_number())) {
    *request = completed_request();
    return;
  }
  auto made = std::make_unique<Request>(Request::Kind::collective, comm);
  made->conduct = std::make_unique<Flush>(std::move(buffer));
  *request = made.release();
}

}  // namespace

void send_buffered(Comm& comm, const Buffer& data, int dest, int tag) {
  if (dest == MPI_PROC_NULL) return;
  const Attached buffer = get_for(comm);
  if (buffer == nullptr) {
    throw Failure(MPI_ERR_BUFFER,
                  "no buffer is attached: call MPI_Buffer_attach, MPI_Session_attach_buffer or MPI_Comm_attach_buffer "
                  "first");
  }
  buffer->send(comm, data, dest, tag);
}

void drop_process_buffer() { drop(of_process()); }
void drop_buffer(SessionBuffer& buffer) { drop(buffer.attached); }

void bsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm) {
  send_buffered(comm, Buffer(buf, count, datatype), dest, tag);
}
void ibsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm, MPI_Request* request) {
  send_buffered(comm, Buffer(buf, count, datatype), dest, tag);
  *request = completed_request();
}

void buffer_attach(void* buffer, MPI_Count size) { attach(of_process(), buffer, size); }
void buffer_detach(void* buffer_addr, MPI_Count* size) { detach(of_process(), buffer_addr, size); }
void buffer_flush() { flush(of_process()); }
void buffer_iflush(MPI_Request* request) { start_flush(of_process(), nullptr, request); }

void comm_attach_buffer(Comm& comm, void* buffer, MPI_Count size) { attach(comm.attached_buffer, buffer, size); }
void comm_detach_buffer(Comm& comm, void* buffer_addr, MPI_Count* size) {
  detach(comm.attached_buffer, buffer_addr, size);
}
void comm_flush_buffer(Comm& comm) { flush(comm.attached_buffer); }
void comm_iflush_buffer(Comm& comm, MPI_Request* request) { start_flush(comm.attached_buffer, &comm, request); }

void session_attach_buffer(Session& session, void* buffer, MPI_Count size) {
  attach(session.buffer->attached, buffer, size);
}
void session_detach_buffer(Session& session, void* buffer_addr, MPI_Count* size) {
  detach(session.buffer->attached, buffer_addr, size);
}
void session_flush_buffer(Session& session) { flush(session.buffer->attached); }
void session_iflush_buffer(Session& session, MPI_Request* request) {
  start_flush(session.buffer->attached, nullptr, request);
}

}  // namespace tonari::mpi
