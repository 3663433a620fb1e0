#pragma once

#include "base/clock.hpp"
#include "base/futex.hpp"
#include "base/lock.hpp"
#include "fabric/bulk.hpp"
#include "fabric/failure_detector.hpp"
#include "fabric/network.hpp"
#include "fabric/segment.hpp"
#include "fabric/shm.hpp"
#include "fabric/transfer.hpp"
#include "job/session.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tonari::fabric {

/// A layer above the fabric: handles the heads of one protocol.
class ProtocolHandler {
 public:
  virtual ~ProtocolHandler() = default;
  /// Heads, in their order. Called by the progress lock's holder: must not block, nor touch a user's memory; sends at
  /// most one reply to each.
  virtual void receive(std::span<const Head> heads) noexcept = 0;
  /// Tries again what found no room. Called by the progress lock's holder while `held_back() `.
  virtual void retry() noexcept = 0;
  [[nodiscard]] virtual bool held_back() const noexcept = 0;
  /// For work that may wait until there is nothing else to do. Called by the progress lock's holder.
  virtual void idle() noexcept = 0;
  /// A rank died: what needs it must fail. Called by the service thread.
  virtual void died(int rank) noexcept = 0;
  /// A rank leaves: it still takes part in what was begun, but begins nothing. Called by the service thread.
  virtual void left(int rank) noexcept = 0;
  /// Does what heads asked of this rank and what may touch its program's memory. Called with nothing held, by any
  /// thread in the library, while add_deferred_work() was called more often than this has done something.
  virtual void run_deferred_work() noexcept {}
};

/// A thread that sleeps while another of its rank holds the progress lock. Never freed before its engine, so that a
/// late wake does no harm.
struct Sleeper {
  std::atomic<std::uint32_t> woken{0};

  void wake() noexcept {
    woken.store(1, std::memory_order_release);
    futex_wake(woken, 1);
  }
};

/// What a peer changes in shared memory, without a head.
class Watched {
 public:
  /// Cheap: it has changed.
  [[nodiscard]] virtual bool ready() const noexcept = 0;

 protected:
  ~Watched() = default;
};

/// What waiting for something has to be able to tell. All are called by the waiting thread, with no lock or progress
/// lock held.
enum class Step : std::uint8_t {
  done,
  waiting,  ///< For heads to arrive.
  retry,    ///< For room in bulk memory, which nobody announces: look again soon.
};
template <class W>
concept Waitable = requires(W& waitable, Sleeper* sleeper) {
  { waitable.step() }
  noexcept->std::same_as<Step>;  // moves it on as far as it goes
  { waitable.ready() }
  noexcept->std::same_as<bool>;  // cheap: step() would find something to do
  { waitable.attach(sleeper) }
  noexcept->std::same_as<bool>;  // wake it when ready; false: is ready; null, after either: detach
  { waitable.slow() }
  noexcept;  // the wait has become long: tell peers, and status
};
/// One whose thread must never touch a program's memory: it runs no deferred work.
template <class W>
concept TouchesNothing = Waitable<W> && requires {
  typename W::touches_nothing;
};
/// One that ends by itself after some time.
template <class W>
concept TimedWaitable = Waitable<W> && requires(const W& waitable) {
  { waitable.time_left() }
  noexcept->std::same_as<std::chrono::nanoseconds>;
};

/// What a rank does about what is sent to it.
enum class Attention : std::uint8_t {
  elsewhere,  ///< None of its threads waits for anything.
  asleep,     ///< One waits, and has to be woken.
  looking,    ///< One waits and looks, on a core of its own: it will most often do at once what it is asked for.
};

/// The fabric of one rank: its rings, its progress, its waiting.
///
/// The progress lock: whoever holds it polls the rings for the whole rank. The others sleep beside it, each until its
/// own wait is over or the progress lock is handed to it. The holder that finds nothing spins, yields, then sleeps on
/// the rank's doorbell.
///
/// Threads: any.
class Engine final : public job::Session::Attachment {
 public:
  explicit Engine(job::Session& session);
  ~Engine() override;
  /// The session's engine, made on first use.
  static Engine& of(job::Session& session);

