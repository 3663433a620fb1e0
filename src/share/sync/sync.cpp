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

SyncSlot& slot_of_mutex(const std::unique_ptr<SyncSlot>& slot) { return used(slot, "a share::mutex"); }
SyncSlot& slot_of_flag(const std::unique_ptr<SyncSlot>& slot) { return used(slot, "a share::flag"); }

Status first_failure(Status one, Status other) noexcept { return one != Status::ok ? one : other; }

// Acquires after locking. Returns holder_died if writes of an earlier holder were lost with a dead rank.
Status after_lock(SyncSlot& slot, Status locked) noexcept {
  if (locked != Status::ok && locked != Status::holder_died) return locked;
  if (has_assertions) slot.holds().fetch_add(1, std::memory_order_relaxed);
  return slot.sharing().acquire() == Status::ok ? locked : Status::holder_died;
}

Status lock_at(SyncSlot& slot, LockMode mode) noexcept {
  return after_lock(slot, slot.window().lock(JobRank{slot.home()}, slot.index(), mode));
}
Status try_lock_at(SyncSlot& slot, LockMode mode) noexcept {
  return after_lock(slot, slot.window().try_lock(JobRank{slot.home()}, slot.index(), mode));
}

// Tells the home that a flag was set, if a rank of another host has waited for it.
void tell_home(SyncSlot& slot) noexcept {
  std::byte* const awaited = slot.window().direct(slot.word() + awaited_at, sizeof(std::uint64_t));
  if (awaited != nullptr && atomic_word(awaited).load(std::memory_order_seq_cst) == 0) return;  // pairs with FlagHome
  if (slot.home() == slot.rank()) return slot.flags().look(slot.index());
  Words words;
  words.first = slot.index();
  slot.sharing().requests().tell(slot.home(), head_of(Kind::share_set, slot.rank(), words));
}

// Waits until the home, on another host, reports that a flag is at least `value`. Returns false if a rank died or all
// other ranks have left; or if too many threads of this rank wait, so that the caller has to ask again and again.
bool is_told(SyncSlot& slot, std::uint64_t value) noexcept {
  constexpr unsigned tickets_spared =
      fabric::tickets_max / 2;  // left for requests that end sooner, and that the setting of the flag may need
  SharedMemory& sharing = slot.sharing();
  Words words;
  words.first = slot.index();
  words.extra = value;
  PendingRequest pending;
  if (!sharing.requests().try_ask(pending, slot.home(), head_of(Kind::share_await, slot.rank(), words),
                                  tickets_spared)) {
    return false;
  }
  const auto is_over = [&] { return pending.is_done() || sharing.somebody_died() || sharing.is_alone(); };
  fabric::wait_until(sharing.engine(), is_over, job::Wait::window, slot.home());
  return !sharing.requests().abandon(pending) && pending.status() == Status::ok;
}

}  // namespace

mutex::mutex(Job& job) : slot_(std::make_unique<SyncSlot>(job)) {}
mutex::mutex(mutex&&) noexcept = default;

mutex::~mutex() {
  if (!has_assertions || !slot_ || slot_->holds().load(std::memory_order_relaxed) <= 0) return;
  if (std::uncaught_exceptions() != 0) return;
  name_misuse(slot_->rank(), "a share::mutex is destroyed that this rank has locked");
}

mutex::Lock mutex::lock() noexcept {
  SyncSlot& slot = slot_of_mutex(slot_);
  return {slot, lock_at(slot, LockMode::exclusive)};
}
mutex::Lock mutex::lock_shared() noexcept {
  SyncSlot& slot = slot_of_mutex(slot_);
  return {slot, lock_at(slot, LockMode::shared)};
}
mutex::Lock mutex::try_lock() noexcept {
  SyncSlot& slot = slot_of_mutex(slot_);
  return {slot, try_lock_at(slot, LockMode::exclusive)};
}
mutex::Lock mutex::try_lock_shared() noexcept {
  SyncSlot& slot = slot_of_mutex(slot_);
  return {slot, try_lock_at(slot, LockMode::shared)};
}

Status mutex::Lock::unlock(SyncSlot& slot) noexcept {
  const Status released = slot.sharing().release();
  if (has_assertions) slot.holds().fetch_sub(1, std::memory_order_relaxed);
  return first_failure(released, slot.window().unlock(JobRank{slot.home()}, slot.index()));
}

flag::flag(Job& job) : slot_(std::make_unique<SyncSlot>(job)) {}
flag::flag(flag&&) noexcept = default;
flag::~flag() = default;

Status flag::set(std::uint64_t value) noexcept {
  SyncSlot& slot = slot_of_flag(slot_);
  SharedMemory& sharing = slot.sharing();
  if (const Status status = sharing.release(); status != Status::ok) return status;
  const auto [status, before] = slot.window().swap(slot.word(), value);
  if (status == Status::ok && before > value) {
    name_misuse(slot.rank(), "a share::flag is set to {}, which was {} before: flags only grow", value, before);
  }
  for (int rank = 0; rank < sharing.size(); ++rank)
    sharing.engine().wake_if_asleep(rank);  // threads that watch the word
  tell_home(slot);
  return status;
}

Result<std::uint64_t> flag::get() noexcept {
  SyncSlot& slot = slot_of_flag(slot_);
  const auto [status, now] = slot.window().fetch_add(slot.word(), std::uint64_t{0});
  return {first_failure(status, slot.sharing().acquire()), now};
}

Status flag::wait(std::uint64_t value) noexcept {
  SyncSlot& slot = slot_of_flag(slot_);
  SharedMemory& sharing = slot.sharing();
  if (std::byte* const word = slot.window().direct(slot.word(), sizeof value)) {
    // Sequentially consistent, like set(), so that no wake-up is lost; acquire: sees what was released before set().
    const auto is_set = [watched = atomic_word(word), value] {
      return watched.load(std::memory_order_seq_cst) >= value;
    };
    const auto is_over = [&] { return is_set() || sharing.somebody_died() || sharing.is_alone(); };
    fabric::wait_until(sharing.engine(), is_over, job::Wait::window, slot.home());
    return is_set() ? sharing.acquire() : Status::peer_gone;
  }
  for (;;) {  // the home is on another host
    if (is_told(slot, value)) return sharing.acquire();
    const auto found = slot.window().fetch_add(slot.word(), std::uint64_t{0});
    if (found.status != Status::ok) return found.status;
    if (found.value >= value) return sharing.acquire();
    if (sharing.somebody_died() || sharing.is_alone()) return Status::peer_gone;
    ::sched_yield();
  }
}

counter::counter(Job& job) : slot_(std::make_unique<SyncSlot>(job)) {}
counter::counter(counter&&) noexcept = default;
counter::~counter() = default;

Result<std::uint64_t> counter::fetch_add(std::uint64_t value) noexcept {
  SyncSlot& slot = used(slot_, "a share::counter");
  const Status released = slot.sharing().release();
  const auto [status, before] = slot.window().fetch_add(slot.word(), value);
  return {first_failure(status, first_failure(released, slot.sharing().acquire())), before};
}

}  // namespace tonari::share
