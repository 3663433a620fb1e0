#pragma once

#include "base/mapping.hpp"
#include "fabric/engine.hpp"
#include "fabric/send_queue.hpp"
#include "job/group.hpp"
#include "window/locks/lock_algorithm.hpp"
#include "window/state/layout.hpp"

#include <tonari/job.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace tonari::window {

// Locks between hosts. A lock is in memory of its home's host. For each step, a rank of another host sends a head to
// the home, which takes the step for that rank, in that rank's own slot. So remote and local ranks wait in one queue,
// and the rank that passes the lock on treats both in the same way. The home sends the outcome in a head of its own.
//
//   remote rank            home                                     local ranks
//      |-- lock ---------->| LockAlgorithm of the remote rank's slot    | LockAlgorithm of their own
//      |                   |<-------------- word, slots --------------->|
//      |<-- granted -------| when its slot says so
//      |-- unlock -------->|
//
// To local ranks a remote rank lives as long as the home does. When a remote rank dies, the home gives back its locks.

enum class LockStepKind : std::uint8_t { lock = 1, try_lock, abandon, unlock };
struct LockStep {
  std::uint32_t number;
  std::uint32_t token;  // of the request, repeated in all later heads about it
  LockStepKind kind;
  LockMode mode;
  std::uint16_t reserved;
};
enum class LockOutcomeKind : std::uint8_t {
  none,
  granted,
  granted_after_death,
  refused,  ///< Only for try_lock: it would have to wait.
  abandoned,
  no_lock,  ///< There is no such lock (any more).
  wanted,   ///< Other ranks wait while the lock is shared.
};
struct LockOutcome {
  std::uint32_t number;
  std::uint32_t token;
  LockOutcomeKind kind;
  std::array<std::uint8_t, 7> reserved;
};

/// The ranks of a window, as its locks see them: positions in its group.
struct LockGroup {
  fabric::Engine* engine;
  const Group* group;
  int home;

  [[nodiscard]] bool alive(int position) const noexcept {
    const int rank = job::rank_at(*group, position);
    return engine->session().alive(engine->is_remote(rank) ? home : rank);
  }
  void wake(int position) const noexcept {
    const int rank = job::rank_at(*group, position);
    if (!engine->is_remote(rank)) return engine->wake_if_asleep(rank);
    engine->wake_if_asleep(home);
    engine->session().arena().ring_service_doorbell(home);  // a thread there may not be in the library
  }
};

/// A rank's access to a lock of another host: one request at a time, as with LockAlgorithm.
///
/// Threads: one after the other, ordered by the caller; take() and ready() any.
class RemoteLock {
 public:
  RemoteLock(fabric::Engine& engine, fabric::SendQueue& send_queue, std::uint32_t window, int home,
             std::uint32_t number) noexcept
      : engine_(engine), send_queue_(send_queue), window_(window), home_(home), number_(number) {}

  void request(LockMode mode, bool once) noexcept;
  /// Returns the outcome of the request; LockOutcomeKind::none if it has not come yet.
  [[nodiscard]] LockOutcomeKind step() const noexcept { return outcome_.load(std::memory_order_acquire); }
  /// Returns true if step() has an outcome, or if the home has died and there will be no outcome.
  [[nodiscard]] bool ready() const noexcept { return step() != LockOutcomeKind::none || is_gone(); }
  [[nodiscard]] bool is_gone() const noexcept { return !engine_.session().alive(home_); }
  /// Withdraws the request: its outcome is `abandoned`, unless it has been granted.
  void abandon() noexcept;
  void unlock() noexcept;
  /// Returns true if other ranks are known to wait for the shared lock.
  [[nodiscard]] bool wanted() const noexcept { return wanted_.load(std::memory_order_relaxed); }

  void take(const LockOutcome& outcome) noexcept;

 private:
  void send(LockStepKind kind) noexcept;

  fabric::Engine& engine_;
  fabric::SendQueue& send_queue_;
  std::uint32_t window_;
  int home_;
  std::uint32_t number_;
  LockMode mode_ = LockMode::exclusive;
  bool abandoned_ = false;
  std::atomic<std::uint32_t> token_{0};                          // relaxed: the home gets it in a head
  std::atomic<LockOutcomeKind> outcome_{LockOutcomeKind::none};  // release: the last holder's writes are visible
  std::atomic<bool> wanted_{false};
};

