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

/// A request on its way. In its asker's memory until it is done.
class PendingRequest {
 public:
  PendingRequest() = default;
  PendingRequest(PendingRequest&&) = delete;
  virtual ~PendingRequest() = default;

  /// Acquire: the reply.
  [[nodiscard]] bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }
  [[nodiscard]] int peer() const noexcept { return peer_; }
  // When done:
  [[nodiscard]] Status status() const noexcept { return status_; }  ///< ok, or peer_gone.
  [[nodiscard]] fabric::Kind kind() const noexcept { return kind_; }
  [[nodiscard]] const Words& words() const noexcept { return words_; }

 protected:
  /// The reply is here. By the progress lock's holder: must not block, nor touch a program's memory.
  virtual void answered() noexcept {}

 private:
  friend class Requests;
  std::atomic<bool> done_{true};
  int peer_ = -1;
  Status status_ = Status::ok;
  fabric::Kind asked_for_{};
  fabric::Kind kind_{};
  Words words_{};
  fabric::Tickets::Ticket ticket_{};
};

/// Who waits. A fault's thread must not do what others ask for in the program's memory, which may be absent.
enum class Waiter : std::uint8_t { program, faults };

/// Requests of this layer and their replies: the asker's side.
///
/// Threads: any.
/// Costs:   a head there and one back. Allocates nothing.
class Requests {
 public:
  explicit Requests(fabric::Engine& engine) noexcept : engine_(engine) {}

  /// A block of this rank's bulk memory for a tail of at most fabric::bulk_tail_bytes_max bytes to `peer`. Waits for
  /// one.
  fabric::BulkPlace allocate(std::size_t bytes, int peer) noexcept;
  [[nodiscard]] std::byte* at(fabric::BulkPlace block) const noexcept { return engine_.bulk().at(block); }
  /// A block that was not sent.
  void give_back(fabric::BulkPlace block) noexcept;

  /// Sends a request, with its tail if its kind has one. The rest of `words` is the caller's; when done, so is `asked`.
  void ask(PendingRequest& asked, int peer, fabric::Kind kind, Words words, Waiter waiter = Waiter::program,
           fabric::Wakeup wakeup = fabric::Wakeup::now) noexcept;
  /// As ask(), by who must not wait. False: there is no room, or no more than `spare` tickets are left, and the tail is
  /// still the caller's.
  bool try_ask(PendingRequest& asked, int peer, fabric::Kind kind, Words words, unsigned spare = 0) noexcept;
  void wait(const PendingRequest& asked, Waiter waiter = Waiter::program) noexcept;
  /// As wait(); calls hurry() if it is not done after `patience_ns`.
  template <class Hurry>
  void wait_patiently(const PendingRequest& asked, std::uint64_t patience_ns, Hurry hurry) noexcept {
    const auto ready = [&asked] { return asked.is_done(); };
    fabric::wait_patiently(engine_, ready, job::Wait::window, asked.peer(), patience_ns, hurry);
  }
  void wake_peer(const PendingRequest& asked) noexcept { engine_.wake_peer(asked.peer()); }
  /// Waits no longer: when it returns, `asked` is done. False: a reply has come.
  bool abandon(PendingRequest& asked) noexcept;
  /// Sends a head that has no reply.
  void tell(int peer, fabric::Kind kind, const Words& words, fabric::Wakeup wakeup = fabric::Wakeup::now) noexcept;

  /// The tail of a reply that has one. To be given back. Empty: the peer lies.
  [[nodiscard]] std::span<const std::byte> tail_of(const PendingRequest& asked) const noexcept {
    return engine_.look(asked.peer(), asked.words().tail_place, asked.words().tail_bytes);
  }
  void give_back_tail(const PendingRequest& asked) noexcept {
    engine_.give_back(asked.peer(), asked.words().tail_place);
  }

  void receive(const fabric::Head& reply) noexcept;  // by the progress lock's holder
  void gone(int rank) noexcept;

 private:
  void expect(PendingRequest& asked, int peer, fabric::Kind kind, fabric::Tickets::Ticket ticket,
              Words& words) noexcept;
  Status send(int peer, const fabric::Head& head, Waiter waiter, fabric::Wakeup wakeup) noexcept;
  bool forget(PendingRequest& asked) noexcept;
  PendingRequest* take(const fabric::Head& reply, const Words& words) noexcept;
  void end(PendingRequest& asked, Status status) noexcept;

  fabric::Engine& engine_;
  SpinLock lock_;  // of the next
  std::array<PendingRequest*, fabric::tickets_max> asked_{};
};

/// As fabric::TryUntilDone, for a thread that must not touch a program's memory.
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

/// Returns when `ready()`: by the fault thread.
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
