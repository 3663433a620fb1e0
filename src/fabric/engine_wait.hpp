#pragma once

#include "base/clock.hpp"
#include "base/futex.hpp"
#include "fabric/engine.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

// The loops in which the threads of a rank wait: Engine::wait() and its parts.

namespace tonari::fabric {

template <Waitable W>
void Engine::wait(W& waitable) noexcept {
  std::uint32_t patience = 0;
  for (;;) {
    if constexpr (!TouchesNothing<W>) handlers_.run_deferred_work();
    const Step step = waitable.step();
    if (step == Step::done) break;
    if (progress_lock_.try_take()) {
      watch_rings(waitable, step == Step::retry, patience);
      progress_lock_.drop(waitable.ready());  // if not ready, it is taken again at once
    } else {
      sleep_beside(waitable, step == Step::retry);
    }
  }
  progress_lock_.pass_on_if_free();
  if (patience >= spin_limits_.spins_min()) block_.wait.store(job::Wait::nothing, std::memory_order_relaxed);
}

// Called by the holder of the progress lock. Returns when heads have arrived, when there is deferred work, or when the
// wait is over. Spins, yields, then sleeps.
template <Waitable W>
void Engine::watch_rings(W& waitable, bool retry, std::uint32_t& patience) noexcept {
  // The poll before a sleep may have brought deferred work.
  const auto has_deferred_work = [this] { return !TouchesNothing<W> && handlers_.has_deferred_work(); };
  while (poll() == 0 && !waitable.ready() && !has_deferred_work()) {
    ++patience;
    if (patience < spin_limits_.spins()) {
      if (patience == 1) idle();
      cpu_relax();
      if (retry && has_network()) return;  // the network makes room without a head that poll() counts
      continue;
    }
    if (patience == spin_limits_.spins()) waitable.slow();
    if (patience < spin_limits_.spins() + spin_limits_.yields()) {
      ::sched_yield();
    } else {
      sleep_on_doorbell(waitable, retry);
    }
    if (retry) return;
  }
  // More heads may follow: this thread polls for another moment before it sleeps, however long it has waited.
  if (!shared_cores()) patience = std::min(patience, spin_limits_.spins() - spin_limits_.spins() / 4);
}

template <Waitable W>
void Engine::sleep_on_doorbell(W& waitable, bool retry) noexcept {
  const std::uint32_t seen = block_.doorbell.load(std::memory_order_acquire);  // a ring from here on ends the sleep
  if (poll_all() != 0) return;  // retries what was held back before an earlier ring
  const bool rings_quiet = shm_.fall_asleep();
  // Other threads of this rank may wait for a line on a board. A rank that publishes one from here on wakes this one.
  retry_held_back();
  if (!waitable.ready()) {
    // For a slot that is claimed and not yet published, no doorbell will ring.
    const bool quiet = rings_quiet && !retry;
    block_.counters.sleeps.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t since_ns = monotonic_ns();
    doorbells_.sleep(job::Arena::Doorbell::waiting, seen, longest_sleep(waitable, !quiet));
    if (quiet) spin_limits_.adapt(std::chrono::nanoseconds(monotonic_ns() - since_ns));
  }
  shm_.wake_up();
}

template <Waitable W>
void Engine::sleep_beside(W& waitable, bool retry) noexcept {
  for (int i = 0; i < 64; ++i) {
    if (waitable.ready() || !progress_lock_.is_held()) return;
    cpu_relax();
  }
  ProgressLock::SleeperRegistration registration(progress_lock_);
  if (!registration.is_held()) return;
  if (waitable.attach(&registration.sleeper())) {
    block_.counters.sleeps.fetch_add(1, std::memory_order_relaxed);
    futex_wait(registration.sleeper().woken, 0, longest_sleep(waitable, retry));
  }
  waitable.attach(nullptr);  // also if it was ready: the engine must not watch it after this wait
}

template <Waitable W>
std::chrono::nanoseconds Engine::longest_sleep(const W& waitable, bool retry) noexcept {
  constexpr std::chrono::nanoseconds sleep_max = std::chrono::milliseconds(500);  // only in case a wake is lost
  constexpr std::chrono::nanoseconds retry_sleep_max = std::chrono::microseconds(50);
  const std::chrono::nanoseconds longest = retry ? retry_sleep_max : sleep_max;
  if constexpr (TimedWaitable<W>) return std::clamp(waitable.time_left(), std::chrono::nanoseconds(1), longest);
  return longest;
}

template <Waitable W>
bool Engine::look_before_waiting(W& waitable) noexcept {
  constexpr int looks_with_a_core_each = 500;
  constexpr int looks_with_shared_cores = 64;
  const int looks = shared_cores() ? looks_with_shared_cores : looks_with_a_core_each;
  const int looks_between_polls = shared_cores() ? 8 : 32;  // other ranks may wait for this one
  for (int look = 1; look <= looks; ++look) {
    if (shared_cores()) ::sched_yield();
    if (look % looks_between_polls == 0) progress();
    if (waitable.ready() && waitable.step() == Step::done) return true;
  }
  return false;
}

}  // namespace tonari::fabric
