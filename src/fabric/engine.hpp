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
  /// Handles heads in the order in which they arrived. Called by the holder of the progress lock: must not block, must
  /// not touch a user's memory, and sends at most one reply per head.
  virtual void receive(std::span<const Head> heads) noexcept = 0;
  /// Repeats the sends that found no room. Called by the holder of the progress lock while held_back() is true.
  virtual void retry() noexcept = 0;
  [[nodiscard]] virtual bool held_back() const noexcept = 0;
  /// Does work that can wait until there is nothing else to do. Called by the holder of the progress lock.
  virtual void idle() noexcept = 0;
  /// `rank` has died: every operation that needs it must fail. Called by the service thread.
  virtual void died(int rank) noexcept = 0;
  /// `rank` is leaving: it completes operations that have begun, and begins no others. Called by the service thread.
  virtual void left(int rank) noexcept = 0;
  /// Does the work that heads have asked for and that may touch the program's memory. Called without any lock, by any
  /// thread in the library, while Engine::add_deferred_work() has been called more often than finish_deferred_work().
  virtual void run_deferred_work() noexcept {}
};

/// A thread that sleeps while another thread of its rank holds the progress lock. It lives as long as its engine, so
/// that a late wake() does no harm.
struct Sleeper {
  std::atomic<std::uint32_t> woken{0};

  void wake() noexcept {
    woken.store(1, std::memory_order_release);
    futex_wake(woken, 1);
  }
};

/// A condition that a peer makes true in shared memory, without sending a head.
class Watched {
 public:
  /// Whether the condition is true. Must be cheap.
  [[nodiscard]] virtual bool ready() const noexcept = 0;

 protected:
  ~Watched() = default;
};

/// The result of one step of a wait. All functions of a Waitable are called by the waiting thread, which holds no lock.
enum class Step : std::uint8_t {
  done,
  waiting,  ///< Heads have to arrive first.
  retry,    ///< Bulk memory has no room. No head announces room, so the step must be repeated soon.
};
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

/// Whether a rank will soon look at heads that are sent to it.
enum class Attention : std::uint8_t {
  elsewhere,  ///< None of its threads waits in the library.
  asleep,     ///< A thread waits and has to be woken.
  looking,    ///< A thread waits and polls on a core of its own. It usually serves a request at once.
};

/// The fabric of one rank: its transports, its progress and its waiting.
///
/// The progress lock: the thread that holds it polls for the whole rank. Other waiting threads sleep, each until its
/// own wait is over or the progress lock is passed on to it. A holder that finds nothing spins, then yields, then
/// sleeps on the rank's doorbell.
///
/// Threads: any.
class Engine final : public job::Session::Attachment {
 public:
  explicit Engine(job::Session& session);
  ~Engine() override;
  /// Returns the session's engine and makes it on first use.
  static Engine& of(job::Session& session);