  /// Sends a head. Answers ok, again (no room, nothing was sent), peer_gone. A reply has room by its reservation, but
  /// for the moment in which another rank has claimed a slot and lost its core before publishing it.
  Status send(int peer, const Head& head, Lane lane) noexcept {
    if (is_remote(peer)) [[unlikely]]
      return send_remote(peer, head, lane);
    return shm_.send(peer, head, lane);
  }
  /// Sends a head that names a tail, to a remote rank, with the tail from where it lies. The bytes stay as they are
  /// until `under_way` is what it was: meanwhile it is one more.
  Status send_from(int peer, const Head& head, std::span<const std::byte> bytes,
                   std::atomic<std::uint32_t>& under_way) noexcept {
    return network_->send_from(peer, head, bytes, under_way);
  }
  /// After `again`: has `peer` ring our doorbell when it makes room. True when there is room already.
  bool ask_for_room(int peer, Lane lane) noexcept {
    return !is_remote(peer) && shm_.ask_for_room(peer, lane);  // a remote one tells it by the network
  }
  /// After something was shown on a board.
  void wake_if_asleep(int peer) noexcept {
    if (!is_remote(peer)) shm_.wake_if_asleep(peer);
  }
  /// The tail that a head from `peer` names. Empty when it names none: the peer lies.
  [[nodiscard]] std::span<const std::byte> look(int peer, std::uint64_t place, std::uint64_t bytes) const noexcept {
    if (is_remote(peer)) [[unlikely]]
      return Network::look(place, bytes);
    return BulkReader::look(bulk_of(peer), {place}, bytes);
  }
  /// It has been read.
  void give_back(int peer, std::uint64_t place) noexcept {
    if (is_remote(peer)) [[unlikely]]
      return network_->give_back(place);
    BulkReader::give_back(bulk_of(peer), {place});
  }
  /// On another host, or as if it were: what this host's memory has of it means nothing.
  [[nodiscard]] bool is_remote(int peer) const noexcept {
    return network_ != nullptr && remote_[static_cast<std::size_t>(peer)] != 0;
  }
  /// Copies between this program's memory and that of `peer` work.
  [[nodiscard]] bool copies_directly(int peer) const noexcept { return session_.direct_copies() && !is_remote(peer); }
  /// They work with all ranks.
  [[nodiscard]] bool copies_directly() const noexcept { return session_.direct_copies() && network_ == nullptr; }
  /// Copies by key to and from remote ranks; null where the network has none.
  [[nodiscard]] ucx::Wire* by_key() noexcept {
    return network_ != nullptr && network_->by_key().has_keys() ? &network_->by_key() : nullptr;
  }
  /// What `peer` is at just now, as far as one can see from here. Nobody can be counted on with more ranks than cores.
  [[nodiscard]] Attention attention(int peer) const noexcept {
    if (is_remote(peer) || shared_cores_ ||
        (session_.arena().block(peer).progress_lock.load(std::memory_order_relaxed) & 1) == 0) {
      return Attention::elsewhere;
    }
    return shm_.is_asleep(peer) ? Attention::asleep : Attention::looking;
  }
  /// Has `peer`'s service thread look at its rings if nobody there does.
  void wake_peer(int peer) noexcept;
  /// Has another thread of this rank, which may sleep with the progress lock, retry what was held back just now.
  void wake_self() noexcept {
    // Sequentially consistent with sleep_on_doorbell: either it retries after what was held back, or we see its
    // progress lock.
    if ((block_.progress_lock.load(std::memory_order_seq_cst) & 1) != 0) ring_own_doorbell();
  }