/// The locks of one window's part at their home, for remote ranks. Outlives the part while a remote rank holds a lock
/// or waits for one.
///
/// Threads: one at a time.
class LockHome {
 public:
  LockHome(fabric::Engine& engine, fabric::SendQueue& send_queue, const Group& group, std::shared_ptr<Mapping> memory,
           std::uint32_t window, std::uint32_t granule);
  LockHome(LockHome&&) = delete;
  ~LockHome();  // gives the memory back if it is the last holder

  void take(int peer, const LockStep& step) noexcept;
  /// Tells the ranks whose locks have moved.
  void advance() noexcept;
  [[nodiscard]] bool ready() const noexcept;
  void bury(int rank) noexcept;
  /// The part has been freed: ranks that hold a lock or wait for one go on; new requests are refused.
  void close() noexcept { closed_ = true; }
  [[nodiscard]] std::size_t active() const noexcept { return active_.size(); }
  [[nodiscard]] bool is_over() const noexcept { return closed_ && active_.empty(); }

 private:
  enum class State : std::uint8_t { idle, waiting, held };
  using Name = std::pair<std::uint32_t, int>;  // lock, position
  struct Proxy {
    Name name;
    LockAlgorithm<LockGroup> side;
    State state = State::idle;
    LockMode mode = LockMode::exclusive;
    std::uint32_t token = 0;
    bool told_wanted = false;
  };

  void begin(Proxy& proxy, const LockStep& step) noexcept;
  void abandon(Proxy& proxy) noexcept;
  void unlock(Proxy& proxy) noexcept;
  void settle(Proxy& proxy, LockAnswer answer) noexcept;
  static bool is_to_be_told_wanted(const Proxy& proxy) noexcept;
  void set_state(Proxy& proxy, State state) noexcept;
  Proxy& proxy_of(const Name& name);
  void tell(const Name& name, std::uint32_t token, LockOutcomeKind kind) noexcept;

  fabric::Engine& engine_;
  fabric::SendQueue& send_queue_;
  const Group group_;
  std::shared_ptr<Mapping> memory_;
  Layout layout_;
  std::uint32_t window_;
  std::uint32_t granule_;
  int position_;  // of this rank
  bool closed_ = false;
  std::map<Name, Proxy> proxies_;  // all that were ever used
  std::vector<Proxy*> active_;     // the proxies that are not idle
};

/// All lock homes of a rank.
///
/// Threads: any.
class LockHomes {
 public:
  LockHomes(fabric::Engine& engine, fabric::SendQueue& send_queue)
      : engine_(engine),
        send_queue_(send_queue),
        active_(engine.handlers()),
        dead_(static_cast<std::size_t>(engine.session().size())) {}

  /// `make()` makes the home of the window's locks, or returns nullptr if there is no such window.
  template <class Make>
  void receive(const fabric::Head& head, Make make) noexcept {
    const std::lock_guard guard(mutex_);
    if (dead_[head.source] != 0) return;  // a lock would never be unlocked
    auto found = homes_.find(head.context);
    if (found == homes_.end()) {
      std::unique_ptr<LockHome> home = make();
      if (home == nullptr) return refuse(head);
      found = homes_.emplace(head.context, std::move(home)).first;
    }
    found->second->take(static_cast<int>(head.source), head.as<LockStep>());
    advance();
  }
  void retry() noexcept;
  [[nodiscard]] bool held_back() const noexcept;
  void died(int rank) noexcept;
  void close(std::uint32_t window) noexcept;

 private:
  void refuse(const fabric::Head& head) noexcept;
  void advance() noexcept;

  fabric::Engine& engine_;
  fabric::SendQueue& send_queue_;
  fabric::HeldBack active_;   // locks that are not idle: a poll looks whether they have moved
  mutable std::mutex mutex_;  // guards dead_ and homes_
  std::vector<char> dead_;    // by rank: 1 if it has died
  std::map<std::uint32_t, std::unique_ptr<LockHome>> homes_;
};

}  // namespace tonari::window