  /// Sends a head; never blocks. Returns
  ///   ok         the head is copied and will arrive;
  ///   again      there is no room, and nothing was sent;
  ///   peer_gone  the peer has died.
  /// A reply finds the room that its request reserved, except while another rank has claimed a slot and has lost its
  /// core before publishing it.
  Status send(int peer, const Head& head, Lane lane) noexcept {
    if (is_remote(peer)) [[unlikely]]
      return send_remote(peer, head, lane);
    return shm_.send(peer, head, lane);
  }
  /// Sends a head with a tail to a remote rank; the tail is sent from `bytes`, not from bulk memory. `under_way` is
  /// raised by one; the bytes must not change until the network has lowered it again. Returns as send().
  Status send_from(int peer, const Head& head, std::span<const std::byte> bytes,
                   std::atomic<std::uint32_t>& under_way) noexcept {
    return network_->send_from(peer, head, bytes, under_way);
  }
  /// After `again`: has `peer` ring our doorbell when it has made room. Returns true if there is room already.
  bool ask_for_room(int peer, Lane lane) noexcept {
    return !is_remote(peer) && shm_.ask_for_room(peer, lane);  // a remote peer announces room by the network
  }
  /// Wakes `peer` if it sleeps. Called after this rank has published something on a board.
  void wake_if_asleep(int peer) noexcept {
    if (!is_remote(peer)) shm_.wake_if_asleep(peer);
  }
  /// Returns the tail of a head from `peer`; empty if there is no such block, since the head was malformed. The place
  /// is in the peer's bulk memory or, if the peer is remote, where the network library keeps the bytes.
  [[nodiscard]] std::span<const std::byte> look(int peer, std::uint64_t place, std::uint64_t bytes) const noexcept {
    if (is_remote(peer)) [[unlikely]]
      return Network::look(place, bytes);
    return BulkReader::look(bulk_of(peer), {place}, bytes);
  }
  /// Returns a tail that has been read to its sender, or to the network library.
  void give_back(int peer, std::uint64_t place) noexcept {
    if (is_remote(peer)) [[unlikely]]
      return network_->give_back(place);
    BulkReader::give_back(bulk_of(peer), {place});
  }
  /// Whether `peer` is on another host, or treated as if it were: its rings and segment cannot be used.
  [[nodiscard]] bool is_remote(int peer) const noexcept {
    return network_ != nullptr && remote_[static_cast<std::size_t>(peer)] != 0;
  }
  /// Whether this rank can copy directly between its program's memory and that of `peer`.
  [[nodiscard]] bool copies_directly(int peer) const noexcept { return session_.direct_copies() && !is_remote(peer); }
  /// The same for all ranks.
  [[nodiscard]] bool copies_directly() const noexcept { return session_.direct_copies() && network_ == nullptr; }
  /// Copies by RDMA to and from remote ranks; null if the network has no RDMA.
  [[nodiscard]] ucx::Wire* by_key() noexcept {
    return network_ != nullptr && network_->by_key().has_keys() ? &network_->by_key() : nullptr;
  }
  /// Whether `peer` polls at the moment, as far as this rank can see. With more ranks than cores it is never relied on.
  [[nodiscard]] Attention attention(int peer) const noexcept {
    if (is_remote(peer) || shared_cores_ ||
        (session_.arena().block(peer).progress_lock.load(std::memory_order_relaxed) & 1) == 0) {
      return Attention::elsewhere;
    }
    return shm_.is_asleep(peer) ? Attention::asleep : Attention::looking;
  }
  /// Has `peer`'s service thread poll unless another of its threads does.
  void wake_peer(int peer) noexcept;
  /// Wakes the thread of this rank that holds the progress lock, if it sleeps, to retry what was just held back.
  void wake_self() noexcept {
    // Sequentially consistent with sleep_on_doorbell(): either the holder retries after this thread held something
    // back, or this thread sees that the progress lock is held.
    if ((block_.progress_lock.load(std::memory_order_seq_cst) & 1) != 0) ring_own_doorbell();
  }

  /// Returns once `waitable.step()` has returned done.
  template <Waitable W>
  void wait(W& waitable) noexcept;
  /// Polls `waitable` alone for a while, without the progress lock: for events that come without a head and usually
  /// soon. With more ranks than cores it yields between two looks. Returns true if `waitable.step()` has returned done.
  template <Waitable W>
  [[nodiscard]] bool look_before_waiting(W& waitable) noexcept;
  /// Reports to `tonari status` that a thread of this rank has waited long for `peer` (a rank of the job, or -1).
  void tell_long_wait(job::Wait what, int peer, int tag) noexcept {
    block_.wait_peer.store(peer, std::memory_order_relaxed);
    block_.wait_tag.store(tag, std::memory_order_relaxed);
    block_.wait_since_ns.store(monotonic_ns(), std::memory_order_relaxed);
    block_.wait.store(what, std::memory_order_relaxed);
  }
  /// Polls once, unless another thread holds the progress lock.
  void progress() noexcept;
  /// Has `sleeper` woken when `what` is ready; the holder of the progress lock looks at it in each poll. A null
  /// `sleeper` ends that. Returns false if `what` is ready already, or if there is no memory.
  bool watch(const Watched& what, Sleeper* sleeper) noexcept;
  /// Announces work for the run_deferred_work() of a handler, which the caller has stored before.
  void add_deferred_work() noexcept {
    deferred_work_.fetch_add(1, std::memory_order_release);
  }  // release: with the work itself
  void finish_deferred_work() noexcept { deferred_work_.fetch_sub(1, std::memory_order_relaxed); }

