#pragma once

#include "base/lock.hpp"
#include "fabric/engine.hpp"
#include "job/group.hpp"
#include "window/locks/lock_algorithm.hpp"
#include "window/locks/remote_locks.hpp"
#include "window/state/layout.hpp"
#include "window/state/members.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

namespace tonari::window {

/// The request of a thread, or of a descriptor, for a lock. It is queued from begin() until it is granted or withdrawn.
struct LockRequest {
  LockMode mode = LockMode::exclusive;
  std::atomic<bool> granted{false};  // release: the last holder's writes; any thread may set it
  bool after_death = false;          // published by `granted`, as is `failure`
  Status failure = Status::ok;       // another status: it is over without being granted
  bool once = false;                 // for a remote lock: does not wait for other ranks
  class LocalLock* lock = nullptr;
  LockRequest* next = nullptr;
};

/// A lock of a window as one rank uses it: the rank's threads queue here, and the first of them asks on behalf of the
/// rank.
class LocalLock {
 public:
  LocalLock(fabric::Engine& engine, LockMemory& memory, const Group& group, std::size_t self, int home) noexcept
      : engine_(engine),
        side_(std::in_place, memory, group.size(), static_cast<int>(self), LockGroup{&engine, &group, home}) {}
  /// For a home on another host.
  LocalLock(fabric::Engine& engine, fabric::SendQueue& send_queue, std::uint32_t window, int home,
            std::uint32_t number) noexcept
      : engine_(engine), remote_(std::in_place, engine, send_queue, window, home, number) {}

  void begin(LockRequest& request) noexcept;
  /// Returns true if it is granted. A remote request must then be stepped until it is granted or over.
  bool try_at_once(LockRequest& request) noexcept;
  [[nodiscard]] bool is_remote() const noexcept { return remote_.has_value(); }
  /// Takes the outcome from a home on another host.
  void take(const LockOutcome& outcome) noexcept {
    if (remote_) remote_->take(outcome);
  }
  /// Moves the lock on. Returns true once the request is granted or over.
  bool step(const LockRequest& request) noexcept;
  [[nodiscard]] bool ready(const LockRequest& request) noexcept;
  /// Withdraws the request. Returns false if it has been granted, or if its outcome will still come: step it until
  /// then.
  bool give_up(LockRequest& request) noexcept;
  /// Returns false if this rank does not hold the lock.
  bool unlock() noexcept;

 private:
  bool advance() noexcept;
  LockAnswer ask(LockRequest& first) noexcept;
  LockAnswer ask_remote(LockRequest& first) noexcept;
  void fail_first(Status failure) noexcept;
  [[nodiscard]] bool contended() const noexcept;
  [[nodiscard]] bool may_share(LockMode mode) const noexcept;
  void grant_first(bool after_death) noexcept;
  void remove(LockRequest& request) noexcept;

  fabric::Engine& engine_;
  SpinLock lock_;                                 // guards all members below
  std::optional<LockAlgorithm<LockGroup>> side_;  // either side_ or remote_ is set
  std::optional<RemoteLock> remote_;
  bool asked_ = false;  // a request for the first in the queue has begun
  LockRequest* first_ = nullptr;
  LockRequest** end_ = &first_;
  std::uint32_t holders_ = 0;  // one thread, or several that share the lock
  LockMode held_ = LockMode::exclusive;
};

/// All locks of a window that this rank has used.
///
/// Threads: any.
class Locks {
 public:
  /// `homes`: where remote ranks' requests for this rank's locks arrive.
  Locks(fabric::Engine& engine, fabric::SendQueue& send_queue, LockHomes& homes, const Members& members,
        const Layout& layout, std::uint32_t window) noexcept
      : engine_(engine), send_queue_(send_queue), homes_(homes), members_(members), layout_(layout), window_(window) {}
  /// Takes the outcome from a home on another host.
  void take(int home, const LockOutcome& outcome) noexcept;

  /// Begins a request. Step it until it is granted, then read its status. Returns ok, invalid, bounds, peer_gone or
  /// no_memory.
  Status begin(LockRequest& request, int home, std::uint32_t number, LockMode mode) noexcept;
  static Status status_of(const LockRequest& request) noexcept {
    if (request.failure != Status::ok) return request.failure;
    return request.after_death ? Status::holder_died : Status::ok;
  }

  Status lock(int home, std::uint32_t number, LockMode mode) noexcept;
  Status try_lock(int home, std::uint32_t number, LockMode mode) noexcept;
  Status lock_for(std::chrono::nanoseconds limit, int home, std::uint32_t number) noexcept;
  Status unlock(int home, std::uint32_t number) noexcept;

 private:
  /// The home may be dead or have freed its part: ranks that hold or await its locks still pass them on.
  Status find(int home, std::uint32_t number, LocalLock*& lock) noexcept;
  /// The home must be alive, and its part present.
  Status find_home(int home, std::uint32_t number, LocalLock*& lock) noexcept;
  [[nodiscard]] PartState state_of(std::size_t position) const noexcept;
  [[nodiscard]] bool is_remote(std::size_t position) const noexcept {
    return members_.spans_hosts() && engine_.is_remote(members_.rank_of(position));
  }
  static std::uint64_t name_of(int position, std::uint32_t number) noexcept {
    return static_cast<std::uint64_t>(position) << 32 | number;
  }
  void wait_for(LockRequest& request, int home) noexcept;
  void hear_remote_ranks() noexcept;

  fabric::Engine& engine_;
  fabric::SendQueue& send_queue_;
  LockHomes& homes_;
  const Members& members_;
  const Layout& layout_;
  const std::uint32_t window_;
  static constexpr std::uint64_t hear_ns = 5'000;
  std::atomic<std::uint64_t> heard_ns_{0};  // time of the last hear_remote_ranks(); relaxed: it only limits how often
  SpinLock lock_;                           // guards locks_
  std::unordered_map<std::uint64_t, LocalLock> locks_;
};

}  // namespace tonari::window
