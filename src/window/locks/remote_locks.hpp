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

// Locks between hosts. A lock lies in memory of its home's host. A rank of another host takes each step by a head to
// the home, which takes it in that rank's place and in that rank's own slot: so the far and the near queue together,
// and who passes the lock on does not care who is which. What comes of it the home tells by a head of its own.
//
//   remote rank            home                                near ranks
//      |-- lock ---------->| LockAlgorithm of the remote rank's slot    | LockAlgorithm of their own
//      |                   |<---------- word, slots ----------->|
//      |<-- granted -------| when its slot says so
//      |-- unlock -------->|
//
// To the near ranks a remote one lives as long as the home does, which gives back what it had when it dies.

enum class LockStepKind : std::uint8_t { lock = 1, try_lock, abandon, unlock };
struct LockStep {
  std::uint32_t number;
  std::uint32_t token;  // of the request, in all that follows
  LockStepKind kind;
  LockMode mode;
  std::uint16_t reserved;
};
enum class LockOutcomeKind : std::uint8_t {
  none,
  granted,
  granted_after_death,
  refused,  ///< Of try_lock: it would have to wait.
  abandoned,
  no_lock,  ///< There is none, or no longer.
  wanted,   ///< Others wait while it is shared.
};
struct LockOutcome {
  std::uint32_t number;
  std::uint32_t token;
  LockOutcomeKind kind;
  std::array<std::uint8_t, 7> reserved;
};

/// Who the ranks of a window are to its locks: positions in its group.
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
    engine->session().arena().ring_service_doorbell(home);  // nobody there may be in the library
  }
};

/// A rank's way to a lock of another host: one request at a time, as LockAlgorithm.
///
/// Threads: one after the other, ordered by the caller; take() and ready() by any.
class RemoteLock {
 public:
  RemoteLock(fabric::Engine& engine, fabric::SendQueue& send_queue, std::uint32_t window, int home,
             std::uint32_t number) noexcept
      : engine_(engine), send_queue_(send_queue), window_(window), home_(home), number_(number) {}

  void request(LockMode mode, bool once) noexcept;
  /// What has come of it; none: nothing yet.
  [[nodiscard]] LockOutcomeKind step() const noexcept { return outcome_.load(std::memory_order_acquire); }
  /// True when step() has something to say, or never will.
  [[nodiscard]] bool ready() const noexcept { return step() != LockOutcomeKind::none || is_gone(); }
  [[nodiscard]] bool is_gone() const noexcept { return !engine_.session().alive(home_); }
  /// Takes the request back: outcome `abandoned`, unless it has been granted.
  void abandon() noexcept;
  void unlock() noexcept;
  /// Others wait for what is shared, as far as is known.
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
  std::atomic<std::uint32_t> token_{0};                          // relaxed: who is asked has it by a head
  std::atomic<LockOutcomeKind> outcome_{LockOutcomeKind::none};  // release: what the last holder wrote is seen
  std::atomic<bool> wanted_{false};
};

/// The locks of one window's part at their home, as remote ranks use them. Outlives the part while such a rank has a
/// lock or awaits one.
///
/// Threads: one at a time.
class LockHome {
 public:
  LockHome(fabric::Engine& engine, fabric::SendQueue& send_queue, const Group& group, std::shared_ptr<Mapping> memory,
           std::uint32_t window, std::uint32_t granule);
  LockHome(LockHome&&) = delete;
  ~LockHome();  // gives the memory back, if it is the last to hold it

  void take(int peer, const LockStep& step) noexcept;
  /// Tells those whose locks have moved.
  void advance() noexcept;
  [[nodiscard]] bool ready() const noexcept;
  void bury(int rank) noexcept;
  /// The part has been freed: those who have or await a lock go on, nobody else comes.
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
  std::map<Name, Proxy> proxies_;  // all that there ever were
  std::vector<Proxy*> active_;     // those of them that are not idle
};

/// All of a rank.
///
/// Threads: any.
class LockHomes {
 public:
  LockHomes(fabric::Engine& engine, fabric::SendQueue& send_queue)
      : engine_(engine), send_queue_(send_queue), dead_(static_cast<std::size_t>(engine.session().size())) {}

  /// `make()` makes the window's home, or answers null where there is no such window.
  template <class Make>
  void receive(const fabric::Head& head, Make make) noexcept {
    const std::lock_guard guard(mutex_);
    if (dead_[head.source] != 0) return;  // nobody would give it back
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
  std::atomic<std::size_t> active_{0};  // relaxed: whoever changes a lock rings a doorbell after that
  mutable std::mutex mutex_;            // of the next two
  std::vector<char> dead_;              // by rank: buried
  std::map<std::uint32_t, std::unique_ptr<LockHome>> homes_;
};

}  // namespace tonari::window
