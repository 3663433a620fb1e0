#pragma once

#include "fabric/requests.hpp"
#include "window/local/direction.hpp"
#include "window/remote/service.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::window {

/// A request for an access.
class PendingAccess final : public fabric::PendingRequest {
 public:
  bool takes_tail = false;  ///< The reply may have a tail.

  // Valid once it is done:
  /// Returns ok, peer_gone, or the error that the target found.
  [[nodiscard]] Status outcome() const noexcept {
    return status() == Status::ok ? fabric::status_of(words_of_reply().status) : status();
  }
  /// Returns the words of the reply. Its tail, if it has one: fabric::Requests::tail_of().
  [[nodiscard]] Carried words() const noexcept { return words_of_reply().words; }

 private:
  [[nodiscard]] ServiceReply words_of_reply() const noexcept { return reply().as<ServiceReply>(); }
  [[nodiscard]] bool accepts(fabric::HeadKind, const fabric::Head& reply) const noexcept override {
    return reply.kind == Kind::window_done || (reply.kind == Kind::window_data && takes_tail);
  }
};

/// The requesting side of accesses that only the target can make.
///
/// Threads: any.
/// Costs:   one head each way per 16 KiB, with several pieces under way.
class Origin {
 public:
  explicit Origin(fabric::Engine& engine) noexcept : engine_(engine), requests_(engine) {}

  /// Copies through bulk memory within a host. Returns ok, peer_gone, or the error that the target found.
  template <Direction D>
  Status copy(std::uint32_t window, int peer, std::uint64_t offset, std::span<typename D::Local> local) noexcept;
  Result<std::uint64_t> apply(std::uint32_t window, int peer, std::uint64_t offset,
                              const detail::AtomicWords& words) noexcept;

  // For other hosts: separate steps, so that several pieces are under way (copies.hpp).
  [[nodiscard]] fabric::Requests& requests() noexcept { return requests_; }
  /// Sends a request: of kind window_access; or window_push if it has a tail.
  void ask(PendingAccess& pending, int peer, std::uint32_t window, const ServiceRequest& request,
           Kind kind = Kind::window_access) noexcept {
    requests_.ask(pending, peer, head_of(kind, engine_.session().rank(), request, window));
  }
  /// Allocates a block that is read here. If there is none, `end_oldest()` gives back a block that the caller holds, or
  /// returns false. So no thread holds a block while it waits.
  template <class EndOldest>
  fabric::BulkPlace allocate_or(const EndOldest& end_oldest, std::size_t bytes) noexcept {
    const int reader = engine_.session().rank();  // the last reader, whoever dies
    do {
      if (const auto place = engine_.bulk().allocate(bytes, reader)) return *place;
    } while (end_oldest());
    return requests_.allocate(bytes, reader);
  }

 private:
  template <Direction D>
  struct Piece;
  template <Direction D>
  Status copy_few(std::uint32_t window, int peer, std::uint64_t offset, std::span<typename D::Local> local) noexcept;
  template <Direction D>
  Status end_copy(Piece<D>& piece) noexcept;

  fabric::Engine& engine_;
  fabric::Requests requests_;
};

}  // namespace tonari::window