  /// Returns once `waitable.step()` answers done.
  template <Waitable W>
  void wait(W& waitable) noexcept;
  /// For what comes without a head, and most often soon: looks for it alone for a while, without the progress lock.
  /// With more ranks than cores it lets others have the core between its looks. True once `waitable.step()` has
  /// answered done.
  template <Waitable W>
  [[nodiscard]] bool look_before_waiting(W& waitable) noexcept;
  /// For `tonari status`: a thread of this rank has waited long for `peer` (a rank of the job, or -1).
  void tell_long_wait(job::Wait what, int peer, int tag) noexcept {
    block_.wait_peer.store(peer, std::memory_order_relaxed);
    block_.wait_tag.store(tag, std::memory_order_relaxed);
    block_.wait_since_ns.store(monotonic_ns(), std::memory_order_relaxed);
    block_.wait.store(what, std::memory_order_relaxed);
  }
  /// One look at the rings, if nobody else is at it.
  void progress() noexcept;
  /// Has `sleeper` woken when `what` is ready: the progress lock's holder looks at it each time that it polls. Null: no
  /// longer. False: it is ready already.
  bool watch(const Watched& what, Sleeper* sleeper) noexcept;
  /// There is something for a layer's run_deferred_work().
  void add_deferred_work() noexcept {
    deferred_work_.fetch_add(1, std::memory_order_release);
  }  // with what there is to do
  void finish_deferred_work() noexcept { deferred_work_.fetch_sub(1, std::memory_order_relaxed); }

  /// There are more ranks than cores.
  [[nodiscard]] bool shared_cores() const noexcept { return shared_cores_; }
  [[nodiscard]] job::Session& session() noexcept { return session_; }
  [[nodiscard]] job::Counters& counters() noexcept { return block_.counters; }
  [[nodiscard]] BulkOwner& bulk() noexcept { return bulk_; }
  [[nodiscard]] Tickets& tickets() noexcept { return tickets_; }
  [[nodiscard]] Boards& boards() noexcept { return boards_; }
  [[nodiscard]] BoardMemory& board_of(int peer, std::uint32_t index) const noexcept {
    return Segment(session_.arena().segment(peer)).boards()[index];
  }
  [[nodiscard]] BulkMemory& bulk_of(int peer) const noexcept { return Segment(session_.arena().segment(peer)).bulk(); }
  [[nodiscard]] TransferMemory& transfer_of(int peer, std::uint32_t ticket) const noexcept {
    return Segment(session_.arena().segment(peer)).transfers()[ticket];
  }
  [[nodiscard]] DirectCopy direct_copy(int peer) const noexcept {
    return {session_.arena().block(peer).pid.load(std::memory_order_relaxed), session_.threads()};
  }

  /// The handler of `protocol`, made by `make()` and registered on first use.
  template <class T, class Make>
  T& handler(Protocol protocol, Make make) {
    const auto index = static_cast<std::size_t>(protocol);
    const std::lock_guard guard(handlers_mutex_);
    if (!owned_handlers_[index]) {
      owned_handlers_[index] = make();
      for (const auto& [rank, told] : gone_) (owned_handlers_[index].get()->*told)(rank);
      handlers_[index].store(owned_handlers_[index].get(), std::memory_order_release);  // complete before it is seen
      session_.arena().ring_service_doorbell(session_.rank());  // for deaths before it was registered
    }
    return static_cast<T&>(*owned_handlers_[index]);
  }

  void serve() noexcept override;
  bool died(int rank) noexcept override;
  bool left(int rank) noexcept override;
  void settle() noexcept override;
  bool rest(std::uint32_t seen, std::chrono::nanoseconds longest) noexcept override;

