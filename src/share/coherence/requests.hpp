#pragma once

#include "base/lock.hpp"
#include "fabric/engine.hpp"
#include "fabric/wait.hpp"
#include "fabric/wakeup.hpp"
#include "share/coherence/heads.hpp"

#include <tonari/status.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace tonari::share {

/// A request under way. Lives in the requesting thread's memory until it is done.
class PendingRequest {
 public:
  PendingRequest() = default;
  PendingRequest(PendingRequest&&) = delete;
  virtual ~PendingRequest() = default;

  /// Returns true once the reply is here. Acquire: the caller then sees the reply.
  [[nodiscard]] bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }
  [[nodiscard]] int peer() const noexcept { return peer_; }
  // Valid once it is done:
  [[nodiscard]] Status status() const noexcept { return status_; }  ///< ok, or peer_gone.
  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] const Words& words() const noexcept { return words_; }

 protected:
  /// Called when the reply is here, by the holder of the progress lock: must not block, nor touch the program's memory.
  virtual void answered() noexcept {}

 private:
  friend class Requests;
  std::atomic<bool> done_{true};
  int peer_ = -1;
  Status status_ = Status::ok;
  Kind asked_for_{};
  Kind kind_{};
  Words words_{};
  fabric::Tickets::Ticket ticket_{};
};

/// The kind of thread that waits. The fault thread must not serve requests that touch the program's memory, since a
/// page of it may be absent.
enum class Waiter : std::uint8_t { program, faults };

/// The requesting side of this layer: sends requests, and matches replies to them.
///
/// Threads: any.
/// Costs:   one head per direction. Allocates nothing.
class Requests {
 public:
  explicit Requests(fabric::Engine& engine) noexcept : engine_(engine) {}

  /// Returns a block of this rank's bulk memory for a tail of at most fabric::bulk_tail_bytes_max bytes to `peer`.
  /// Waits until there is one.
  fabric::BulkPlace allocate(std::size_t bytes, int peer) noexcept;
  [[nodiscard]] std::byte* at(fabric::BulkPlace block) const noexcept { return engine_.bulk().at(block); }
  /// Frees a block that was not sent.
  void give_back(fabric::BulkPlace block) noexcept;

  /// Sends a request, with its tail if its kind has one. The caller fills in all of `words` but the ticket. `asked`
  /// must live until it is done.
  void ask(PendingRequest& asked, int peer, Kind kind, Words words, Waiter waiter = Waiter::program,
           fabric::Wakeup wakeup = fabric::Wakeup::now) noexcept;
  /// Like ask(), but does not wait. Returns false, and leaves the tail to the caller, if there is no room or no more
  /// than `spare` tickets are left.
  bool try_ask(PendingRequest& asked, int peer, Kind kind, Words words, unsigned spare = 0) noexcept;
  void wait(const PendingRequest& asked, Waiter waiter = Waiter::program) noexcept;
  /// Like wait(); calls hurry() if the request is not done after `patience_ns`.
  template <class Hurry>
  void wait_patiently(const PendingRequest& asked, std::uint64_t patience_ns, Hurry hurry) noexcept {
    const auto ready = [&asked] { return asked.is_done(); };
    fabric::wait_patiently(engine_, ready, job::Wait::window, asked.peer(), patience_ns, hurry);
  }
  void wake_peer(const PendingRequest& asked) noexcept { engine_.wake_peer(asked.peer()); }
  /// Gives a request up; `asked` is done when it returns. Returns false if the reply has come meanwhile.
  bool abandon(PendingRequest& asked) noexcept;
  /// Sends a head that has no reply.
  void tell(int peer, Kind kind, const Words& words, fabric::Wakeup wakeup = fabric::Wakeup::now) noexcept;

  /// Returns the tail of a reply that has one; give_back_tail() frees it. Empty if the reply is malformed.
  [[nodiscard]] std::span<const std::byte> tail_of(const PendingRequest& asked) const noexcept {
    return engine_.look(asked.peer(), asked.words().tail_place, asked.words().tail_bytes);
  }
  void give_back_tail(const PendingRequest& asked) noexcept {
    engine_.give_back(asked.peer(), asked.words().tail_place);
  }

  void receive(const fabric::Head& reply) noexcept;  // called by the holder of the progress lock
  void gone(int rank) noexcept;

 private:
  void expect(PendingRequest& asked, int peer, Kind kind, fabric::Tickets::Ticket ticket, Words& words) noexcept;
  Status send(int peer, const fabric::Head& head, Waiter waiter, fabric::Wakeup wakeup) noexcept;
  bool forget(PendingRequest& asked) noexcept;
  PendingRequest* take(const fabric::Head& reply, const Words& words) noexcept;
  void end(PendingRequest& asked, Status status) noexcept;

  fabric::Engine& engine_;
  SpinLock lock_;  // protects asked_
  std::array<PendingRequest*, fabric::tickets_max> asked_{};
};

/// Like fabric::TryUntilDone, for a thread that must not touch the program's memory.
template <class Try>
struct FaultsTryUntilDone : fabric::TryUntilDone<Try> {
  using touches_nothing = void;
};
template <class Try>
void try_until_done(fabric::Engine& engine, Try attempt, Waiter waiter) noexcept {
  if (waiter == Waiter::program) {
    fabric::TryUntilDone<Try> waiting{attempt};
    engine.wait(waiting);
  } else {
    FaultsTryUntilDone<Try> waiting{{attempt}};
    engine.wait(waiting);
  }
}

/// Like fabric::WaitUntil, for the fault thread.
template <class Ready>
struct FaultsWaitUntil : fabric::WaitUntil<Ready> {
  using fabric::WaitUntil<Ready>::WaitUntil;
  using touches_nothing = void;
};
template <class Ready>
void wait_as_faults(fabric::Engine& engine, Ready ready) noexcept {
  FaultsWaitUntil<Ready> waiting(engine, std::move(ready), job::Wait::window, -1);
  engine.wait(waiting);
}

}  // namespace tonari::share