  /// Whether this host has more ranks than cores.
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
  // The progress lock is in the rank's block, so that peers see whether a thread polls. Bit 0: held. Bits 1 and up:
  // number of sleeping threads.
  bool take_progress_lock() noexcept {
    std::uint32_t seen = block_.progress_lock.load(std::memory_order_relaxed);
    // Sequentially consistent with wake_self(). This also acquires the writes of the last holder: pairs with
    // drop_progress_lock().
    return (seen & 1) == 0 && block_.progress_lock.compare_exchange_strong(seen, seen | 1, std::memory_order_seq_cst);
  }
  void drop_progress_lock(bool leaving) noexcept {
    if (block_.progress_lock.fetch_sub(1, std::memory_order_release) != 1 && leaving) [[unlikely]]
      pass_on_progress_lock_slow();
  }
  [[gnu::cold]] void pass_on_progress_lock_slow() noexcept;

  struct Neighbours {
    Engine* engine;
    [[nodiscard]] bool alive(int rank) const noexcept { return engine->session_.alive(rank); }
    void wake(int rank) const noexcept { engine->wake(rank); }
  };
  void ring_own_doorbell() noexcept { session_.arena().ring_doorbell(session_.rank()); }
  // Called by the holder of the progress lock:
  std::size_t poll() noexcept;
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
  /// Sleeps until the doorbell's value is not `seen`, until the network has something, or for `longest`.
  void sleep_on(job::Arena::Doorbell doorbell, std::uint32_t seen, std::chrono::nanoseconds longest) noexcept;
  void serve_network() noexcept;
  void hand_up(std::span<const Head> heads) noexcept;
  void hand_up(std::size_t protocol, std::span<const Head> heads) noexcept;
  [[gnu::cold]] void deliver_undelivered() noexcept;
  void tell_handlers(int rank, void (ProtocolHandler::*told)(int) noexcept) noexcept;
  void wake_watchers() noexcept;
  void run_deferred_work() noexcept {
    if (deferred_work_.load(std::memory_order_acquire) != 0) [[unlikely]]
      run_deferred_work_slow();
  }
  [[gnu::cold]] void run_deferred_work_slow() noexcept;
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
  static constexpr std::chrono::milliseconds sleep_max{500};       // only in case a wake is lost
  static constexpr std::chrono::microseconds retry_sleep_max{50};  // for Step::retry
  static constexpr std::chrono::milliseconds short_sleep_max{10};
  static constexpr std::uint32_t spins_growth_max = 32;
  static constexpr std::uint32_t polls_without_network_max = 8;  // a look at the rings costs far less
  static constexpr std::chrono::milliseconds nap_max{8};

  job::Session& session_;
  job::RankBlock& block_;
  bool shared_cores_;  // more ranks than cores
  std::uint32_t spins_min_;
  std::uint32_t spins_;  // by the holder of the progress lock
  std::uint32_t yields_max_;
  Shm<Neighbours> shm_;  // polled by the holder of the progress lock
  BulkOwner bulk_;
  Tickets tickets_;
  Boards boards_;

  Network* network_ = nullptr;                  // the session's; null if there is none
  std::vector<char> remote_;                    // by rank: is_remote()
  bool has_neighbours_ = false;                 // other ranks of this host share its rings
  std::vector<std::atomic<char>> leaves_;       // by rank: 1 once a remote rank has sent rank_leaves
  FileDescriptor doorbell_, service_doorbell_;  // sockets
  std::uint32_t polls_without_network_ = 0;     // by the holder of the progress lock, as the next two
  bool network_empty_ = true;                   // the last poll asked the network, which had nothing; or there is none
  std::uint32_t gone_seen_ = 0;
  std::optional<FailureDetector> failure_detector_;  // if there are several hosts
  std::uint32_t deaths_seen_ = 0;
  std::uint32_t full_told_ = 0;       // this rank's last rank_full has been sent to all remote ranks below
  int full_told_to_ = 0;              // this one
  std::chrono::milliseconds nap_{1};  // by the service thread