 private:
  // The progress lock, in the rank's block so that peers see whether someone looks: bit 0 held, above it twice the
  // sleepers.
  bool take_progress_lock() noexcept {
    std::uint32_t seen = block_.progress_lock.load(std::memory_order_relaxed);
    // Sequentially consistent with wake_self(), and so an acquire of what the last holder did; pairs with
    // drop_progress_lock.
    return (seen & 1) == 0 && block_.progress_lock.compare_exchange_strong(seen, seen | 1, std::memory_order_seq_cst);
  }
  void drop_progress_lock(bool leaving) noexcept {
    if (block_.progress_lock.fetch_sub(1, std::memory_order_release) != 1 && leaving) [[unlikely]]
      hand_on();
  }
  [[gnu::cold]] void hand_on() noexcept;

  struct Neighbours {
    Engine* engine;
    [[nodiscard]] bool alive(int rank) const noexcept { return engine->session_.alive(rank); }
    void wake(int rank) const noexcept { engine->wake(rank); }
  };
  void ring_own_doorbell() noexcept { session_.arena().ring_doorbell(session_.rank()); }
  std::size_t poll() noexcept;  // by the holder, as the next seven
  std::size_t poll_network() noexcept;
  void count_poll(bool empty) noexcept;
  void receive(const Head& head) noexcept;
  void tell_if_full() noexcept;
  void notice_gone() noexcept;
  void hear_of_death(std::uint32_t rank) noexcept;
  void run_failure_detector() noexcept;
  std::size_t poll_all() noexcept {
    polls_without_network_ = polls_without_network_max;
    return poll();
  }
  Status send_remote(int peer, const Head& head, Lane lane) noexcept { return network_->send(peer, head, lane); }
  void tell_remote_ranks(const Head& head) noexcept;
  /// Sleeps until the rank's doorbell is no longer `seen`, or something came by the network, or for so long.
  void sleep_on(job::Arena::Doorbell doorbell, std::uint32_t seen, std::chrono::nanoseconds longest) noexcept;
  void serve_network() noexcept;
  void hand_up(std::span<const Head> heads) noexcept;
  void hand_up(std::size_t protocol, std::span<const Head> heads) noexcept;
  [[gnu::cold]] void deliver_undelivered() noexcept;
  void tell_handlers(int rank, void (ProtocolHandler::*told)(int) noexcept) noexcept;
  void wake_watchers() noexcept;
  void run_deferred_work() noexcept {
    if (deferred_work_.load(std::memory_order_acquire) != 0) [[unlikely]]
      run_all_deferred_work();
  }
  [[gnu::cold]] void run_all_deferred_work() noexcept;
  [[nodiscard]] bool has_handlers() const noexcept;
  void retry_held_back() noexcept;  // by the holder
  [[nodiscard]] bool held_back() const noexcept;
  void drain() noexcept;
  [[gnu::noinline]] void idle() noexcept;  // by the holder
  template <Waitable W>
  void watch_rings(W& waitable, bool retry, std::uint32_t& patience) noexcept;
  template <Waitable W>
  static std::chrono::nanoseconds longest_sleep(const W& waitable, bool retry) noexcept {
    const std::chrono::nanoseconds longest = retry ? std::chrono::nanoseconds(retry_sleep_max) : sleep_max;
    if constexpr (TimedWaitable<W>) return std::clamp(waitable.time_left(), std::chrono::nanoseconds(1), longest);
    return longest;
  }
  template <Waitable W>
  [[gnu::noinline]] void sleep_on_doorbell(W& waitable, bool retry) noexcept;
  void adapt_spins(std::chrono::nanoseconds slept) noexcept;  // by the holder
  template <Waitable W>
  [[gnu::noinline]] void sleep_beside(W& waitable, bool retry) noexcept;
  [[gnu::cold, gnu::noinline]] void wake(int peer) noexcept;

  Sleeper* register_sleeper() noexcept;
  void unregister_sleeper(Sleeper* sleeper) noexcept;

