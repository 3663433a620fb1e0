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
template <Direction D>
struct Origin::Piece {
  PendingAccess pending;
  std::span<typename D::Local> local;
  BulkPlace place{};
};

// Waits for a piece, which can be used again afterwards.
template <Direction D>
Status Origin::end_copy(Piece<D>& piece) noexcept {
  requests_.wait(piece.pending);
  Status status = piece.pending.outcome();
  if constexpr (is_pull<D>) {
    const std::span bulk(requests_.at(piece.place), piece.local.size());
    if (status == Status::ok) status = store_by_kernel(engine_, piece.local.data(), bulk);
  }
  requests_.give_back(piece.place);
  return status;
}

template <Direction D>
Status Origin::copy(std::uint32_t window, int peer, std::uint64_t offset, std::span<typename D::Local> local) noexcept {
  if (local.size() <= carried_bytes_max) return copy_few<D>(window, peer, offset, local);
  fabric::Pipeline<Piece<D>, under_way_max> under_way;
  Status status = Status::ok;
  const auto end = [&](Piece<D>& piece) {
    const Status ended = end_copy<D>(piece);
    if (status == Status::ok) status = ended;
  };
  for (std::size_t copied = 0; copied < local.size() && status == Status::ok;) {
    Piece<D>& piece = under_way.next(end);
    piece.local = local.subspan(copied, std::min(local.size() - copied, fabric::bulk_tail_bytes_max));
    piece.place = allocate_or([&] { return under_way.end_oldest(end); }, piece.local.size());
    if constexpr (!is_pull<D>) {
      const std::span bulk(requests_.at(piece.place), piece.local.size());
      if (status == Status::ok) status = load_by_kernel(engine_, bulk, piece.local.data());
    }
    if (status != Status::ok) {
      requests_.give_back(piece.place);
      break;
    }
    ServiceRequest request{};
    request.service = D::service;
    request.offset = offset + copied;
    request.words[0] = piece.place.value;
    request.bytes = static_cast<std::uint32_t>(piece.local.size());
    ask(piece.pending, peer, window, request);
    under_way.begin();
    copied += piece.local.size();
  }
  under_way.end_all(end);
  return status;
}

template Status Origin::copy<Pull>(std::uint32_t, int, std::uint64_t, std::span<std::byte>) noexcept;
template Status Origin::copy<Push>(std::uint32_t, int, std::uint64_t, std::span<const std::byte>) noexcept;

template <Direction D>
Status Origin::copy_few(std::uint32_t window, int peer, std::uint64_t offset,
                        std::span<typename D::Local> local) noexcept {
  PendingAccess pending;
  ServiceRequest request{};
  request.service = D::service;
  request.offset = offset;
  request.bytes = static_cast<std::uint32_t>(local.size());
  request.carried = 1;
  // Accessing paged memory brings the pages, so the kernel's check does not apply.
  if (!engine_.session().is_paged(local.data(), local.size())) {
    bool is_reachable = false;
    if constexpr (is_pull<D>) {
      is_reachable = is_writable(local.data(), local.size());
    } else {
      is_reachable = is_readable(local.data(), local.size());
    }
    if (!is_reachable) return Status::bad_address;
  }
  if constexpr (!is_pull<D>) std::memcpy(request.words.data(), local.data(), local.size());
  ask(pending, peer, window, request);
  requests_.wait(pending);
  const Status status = pending.outcome();
  if constexpr (is_pull<D>) {
    if (status == Status::ok) std::memcpy(local.data(), pending.words().data(), local.size());
  }
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