  std::array<Head, 2 * heads_a_poll> arrived_;  // by the holder of the progress lock: heads that one poll has taken
  std::atomic<std::uint32_t> polls_{0};         // by the holder of the progress lock, as the next: for drain()
  std::atomic<std::uint32_t> empty_polls_{0};   // polls that have looked everywhere and found nothing

  SpinLock sleepers_lock_;  // guards the next three
  std::deque<Sleeper> sleepers_;
  std::vector<Sleeper*> sleepers_free_;
  std::vector<Sleeper*> lying_;  // sleeping threads to which the lock may be passed on

  struct Watch {
    const Watched* what;
    Sleeper* sleeper;
  };
  SpinLock watches_lock_;  // guards the next
  std::vector<Watch> watches_;
  std::atomic<std::uint32_t> watches_count_{0};  // relaxed: a thread that raises it looks again before it sleeps
  std::atomic<std::uint32_t> deferred_work_{0};

  struct Gone {
    int rank;
    void (ProtocolHandler::*told)(int) noexcept;
  };
  std::mutex handlers_mutex_;  // guards the next two
  std::array<std::unique_ptr<ProtocolHandler>, handlers_count> owned_handlers_;
  std::vector<Gone> gone_;  // deaths and departures so far: later handlers are told of them too
  std::array<std::atomic<ProtocolHandler*>, handlers_count> handlers_{};
  // Heads for handlers that are not registered yet, and whether there are any; used by the holder of the progress lock.
  std::array<std::vector<Head>, handlers_count> undelivered_;
  bool has_undelivered_ = false;
};

template <Waitable W>
bool Engine::look_before_waiting(W& waitable) noexcept {
  constexpr int looks_with_a_core_each = 500;
  constexpr int looks_with_shared_cores = 64;
  const int looks = shared_cores_ ? looks_with_shared_cores : looks_with_a_core_each;
  const int looks_between_polls = shared_cores_ ? 8 : 32;  // other ranks may wait for this one
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
      drop_progress_lock(waitable.ready());  // if not ready, it is taken again at once
    } else {
      sleep_beside(waitable, step == Step::retry);
    }
  }
  // The progress lock may have been passed on to this thread although its wait was over.
  const std::uint32_t progress_lock = block_.progress_lock.load(std::memory_order_relaxed);
  if ((progress_lock & 1) == 0 && progress_lock != 0) [[unlikely]]
    pass_on_progress_lock_slow();
  if (patience >= spins_min_) block_.wait.store(job::Wait::nothing, std::memory_order_relaxed);
}

// Called by the holder of the progress lock. Returns when heads have arrived, when there is deferred work, or when the
// wait is over. Spins, yields, then sleeps.
template <Waitable W>
void Engine::watch_rings(W& waitable, bool retry, std::uint32_t& patience) noexcept {
  // The poll before a sleep may have brought deferred work.
  const auto has_deferred_work = [this] {
    return !TouchesNothing<W> && deferred_work_.load(std::memory_order_relaxed) != 0;
  };
  while (poll() == 0 && !waitable.ready() && !has_deferred_work()) {
    ++patience;
    if (patience < spins_) {
      if (patience == 1) idle();
      cpu_relax();
      if (retry && network_ != nullptr) return;  // the network makes room without a head that poll() counts
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
  // More heads may follow: this thread polls for another moment before it sleeps, however long it has waited.
  if (!shared_cores_) patience = std::min(patience, spins_ - spins_ / 4);
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
  // From here on the progress lock counts this thread: a holder that drops it later passes it on.
  const bool held = (block_.progress_lock.fetch_add(2, std::memory_order_acq_rel) & 1) != 0;
  if (held) {
    if (waitable.attach(sleeper)) {
      block_.counters.sleeps.fetch_add(1, std::memory_order_relaxed);
      futex_wait(sleeper->woken, 0, longest_sleep(waitable, retry));
    }
    waitable.attach(nullptr);  // also if it was ready: the engine must not watch it after this wait
  }
  unregister_sleeper(sleeper);
  block_.progress_lock.fetch_sub(2, std::memory_order_acq_rel);
}

}  // namespace tonari::fabric
