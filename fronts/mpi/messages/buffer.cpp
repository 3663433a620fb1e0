#include "mpi/messages/buffer.hpp"

#include "message/message_runtime.hpp"
#include "message/requests.hpp"
#include "message/typed.hpp"
#include "mpi/messages/peers.hpp"
#include "mpi/status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tonari::mpi {

using message::Context;
using message::LayoutCursor;
using message::MessageRuntime;
using message::Operation;
using message::Requests;
using message::State;

void fail_address(const void* address) {
  const auto number = number_of(address);
  const char* const name = number == 0   ? "a null pointer"
                           : number == 1 ? "MPI_IN_PLACE, which only collectives know"
                                         : "MPI_BUFFER_AUTOMATIC";
  throw Failure(MPI_ERR_BUFFER, fmt::format("the buffer is {}, and there are data to transfer", name));
}

void fail_length(MPI_Count count, std::size_t element_bytes) {
  throw Failure(MPI_ERR_COUNT, fmt::format("count is {}: so many elements of {} bytes exceed the address space", count,
                                           element_bytes));
}

namespace {

// Ends a send that has left by now, as most messages below the limit of a rendezvous have.
tonari::Request started_send(tonari::Request request) {
  const Operation* const operation = Requests::operation(request);
  // Acquire: pairs with the change of the state.
  const bool has_left =
      operation != nullptr && operation->progress.state.load(std::memory_order_acquire) == State::complete;
  if (has_left) (void)Requests::advance(request);
  return request;
}

}  // namespace

LayoutCursor Buffer::cursor() const { return mpi::cursor(address_, count_, *type_); }

void Buffer::pack(std::byte* to) const {
  if (!is_plain()) return cursor().pack(0, to, bytes_);
  if (bytes_ != 0) std::memcpy(to, address_, bytes_);
}

void Buffer::unpack(std::span<const std::byte> from) const {
  const std::size_t bytes = std::min(bytes_, from.size());
  if (!is_plain()) return cursor().unpack(0, from.data(), bytes);
  if (bytes != 0) std::memcpy(write().data(), from.data(), bytes);
}

Buffer Buffer::part(MPI_Count first, MPI_Count count) const {
  const auto address = number_of(address_) + static_cast<std::uintptr_t>(first * type_->extent);
  return {reinterpret_cast<const void*>(address), count, *type_};
}

tonari::Request start_send(Comm& comm, std::span<const std::byte> bytes, int job_rank, int tag,
                           std::uint32_t context_id, SendMode mode) {
  Context& context = *comm.context;
  MessageRuntime& runtime = context.runtime();
  const MessageRuntime::Send what{bytes, job_rank, tag, context_id, mode};
  const Status status = runtime.send_fast(what);
  if (status != Status::again) return Requests::completed(status);
  Operation* const operation = runtime.make_started(Operation::Kind::send, context);
  runtime.start_send(*operation, what);
  return started_send(Requests::started(operation));
}

tonari::Request start_receive(Comm& comm, std::span<std::byte> bytes, int job_rank, int tag, std::uint32_t context_id) {
  Context& context = *comm.context;
  Operation* const operation = context.runtime().make_started(Operation::Kind::receive, context);
  context.runtime().start_receive(*operation, {bytes, job_rank, tag, context_id});
  return Requests::started(operation);
}

tonari::Request start_send(Comm& comm, const Buffer& data, int dest, int tag, SendMode mode) {
  if (dest == MPI_PROC_NULL) return {};
  if (!data.is_plain()) return started_send(message::start_send(*comm.context, data.cursor(), dest, tag, mode));
  return start_send(comm, data.read(), job_rank_of(comm, dest), tag, comm.context->id(), mode);
}

tonari::Request start_receive(Comm& comm, const Buffer& data, int source, int tag) {
  if (source == MPI_PROC_NULL) return receive_from_nobody();
  if (!data.is_plain()) return message::start_receive(*comm.context, data.cursor(), source, runtime_tag(tag));
  return start_receive(comm, data.write(), job_source_of(comm, source), runtime_tag(tag), comm.context->id());
}

tonari::Request receive_from_nobody() noexcept { return Requests::completed({Status::ok, envelope_of_nobody()}); }

tonari::Request start_receive_matched(Operation& probe, const Buffer& data) {
  MessageRuntime& runtime = probe.call.context->runtime();
  std::span<std::byte> bytes = data.write();
  if (!data.is_plain()) {
    const LayoutCursor cursor = data.cursor();
    if (const auto dense = cursor.dense()) {
      bytes = *dense;
    } else {
      runtime.scatter(probe, cursor);
      bytes = {static_cast<std::byte*>(nullptr), data.bytes()};
    }
  }
  runtime.receive_matched(probe, bytes);
  return Requests::started(&probe);
}

}  // namespace tonari::mpi
