#pragma once

#include "base/futex.hpp"

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>

namespace tonari::fabric {

/// A thread that sleeps while another thread of its rank holds the progress lock. It lives as long as its engine, so
/// that a late wake() does no harm.
struct Sleeper {
  std::atomic<std::uint32_t> woken{0};

  void wake() noexcept {
    woken.store(1, std::memory_order_release);
    futex_wake(woken, 1);
  }
};

/// A condition that a peer makes true in shared memory, without sending a head. See Engine::watch().
class Watched {
 public:
  /// Whether the condition is true. Must be cheap.
  [[nodiscard]] virtual bool ready() const noexcept = 0;

 protected:
  ~Watched() = default;
};

/// The result of one step of a wait.
enum class Step : std::uint8_t {
  done,
  waiting,  ///< Heads have to arrive first.
  retry,    ///< Bulk memory has no room. No head announces room, so the step must be repeated soon.
};

/// An argument of Engine::wait(). The waiting thread calls all its functions. It holds no lock then, except that
/// ready() and slow() may be called with the progress lock held.
template <class W>
concept Waitable = requires(W& waitable, Sleeper* sleeper) {
  { waitable.step() }
  noexcept->std::same_as<Step>;  // advances as far as possible
  { waitable.ready() }
  noexcept->std::same_as<bool>;  // cheap: true if step() would find something to do
  { waitable.attach(sleeper) }
  noexcept->std::same_as<bool>;  // has the sleeper woken when ready; false: already ready. Null, afterwards: detaches
  { waitable.slow() }
  noexcept;  // called once when the wait has become long: wakes peers, reports to `tonari status`
};
/// A wait by a thread that must never touch the program's memory, so it runs no deferred work.
template <class W>
concept TouchesNothing = Waitable<W> && requires {
  typename W::touches_nothing;
};
/// A wait with a time limit.
template <class W>
concept TimedWaitable = Waitable<W> && requires(const W& waitable) {
  { waitable.time_left() }
  noexcept->std::same_as<std::chrono::nanoseconds>;
};

}  // namespace tonari::fabric
