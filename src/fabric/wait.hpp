#pragma once

#include "base/clock.hpp"
#include "fabric/engine.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace tonari::fabric {

/// A wait until `ready()`, for changes in shared memory or effects of heads. `ready()` must be cheap, and any thread
/// may call it. The rank that makes it true must wake this rank afterwards.
template <class Ready>
class WaitUntil : public Watched {
 public:
  static constexpr std::uint64_t no_end = ~std::uint64_t{0};

  /// The wait ends at `end_ns` of the monotonic clock at the latest.
  WaitUntil(Engine& engine, Ready ready, job::Wait what, int peer, std::uint64_t end_ns = no_end) noexcept
      : engine_(engine), ready_(std::move(ready)), what_(what), peer_(peer), end_ns_(end_ns) {}

  Step step() noexcept { return ready() ? Step::done : Step::waiting; }
  [[nodiscard]] bool ready() const noexcept override {
    return ready_() || (end_ns_ != no_end && monotonic_ns() >= end_ns_);
  }
  bool attach(Sleeper* sleeper) noexcept { return engine_.watch(*this, sleeper); }
  void slow() noexcept { engine_.tell_long_wait(what_, peer_, -1); }
  [[nodiscard]] std::chrono::nanoseconds time_left() const noexcept {
    constexpr std::uint64_t longest_ns = std::uint64_t{1} << 62;  // no_end does not fit into a signed number
    const std::uint64_t now_ns = monotonic_ns();
    return std::chrono::nanoseconds(now_ns < end_ns_ ? std::min(end_ns_ - now_ns, longest_ns) : 0);
  }

 private:
  Engine& engine_;
  Ready ready_;
  job::Wait what_;
  int peer_;
  std::uint64_t end_ns_;
};

/// Waits until `ready()`, which is usually soon. `peer`: the awaited rank of the job, or -1.
template <class Ready>
void wait_until(Engine& engine, Ready ready, job::Wait what, int peer) noexcept {
  WaitUntil waiting(engine, std::move(ready), what, peer);
  if (waiting.ready() || engine.look_before_waiting(waiting)) return;
  engine.wait(waiting);
}

/// Waits as wait_until() does, for effects of heads. Calls hurry() if it is not ready after `patience_ns`, and
/// continues to wait.
template <class Ready, class Hurry>
void wait_patiently(Engine& engine, Ready ready, job::Wait what, int peer, std::uint64_t patience_ns,
                    Hurry hurry) noexcept {
  WaitUntil at_first(engine, ready, what, peer, monotonic_ns() + patience_ns);
  engine.wait(at_first);
  if (ready()) return;
  hurry();
  WaitUntil then(engine, ready, what, peer);
  engine.wait(then);
}

/// The kind of thread that waits. The fault thread must not serve requests that touch the program's memory, since a
/// page of it may be absent.
enum class Waiter : std::uint8_t { program, faults };

/// A wait in the fault thread.
template <Waitable W>
struct InFaultThread : W {
  using W::W;
  using touches_nothing = void;
};

/// Waits until `ready()`, in the fault thread.
template <class Ready>
void wait_as_faults(Engine& engine, Ready ready) noexcept {
  InFaultThread<WaitUntil<Ready>> waiting(engine, std::move(ready), job::Wait::window, -1);
  engine.wait(waiting);
}

/// A wait until `attempt()` returns true, for conditions that no rank announces. Polls between attempts.
template <class Try>
class TryUntilDone {
 public:
  explicit TryUntilDone(Try attempt) noexcept : attempt_(std::move(attempt)) {}

  Step step() noexcept { return attempt_() ? Step::done : Step::retry; }
  [[nodiscard]] bool ready() const noexcept { return false; }
  bool attach(Sleeper*) noexcept { return true; }
  void slow() noexcept {}

 private:
  Try attempt_;
};

/// Returns once `attempt()` has returned true.
template <class Try>
void try_until_done(Engine& engine, Try attempt, Waiter waiter) noexcept {
  if (waiter == Waiter::program) {
    TryUntilDone<Try> waiting(std::move(attempt));
    engine.wait(waiting);
  } else {
    InFaultThread<TryUntilDone<Try>> waiting(std::move(attempt));
    engine.wait(waiting);
  }
}

}  // namespace tonari::fabric