  static constexpr std::size_t heads_a_poll = 32;
  static constexpr std::chrono::milliseconds sleep_max{500};       // a net under lost wakes, not a way to wait
  static constexpr std::chrono::microseconds retry_sleep_max{50};  // for what nobody announces
  static constexpr std::chrono::milliseconds short_sleep_max{10};
  static constexpr std::uint32_t spins_growth_max = 32;
  static constexpr std::uint32_t polls_without_network_max = 8;  // of the rings, a look at which costs a fraction
  static constexpr std::chrono::milliseconds nap_max{8};

  job::Session& session_;
  job::RankBlock& block_;
  bool shared_cores_;  // more ranks than cores
  std::uint32_t spins_min_;
  std::uint32_t spins_;  // by the progress lock's holder
  std::uint32_t yields_max_;
  Shm<Neighbours> shm_;  // polled by the progress lock's holder
  BulkOwner bulk_;
  Tickets tickets_;
  Boards boards_;

  Network* network_ = nullptr;                  // the session's; null where there is none
  std::vector<char> remote_;                    // by rank: is_remote()
  bool has_neighbours_ = false;                 // that are not
  std::vector<std::atomic<char>> leaves_;       // by rank: far, and has said so; with what it sent before
  FileDescriptor doorbell_, service_doorbell_;  // sockets
  std::uint32_t polls_without_network_ = 0;     // by the progress lock's holder, as the next two
  bool network_empty_ = true;                   // the last poll has asked the network, if there is one: it had nothing
  std::uint32_t gone_seen_ = 0;
  std::optional<FailureDetector> failure_detector_;  // where there are several hosts
  std::uint32_t deaths_seen_ = 0;
  std::uint32_t full_told_ = 0;       // what the ranks of other hosts know, up to
  int full_told_to_ = 0;              // this one
  std::chrono::milliseconds nap_{1};  // by the service thread

  std::array<Head, 2 * heads_a_poll> arrived_;  // by the progress lock's holder: what a poll takes out of both rings
  std::atomic<std::uint32_t> polls_{0};         // by the progress lock's holder, as the next: for drain()
  std::atomic<std::uint32_t> empty_polls_{0};   // that have looked everywhere and found nothing

  SpinLock sleepers_lock_;  // of the next three
  std::deque<Sleeper> sleepers_;
  std::vector<Sleeper*> sleepers_free_;
  std::vector<Sleeper*> lying_;  // those the progress lock may be handed to

  struct Watch {
    const Watched* what;
    Sleeper* sleeper;
  };
  SpinLock watches_lock_;  // of the next
  std::vector<Watch> watches_;
  std::atomic<std::uint32_t> watches_count_{0};  // relaxed: who raises it looks again, then sleeps
  std::atomic<std::uint32_t> deferred_work_{0};

  struct Gone {
    int rank;
    void (ProtocolHandler::*told)(int) noexcept;
  };
  std::mutex handlers_mutex_;  // of the next two
  std::array<std::unique_ptr<ProtocolHandler>, handlers_count> owned_handlers_;
  std::vector<Gone> gone_;  // deaths and leavers that layers were told of, for those to come
  std::array<std::atomic<ProtocolHandler*>, handlers_count> handlers_{};
  // By the progress lock's holder: heads for layers that this rank has not made yet, and whether there are any.
  std::array<std::vector<Head>, handlers_count> undelivered_;
  bool has_undelivered_ = false;
};

template <Waitable W>
bool Engine::look_before_waiting(W& waitable) noexcept {
  constexpr int looks_with_a_core_each = 500;
  constexpr int looks_with_shared_cores = 64;
  const int looks = shared_cores_ ? looks_with_shared_cores : looks_with_a_core_each;
  const int looks_between_polls = shared_cores_ ? 8 : 32;  // who waits for heads of ours must not wait for all of these
  for (int look = 1; look <= looks; ++look) {
    if (shared_cores_) ::sched_yield();
    if (look % looks_between_polls == 0) progress();
    if (waitable.ready() && waitable.step() == Step::done) return true;
  }
  return false;
}

