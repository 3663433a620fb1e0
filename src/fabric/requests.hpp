#pragma once

#include "base/lock.hpp"
#include "fabric/engine.hpp"
#include "fabric/wait.hpp"
#include "fabric/wakeup.hpp"

#include <tonari/status.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::fabric {

/// Requests and replies of every protocol carry their ticket here: in the last bytes of the payload. The request's
/// ticket reserves room for the reply, and the reply repeats it.
inline constexpr std::size_t ticket_at = inline_bytes_max - sizeof(Tickets::Ticket);

/// Whether a struct may be the payload of a request or a reply.
template <class Body>
inline constexpr bool carries_ticket = sizeof(Body) == inline_bytes_max&& offsetof(Body, ticket) ==
                                       ticket_at&& std::is_same_v<decltype(Body::ticket), Tickets::Ticket>;

/// A request under way. Lives in the requesting thread's memory until it is done, and can be used again afterwards.
class PendingRequest {
 public:
  PendingRequest() = default;
  PendingRequest(PendingRequest&&) = delete;
  virtual ~PendingRequest() = default;

  /// Returns true once the reply is here, and before the first request. Acquire: the caller then sees the reply.
  [[nodiscard]] bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }
  [[nodiscard]] int peer() const noexcept { return peer_; }
  // Valid once it is done:
  /// Returns ok: the reply is here; or peer_gone.
  [[nodiscard]] Status status() const noexcept { return status_; }
  /// The reply, if the status is ok.
  [[nodiscard]] const Head& reply() const noexcept { return reply_; }

 protected:
  /// Returns whether `reply` is a reply to a request of kind `asked_for`. Otherwise it is malformed and dropped. Called
  /// by the holder of the progress lock.
  [[nodiscard]] virtual bool accepts(HeadKind asked_for, const Head& reply) const noexcept = 0;
  /// Called when the request is about to be done, by the holder of the progress lock or the service thread: must not
  /// block, nor touch the program's memory.
  virtual void answered() noexcept {}

 private:
  friend class Requests;
  std::atomic<bool> done_{true};
  int peer_ = -1;
  Status status_ = Status::ok;
  HeadKind asked_for_{};
  Tickets::Ticket ticket_{};
  Head reply_;
};

/// The requesting side of a protocol: sends requests, matches replies to them, and waits. Each protocol has one.
///
/// Threads: any.
/// Costs:   one head per direction. Allocates nothing.
class Requests {
 public:
  explicit Requests(Engine& engine) noexcept : engine_(engine) {}

  /// Returns a block of this rank's bulk memory for a tail of at most bulk_tail_bytes_max bytes to `peer`. Waits until
  /// there is one. The caller must not hold a block that only it can give back, because others may wait for that.
  BulkPlace allocate(std::size_t bytes, int peer) noexcept;
  [[nodiscard]] std::byte* at(BulkPlace block) const noexcept { return engine_.bulk().at(block); }
  /// Gives back a block that was not sent.
  void give_back(BulkPlace block) noexcept;

  /// Sends a request, with its tail if its kind has one, which then belongs to the reader. Fills in the ticket.
  /// `pending` must live until it is done; if the peer is gone, it is done with that status.
  void ask(PendingRequest& pending, int peer, const Head& request, Waiter waiter = Waiter::program,
           Wakeup wakeup = Wakeup::now) noexcept;
  /// Like ask(), but does not wait. Returns false, and leaves the tail to the caller, if there is no room or no more
  /// than `spare` tickets are left.
  bool try_ask(PendingRequest& pending, int peer, const Head& request, unsigned spare = 0) noexcept;
  /// Sends a head that has no reply. Drops it if the peer is gone.
  void tell(int peer, const Head& head, Wakeup wakeup = Wakeup::now) noexcept;

  void wait(const PendingRequest& pending, Waiter waiter = Waiter::program) noexcept;
  /// Like wait(); calls hurry() if the request is not done after `patience_ns`.
  template <class Hurry>
  void wait_patiently(const PendingRequest& pending, std::uint64_t patience_ns, Hurry hurry) noexcept {
    const auto ready = [&pending] { return pending.is_done(); };
    fabric::wait_patiently(engine_, ready, job::Wait::window, pending.peer(), patience_ns, hurry);
  }
  void wake_peer(const PendingRequest& pending) noexcept { engine_.wake_peer(pending.peer()); }
  /// Gives a request up; `pending` is done when it returns. Returns false if the reply has come meanwhile.
  bool abandon(PendingRequest& pending) noexcept;

  /// Returns the tail of a reply; give_back_tail() frees it. Empty if the reply has none, or is malformed.
  [[nodiscard]] std::span<const std::byte> tail_of(const PendingRequest& pending) const noexcept;
  /// Frees the tail of a reply, if it has one. Call it once.
  void give_back_tail(const PendingRequest& pending) noexcept;

  /// Takes a reply. Called by the holder of the progress lock.
  void receive(const Head& reply) noexcept;
  /// Ends all requests to `rank`, which has died or is leaving. Called by the service thread.
  void end_requests_to(int rank) noexcept;

 private:
  Head expect(PendingRequest& pending, int peer, const Head& request, Tickets::Ticket ticket) noexcept;
  Status send(int peer, const Head& head, Waiter waiter, Wakeup wakeup) noexcept;
  bool forget(PendingRequest& pending) noexcept;
  PendingRequest* take(const Head& reply) noexcept;
  static void end(PendingRequest& pending, Status status) noexcept;

  Engine& engine_;
  SpinLock lock_;                                       // guards pending_
  std::array<PendingRequest*, tickets_max> pending_{};  // by ticket
};

}  // namespace tonari::fabric
