// The engine's part in the service thread, and in a thread that leaves the job.

#include "base/futex.hpp"
#include "fabric/engine.hpp"
#include "fabric/wait.hpp"

#include <sched.h>

#include <algorithm>

namespace tonari::fabric {

void Engine::serve() noexcept {
  // The service thread polls only if no application thread does so within a moment.
  constexpr std::chrono::microseconds moment{20};
  const std::uint32_t seen = block_.service_doorbell.load(std::memory_order_relaxed);
  if (!handlers_.any()) return;  // nothing could handle the heads
  if (progress_lock_.is_held()) return;
  futex_wait(block_.service_doorbell, seen, moment);
  if (!progress_lock_.try_take()) return;
  do {
    shm_.expect_gap();
  } while (poll_all() != 0);
  idle();
  progress_lock_.drop(true);
  handlers_.run_deferred_work();
}

// Called by the service thread. While another thread of this rank polls, that thread watches the network: if two
// threads slept on one descriptor, each message would wake both.
bool Engine::rest(std::uint32_t seen, std::chrono::nanoseconds longest) noexcept {
  constexpr std::chrono::milliseconds nap_min{1};
  constexpr std::chrono::milliseconds nap_max{8};
  if (!has_network()) return false;
  if (!progress_lock_.try_take()) {
    futex_wait(block_.service_doorbell, seen, nap_);
    nap_ = std::min(2 * nap_, nap_max);
    return true;
  }
  nap_ = nap_min;
  const bool quiet = network().quiet() && !handlers_.held_back() && !handlers_.has_deferred_work();
  progress_lock_.drop(true);
  if (!quiet) return true;
  doorbells_.sleep(job::Arena::Doorbell::service, seen, longest);
  if (block_.service_doorbell.load(std::memory_order_relaxed) == seen) serve_network();
  return true;
}

// Unlike serve(), does not wait for an application thread: the network has woken the service thread, since no other
// thread watches it.
void Engine::serve_network() noexcept {
  if (!progress_lock_.try_take()) return;
  while (poll_all() != 0) {
  }
  progress_lock_.drop(true);
  handlers_.run_deferred_work();
}

bool Engine::died(int rank) noexcept {
  if (!handlers_.any()) return false;  // nothing could handle the heads that it has sent
  drain();
  if (is_remote(rank)) {
    network().forget(rank);  // also returns the tails that were being sent to it
  } else {
    bulk_.reader_died(rank);
  }
  tell_handlers(rank, &ProtocolHandler::died);
  return true;
}

bool Engine::left(int rank) noexcept {
  if (!handlers_.any()) return false;  // as in died()
  if (is_remote(rank) && !remote_ranks_.announced_leaving(rank)) return false;
  drain();
  tell_handlers(rank, &ProtocolHandler::left);
  return true;
}

void Engine::tell_handlers(int rank, void (ProtocolHandler::*event)(int) noexcept) noexcept {
  handlers_.tell(rank, event);
  watches_.wake_ready();
  ring_own_doorbell();
}

// Called by the service thread before it tells the handlers that a rank has died or is leaving. Has the heads of that
// rank that have already arrived handed up, by this thread or by the holder of the progress lock, which the doorbell
// wakes.
//
// Guaranteed: the heads that were in our rings when this rank learned of the death; for a remote rank, the heads in
// this host's sockets, as far as UCX still reads a broken connection. Not guaranteed: heads on their way from another
// host. A rank's own connection breaks after everything that came over it, but its watcher's report comes over another
// connection and may be faster. Then the handlers learn of the death first, and late heads arrive afterwards or are
// lost with the connection. So the last messages of a dead rank may arrive after its death is reported, or not at all.
//
// Waits for two empty polls, since the first may have begun earlier. If other ranks never pause, `polls_max` polls have
// taken more than the rings and sockets hold. The holder's polls are counted, not this thread's looks at it, since the
// holder may be without a core for a while.
void Engine::drain() noexcept {
  constexpr std::uint32_t polls_max = 2000;
  const std::uint32_t polls = polls_.load(std::memory_order_acquire);
  const std::uint32_t empty_polls = empty_polls_.load(std::memory_order_acquire);
  while (empty_polls_.load(std::memory_order_acquire) - empty_polls < 2 &&
         polls_.load(std::memory_order_acquire) - polls < polls_max) {
    if (progress_lock_.try_take()) {
      shm_.expect_gap();
      poll_all();
      progress_lock_.drop(true);
    } else {
      ring_own_doorbell();
      ::sched_yield();
    }
  }
}

void Engine::settle() noexcept {
  struct NothingHeld {
    const Handlers& handlers;
    Step step() noexcept { return handlers.held_back() ? Step::retry : Step::done; }
    [[nodiscard]] bool ready() const noexcept { return !handlers.held_back(); }
    bool attach(Sleeper*) noexcept { return true; }  // it looks again by itself
    void slow() noexcept {}
  } waiting{handlers_};
  wait(waiting);
  Head leaving{};
  leaving.kind = Kind::rank_leaves;
  leaving.source = static_cast<std::uint32_t>(session_.rank());
  tell_remote_ranks(leaving);
}

// Returns when the head has been sent to all remote ranks that are alive.
void Engine::tell_remote_ranks(const Head& head) noexcept {
  if (!has_network()) return;
  int next = 0;
  try_until_done(
      *this, [&] { return remote_ranks_.send_to_all(head, next) == Status::ok; }, Waiter::program);
}

}  // namespace tonari::fabric