template <Waitable W>
void Engine::wait(W& waitable) noexcept {
  std::uint32_t patience = 0;
  for (;;) {
    if constexpr (!TouchesNothing<W>) run_deferred_work();
    const Step step = waitable.step();
    if (step == Step::done) break;
    if (take_progress_lock()) {
      watch_rings(waitable, step == Step::retry, patience);
      drop_progress_lock(waitable.ready());  // if not, it is taken again at once
    } else {
      sleep_beside(waitable, step == Step::retry);
    }
  }
  // The progress lock may have been handed to us although our wait was over.
  const std::uint32_t progress_lock = block_.progress_lock.load(std::memory_order_relaxed);
  if ((progress_lock & 1) == 0 && progress_lock != 0) [[unlikely]]
    hand_on();
  if (patience >= spins_min_) block_.wait.store(job::Wait::nothing, std::memory_order_relaxed);
}

// By the holder, until something arrived, is to be done or the wait is over. Spins, yields, then sleeps.
template <Waitable W>
void Engine::watch_rings(W& waitable, bool retry, std::uint32_t& patience) noexcept {
  // Errands too: the look before a sleep may have brought one.
  const auto has_deferred_work = [this] {
    return !TouchesNothing<W> && deferred_work_.load(std::memory_order_relaxed) != 0;
  };
  while (poll() == 0 && !waitable.ready() && !has_deferred_work()) {
    ++patience;
    if (patience < spins_) {
      if (patience == 1) idle();
      cpu_relax();
      if (retry && network_ != nullptr) return;  // it makes room without a head that a poll would count
      continue;
    }
    if (patience == spins_) waitable.slow();
    if (patience < spins_ + yields_max_) {
      ::sched_yield();
    } else {
      sleep_on_doorbell(waitable, retry);
    }
    if (retry) return;
  }
  // What came may be the first of many: it looks again for a moment before it sleeps, however long it has waited.
  if (!shared_cores_) patience = std::min(patience, spins_ - spins_ / 4);
}

template <Waitable W>
void Engine::sleep_on_doorbell(W& waitable, bool retry) noexcept {
  const std::uint32_t seen =
      block_.doorbell.load(std::memory_order_acquire);  // a doorbell rung from here on ends the sleep
  if (poll_all() != 0) return;                          // what was held back before it was rung is retried here
  const bool rings_quiet = shm_.fall_asleep();
  retry_held_back();  // others of this rank may wait for a line on a board: who shows one from here on wakes us
  if (!waitable.ready()) {
    // A slot that is claimed and not yet published comes without a doorbell.
    const bool quiet = rings_quiet && !retry;
    block_.counters.sleeps.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t since_ns = monotonic_ns();
    sleep_on(job::Arena::Doorbell::waiting, seen, longest_sleep(waitable, !quiet));
    if (quiet) adapt_spins(std::chrono::nanoseconds(monotonic_ns() - since_ns));
  }
  shm_.wake_up();
}

template <Waitable W>
void Engine::sleep_beside(W& waitable, bool retry) noexcept {
  for (int i = 0; i < 64; ++i) {
    if (waitable.ready() || (block_.progress_lock.load(std::memory_order_relaxed) & 1) == 0) return;
    cpu_relax();
  }
  Sleeper* sleeper = register_sleeper();
  // From here the progress lock counts us: a holder that drops it later hands it on.
  const bool held = (block_.progress_lock.fetch_add(2, std::memory_order_acq_rel) & 1) != 0;
  if (held) {
    if (waitable.attach(sleeper)) {
      block_.counters.sleeps.fetch_add(1, std::memory_order_relaxed);
      futex_wait(sleeper->woken, 0, longest_sleep(waitable, retry));
    }
    waitable.attach(nullptr);  // also where it was ready: what is watched may be gone with its asker
  }
  unregister_sleeper(sleeper);
  block_.progress_lock.fetch_sub(2, std::memory_order_acq_rel);
}

}  // namespace tonari::fabric
