#include "functions.hpp"
#include "mpi/messages/attached_buffer.hpp"
#include "mpi/messages/buffer.hpp"
#include "mpi/request.hpp"
#include "mpi/requests/completion.hpp"

#include <fmt/format.h>

#include <memory>

// Persistent sends and receives; starting any persistent request.
namespace tonari::mpi {

namespace {

class PersistentSend final : public Conduct {
 public:
  PersistentSend(const Buffer& data, int dest, int tag, SendMode mode) noexcept
      : data_(data), dest_(dest), tag_(tag), mode_(mode) {}
  void start(Request& request) override { request.running = start_send(*request.comm, data_, dest_, tag_, mode_); }

 private:
  Buffer data_;
  int dest_;
  int tag_;
  SendMode mode_;
};

class PersistentBufferedSend final : public Conduct {
 public:
  PersistentBufferedSend(const Buffer& data, int dest, int tag) noexcept : data_(data), dest_(dest), tag_(tag) {}
  void start(Request& request) override { send_buffered(*request.comm, data_, dest_, tag_); }

 private:
  Buffer data_;
  int dest_;
  int tag_;
};

class PersistentReceive final : public Conduct {
 public:
  PersistentReceive(const Buffer& data, int source, int tag) noexcept : data_(data), source_(source), tag_(tag) {}
  void start(Request& request) override { request.running = start_receive(*request.comm, data_, source_, tag_); }
  void cancel(Request& request) override { (void)request.running.cancel(); }

 private:
  Buffer data_;
  int source_;
  int tag_;
};

MPI_Request make(Request::Kind kind, Comm& comm, std::unique_ptr<Conduct> conduct) {
  auto request = std::make_unique<Request>(kind, &comm);
  request->make_persistent();
  request->conduct = std::move(conduct);
  return request.release();
}

void start(MPI_Request handle) {
  Request* const request = find(handle);
  const bool can_start = request != nullptr && request->is_persistent;
  if (!can_start)
    throw Failure(MPI_ERR_REQUEST, "request is not persistent: functions named ..._init make persistent requests");
  if (request->is_active) {
    throw CommFailure(MPI_ERR_REQUEST, "request is active already: wait for it before it is started again",
                      request->comm);
  }
  request->failure = nullptr;
  request->result = {};
  request->is_complete = false;
  try {
    request->conduct->start(*request);
  } catch (const Failure& failure) {
    request->is_complete = true;
    throw CommFailure(failure.code, failure.what(), request->comm);
  }
  request->is_active = true;
}

}  // namespace

void send_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm,
               MPI_Request* request) {
  *request = make(Request::Kind::send, comm,
                  std::make_unique<PersistentSend>(Buffer(buf, count, datatype), dest, tag, SendMode::standard));
}

void rsend_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm,
                MPI_Request* request) {
  send_init(buf, count, datatype, dest, tag, comm, request);
}

void ssend_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm,
                MPI_Request* request) {
  *request = make(Request::Kind::send, comm,
                  std::make_unique<PersistentSend>(Buffer(buf, count, datatype), dest, tag, SendMode::when_posted));
}

void bsend_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm,
                MPI_Request* request) {
  *request = make(Request::Kind::send, comm,
                  std::make_unique<PersistentBufferedSend>(Buffer(buf, count, datatype), dest, tag));
}

void recv_init(void* buf, MPI_Count count, Datatype& datatype, int source, int tag, Comm& comm, MPI_Request* request) {
  const Buffer data(buf, count, datatype);
  *request = make(Request::Kind::receive, comm, std::make_unique<PersistentReceive>(data, source, tag));
  (*request)->buffer = data.place();
}

void start(MPI_Request* request) { start(*request); }

void startall(int count, MPI_Request* array_of_requests) {
  const Handles handles(count, array_of_requests);
  for (std::size_t i = 0; i < handles.size(); ++i) start(array_of_requests[i]);
}

}  // namespace tonari::mpi
