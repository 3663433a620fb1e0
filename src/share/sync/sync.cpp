#include <tonari/share.hpp>

#include "fabric/engine.hpp"
#include "fabric/wait.hpp"
#include "job/session.hpp"
#include "share/misuse.hpp"
#include "share/shared_memory.hpp"
#include "share/sync/slot.hpp"

#include <sched.h>

#include <atomic>
#include <exception>
#include <memory>

// Mutexes, flags and counters: locks and words of the window for synchronisation. Their operations release before, and
// acquire after.
namespace tonari::share {

namespace {

SyncSlot& place_of_mutex(const std::unique_ptr<SyncSlot>& place) { return used(place, "a share::mutex"); }
SyncSlot& place_of_flag(const std::unique_ptr<SyncSlot>& place) { return used(place, "a share::flag"); }

Status first_failure(Status one, Status other) noexcept { return one != Status::ok ? one : other; }

// Acquires after locking. Returns holder_died if writes of an earlier holder were lost with a dead rank.
Status after_lock(SyncSlot& place, Status locked) noexcept {
  if (locked != Status::ok && locked != Status::holder_died) return locked;
  if (has_assertions) place.holds().fetch_add(1, std::memory_order_relaxed);
  return place.sharing().acquire() == Status::ok ? locked : Status::holder_died;
}

Status lock_at(SyncSlot& place, LockMode mode) noexcept {
  return after_lock(place, place.window().lock(JobRank{place.home()}, place.index(), mode));
}
Status try_lock_at(SyncSlot& place, LockMode mode) noexcept {
  return after_lock(place, place.window().try_lock(JobRank{place.home()}, place.index(), mode));
}

// Tells the home that a flag was set, if a rank of another host has waited for it.
void tell_home(SyncSlot& place) noexcept {
  std::byte* const awaited = place.window().direct(place.word() + awaited_at, sizeof(std::uint64_t));
  if (awaited != nullptr && atomic_word(awaited).load(std::memory_order_seq_cst) == 0) return;  // pairs with FlagHome
  if (place.home() == place.rank()) return place.flags().look(place.index());
  Words words;
  words.first = place.index();
  place.sharing().requests().tell(place.home(), head_of(Kind::share_set, place.rank(), words));
}

// Waits until the home, on another host, reports that a flag is at least `value`. Returns false if a rank died or all
// other ranks have left; or if too many threads of this rank wait, so that the caller has to ask again and again.
bool is_told(SyncSlot& place, std::uint64_t value) noexcept {
  constexpr unsigned tickets_spared =
      fabric::tickets_max / 2;  // left for requests that end sooner, and that the setting of the flag may need
  SharedMemory& sharing = place.sharing();
  Words words;
  words.first = place.index();
  words.extra = value;
  PendingRequest pending;
  if (!sharing.requests().try_ask(pending, place.home(), head_of(Kind::share_await, place.rank(), words),
                                  tickets_spared)) {
    return false;
  }
  const auto is_over = [&] { return pending.is_done() || sharing.somebody_died() || sharing.is_alone(); };
  fabric::wait_until(sharing.engine(), is_over, job::Wait::window, place.home());
  return !sharing.requests().abandon(pending) && pending.status() == Status::ok;
}

}  // namespace

mutex::mutex(Job& job) : place_(std::make_unique<SyncSlot>(job)) {}
mutex::mutex(mutex&&) noexcept = default;

mutex::~mutex() {
  if (!has_assertions || !place_ || place_->holds().load(std::memory_order_relaxed) <= 0) return;
  if (std::uncaught_exceptions() != 0) return;
  name_misuse(place_->rank(), "a share::mutex is destroyed that this rank has locked");
}

mutex::Lock mutex::lock() noexcept {
  SyncSlot& place = place_of_mutex(place_);
  return {place, lock_at(place, LockMode::exclusive)};
}
mutex::Lock mutex::lock_shared() noexcept {
  SyncSlot& place = place_of_mutex(place_);
  return {place, lock_at(place, LockMode::shared)};
}
mutex::Lock mutex::try_lock() noexcept {
  SyncSlot& place = place_of_mutex(place_);
  return {place, try_lock_at(place, LockMode::exclusive)};
}
mutex::Lock mutex::try_lock_shared() noexcept {
  SyncSlot& place = place_of_mutex(place_);
  return {place, try_lock_at(place, LockMode::shared)};
}

Status mutex::Lock::unlock(SyncSlot& place) noexcept {
  const Status released = place.sharing().release();
  if (has_assertions) place.holds().fetch_sub(1, std::memory_order_relaxed);
  return first_failure(released, place.window().unlock(JobRank{place.home()}, place.index()));
}

flag::flag(Job& job) : place_(std::make_unique<SyncSlot>(job)) {}
flag::flag(flag&&) noexcept = default;
flag::~flag() = default;

Status flag::set(std::uint64_t value) noexcept {
  SyncSlot& place = place_of_flag(place_);
  SharedMemory& sharing = place.sharing();
  if (const Status status = sharing.release(); status != Status::ok) return status;
  const auto [status, before] = place.window().swap(place.word(), value);
  if (status == Status::ok && before > value) {
    name_misuse(place.rank(), "a share::flag is set to {}, which was {} before: flags only grow", value, before);
  }
  for (int rank = 0; rank < sharing.size(); ++rank)
    sharing.engine().wake_if_asleep(rank);  // threads that watch the word
  tell_home(place);
  return status;
}

Result<std::uint64_t> flag::get() noexcept {
  SyncSlot& place = place_of_flag(place_);
  const auto [status, now] = place.window().fetch_add(place.word(), std::uint64_t{0});
  return {first_failure(status, place.sharing().acquire()), now};
}

Status flag::wait(std::uint64_t value) noexcept {
  SyncSlot& place = place_of_flag(place_);
  SharedMemory& sharing = place.sharing();
  if (std::byte* const word = place.window().direct(place.word(), sizeof value)) {
    // Sequentially consistent, like set(), so that no wake-up is lost; acquire: sees what was released before set().
    const auto is_set = [watched = atomic_word(word), value] {
      return watched.load(std::memory_order_seq_cst) >= value;
    };
    const auto is_over = [&] { return is_set() || sharing.somebody_died() || sharing.is_alone(); };
    fabric::wait_until(sharing.engine(), is_over, job::Wait::window, place.home());
    return is_set() ? sharing.acquire() : Status::peer_gone;
  }
  for (;;) {  // the home is on another host
    if (is_told(place, value)) return sharing.acquire();
    const auto found = place.window().fetch_add(place.word(), std::uint64_t{0});
    if (found.status != Status::ok) return found.status;
    if (found.value >= value) return sharing.acquire();
    if (sharing.somebody_died() || sharing.is_alone()) return Status::peer_gone;
    ::sched_yield();
  }
}

counter::counter(Job& job) : place_(std::make_unique<SyncSlot>(job)) {}
counter::counter(counter&&) noexcept = default;
counter::~counter() = default;

Result<std::uint64_t> counter::fetch_add(std::uint64_t value) noexcept {
  SyncSlot& place = used(place_, "a share::counter");
  const Status released = place.sharing().release();
  const auto [status, before] = place.window().fetch_add(place.word(), value);
  return {first_failure(status, first_failure(released, place.sharing().acquire())), before};
}

}  // namespace tonari::share
