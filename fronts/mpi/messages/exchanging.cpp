#include "functions.hpp"
#include "mpi/messages/buffer.hpp"
#include "mpi/messages/errors.hpp"
#include "mpi/request.hpp"
#include "mpi/status.hpp"

#include <array>
#include <memory>
#include <utility>

// A send and a receive at once.
namespace tonari::mpi {

namespace {

// A copy of the data to send, which the receive overwrites meanwhile. Short ones need no memory of the allocator.
class Copy {
 public:
  explicit Copy(const Buffer& data) : bytes_(data.bytes()) {
    if (bytes_ > short_.size()) long_.reset(new std::byte[bytes_]);
    data.pack(address());
  }
  [[nodiscard]] std::span<const std::byte> read() { return {address(), bytes_}; }

 private:
  std::byte* address() noexcept { return long_ != nullptr ? long_.get() : short_.data(); }

  std::size_t bytes_;
  std::array<std::byte, 1024> short_;
  std::unique_ptr<std::byte[]> long_;
};

Buffer buffer_of(std::span<const std::byte> bytes) {
  return {bytes.data(), static_cast<MPI_Count>(bytes.size()), *find(MPI_BYTE)};
}

struct Receive {
  const Buffer& data;
  int source;
  int tag;
};

// Posts the receive first, so that the peer, which does the same, need not keep the message.
void exchange(Comm& comm, const Buffer& sent, int dest, int sendtag, const Receive& receive, MPI_Status* status) {
  tonari::Request receiving = start_receive(comm, receive.data, receive.source, receive.tag);
  const Status sending = start_send(comm, sent, dest, sendtag, SendMode::standard).wait().status;
  const Result<Envelope> result = receiving.wait();
  write_status(status, result.value);
  if (result.status != Status::ok) fail_receive(comm, result, receive.data.place());
  if (sending != Status::ok) fail_send(sending, dest, sendtag, sent.place());
}

// A started exchange: complete when the receive, whose status it has, and then the send are.
class Exchange final : public Conduct {
 public:
  Exchange(int dest, int sendtag) noexcept : dest_(dest), sendtag_(sendtag) {}
  Next go_on(Request& request) override {
    if (!std::exchange(has_received_, true)) {
      request.result = request.running.wait();
      request.running = std::move(sending);
      return Next::wait;
    }
    const Status status = request.running.wait().status;
    if (status != Status::ok && request.result.status == Status::ok) fail_send(status, dest_, sendtag_, {});
    return Next::complete;
  }

  std::unique_ptr<Copy> copy;
  tonari::Request sending;

 private:
  bool has_received_ = false;
  int dest_;
  int sendtag_;
};

MPI_Request start_exchange(Comm& comm, std::unique_ptr<Exchange> conduct, const Buffer& sent, int dest, int sendtag,
                           const Receive& receive) {
  auto request = std::make_unique<Request>(Request::Kind::receive, &comm);
  request->buffer = receive.data.place();
  request->running = start_receive(comm, receive.data, receive.source, receive.tag);
  conduct->sending = start_send(comm, sent, dest, sendtag, SendMode::standard);
  request->conduct = std::move(conduct);
  return request.release();
}

}  // namespace

void sendrecv(const void* sendbuf, MPI_Count sendcount, Datatype& sendtype, int dest, int sendtag, void* recvbuf,
              MPI_Count recvcount, Datatype& recvtype, int source, int recvtag, Comm& comm, MPI_Status* status) {
  const Buffer received(recvbuf, recvcount, recvtype);
  exchange(comm, Buffer(sendbuf, sendcount, sendtype), dest, sendtag, {received, source, recvtag}, status);
}

void sendrecv_replace(void* buf, MPI_Count count, Datatype& datatype, int dest, int sendtag, int source, int recvtag,
                      Comm& comm, MPI_Status* status) {
  const Buffer data(buf, count, datatype);
  Copy copy(data);
  exchange(comm, buffer_of(copy.read()), dest, sendtag, {data, source, recvtag}, status);
}

void isendrecv(const void* sendbuf, MPI_Count sendcount, Datatype& sendtype, int dest, int sendtag, void* recvbuf,
               MPI_Count recvcount, Datatype& recvtype, int source, int recvtag, Comm& comm, MPI_Request* request) {
  const Buffer received(recvbuf, recvcount, recvtype);
  *request = start_exchange(comm, std::make_unique<Exchange>(dest, sendtag), Buffer(sendbuf, sendcount, sendtype), dest,
                            sendtag, {received, source, recvtag});
}

void isendrecv_replace(void* buf, MPI_Count count, Datatype& datatype, int dest, int sendtag, int source, int recvtag,
                       Comm& comm, MPI_Request* request) {
  const Buffer data(buf, count, datatype);
  auto conduct = std::make_unique<Exchange>(dest, sendtag);
  conduct->copy = std::make_unique<Copy>(data);
  const Buffer sent = buffer_of(conduct->copy->read());
  *request = start_exchange(comm, std::move(conduct), sent, dest, sendtag, {data, source, recvtag});
}

}  // namespace tonari::mpi
