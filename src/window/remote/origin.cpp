#include "window/remote/origin.hpp"

#include "fabric/pipeline.hpp"
#include "window/local/checked_copy.hpp"

#include <algorithm>
#include <cstring>

// The origin's side.
namespace tonari::window {

using fabric::BulkPlace;

namespace {

constexpr std::size_t under_way_max = 8;

}  // namespace

/// A piece of a copy through bulk memory.
struct Origin::Piece {
  PendingAccess pending;
  BulkPlace place{};
  std::byte* local = nullptr;
  std::size_t bytes = 0;
};

// Waits for a piece, which can be used again afterwards.
Status Origin::end_copy(Piece& piece, Service service) noexcept {
  requests_.wait(piece.pending);
  Status status = piece.pending.outcome();
  if (service == Service::pull && status == Status::ok) {
    status = copy_by_kernel(engine_, piece.local, {requests_.at(piece.place), piece.bytes}, true);
  }
  requests_.give_back(piece.place);
  return status;
}

Status Origin::copy(Service service, std::uint32_t window, int peer, std::uint64_t offset, std::byte* local,
                    std::uint64_t bytes) noexcept {
  if (bytes <= carried_bytes_max) return copy_few(service, window, peer, offset, local, bytes);
  fabric::Pipeline<Piece, under_way_max> under_way;
  Status status = Status::ok;
  const auto end = [&](Piece& piece) {
    const Status ended = end_copy(piece, service);
    if (status == Status::ok) status = ended;
  };
  for (std::uint64_t copied = 0; copied < bytes && status == Status::ok;) {
    Piece& piece = under_way.next(end);
    piece.bytes = std::min<std::uint64_t>(bytes - copied, fabric::bulk_tail_bytes_max);
    piece.local = local + copied;
    piece.place = allocate_or([&] { return under_way.end_oldest(end); }, piece.bytes);
    if (service == Service::push && status == Status::ok) {
      status = copy_by_kernel(engine_, piece.local, {requests_.at(piece.place), piece.bytes}, false);
    }
    if (status != Status::ok) {
      requests_.give_back(piece.place);
      break;
    }
    ServiceRequest request{};
    request.service = service;
    request.offset = offset + copied;
    request.words[0] = piece.place.value;
    request.bytes = static_cast<std::uint32_t>(piece.bytes);
    ask(piece.pending, peer, window, request);
    under_way.begin();
    copied += piece.bytes;
  }
  under_way.end_all(end);
  return status;
}

Status Origin::copy_few(Service service, std::uint32_t window, int peer, std::uint64_t offset, std::byte* local,
                        std::size_t bytes) noexcept {
  PendingAccess pending;
  ServiceRequest request{};
  request.service = service;
  request.offset = offset;
  request.bytes = static_cast<std::uint32_t>(bytes);
  request.carried = 1;
  // Accessing paged memory brings the pages, so the kernel's check does not apply.
  const bool is_paged = engine_.session().is_paged(local, bytes);
  if (!is_paged && !is_reachable(local, bytes, service == Service::pull)) return Status::bad_address;
  if (service == Service::push) std::memcpy(request.words.data(), local, bytes);
  ask(pending, peer, window, request);
  requests_.wait(pending);
  const Status status = pending.outcome();
  if (service == Service::pull && status == Status::ok) std::memcpy(local, pending.words().data(), bytes);
  return status;
}

Result<std::uint64_t> Origin::apply(std::uint32_t window, int peer, std::uint64_t offset,
                                    const detail::AtomicWords& words) noexcept {
  PendingAccess pending;
  ServiceRequest request{};
  request.service = Service::atomic;
  request.offset = offset;
  request.bytes = words.bytes;
  request.operation = words.operation;
  request.words = {words.operand, words.expected};
  ask(pending, peer, window, request);
  requests_.wait(pending);
  const Status status = pending.outcome();
  return {status, status == Status::ok ? pending.words()[0] : 0};
}

}  // namespace tonari::window
