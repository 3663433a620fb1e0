#pragma once

#include "base/lock.hpp"
#include "fabric/engine.hpp"
#include "job/group.hpp"
#include "window/locks/lock_algorithm.hpp"
#include "window/locks/remote_locks.hpp"
#include "window/remote/copies.hpp"
#include "window/state/layout.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

namespace tonari::window {

/// A thread's request for a lock, or a descriptor's. In its queue from begin() until it is granted or given up.
struct LockRequest {
  LockMode mode = LockMode::exclusive;
  std::atomic<bool> granted{false};  // release: what the last holder wrote; by whichever thread moves the lock on
  bool after_death = false;          // published by `granted`, as the next
  Status failure = Status::ok;       // otherwise: it is over, and not granted
  bool once = false;                 // of a lock of another host: not to wait for others there
  class LocalLock* lock = nullptr;
  LockRequest* next = nullptr;
};

/// A lock of a window as one rank uses it: its threads queue here, and the first of them asks for the rank.
class LocalLock {
 public:
  LocalLock(fabric::Engine& engine, LockMemory& memory, const Group& group, std::size_t self, int home) noexcept
      : engine_(engine),
        side_(std::in_place, memory, group.size(), static_cast<int>(self), LockGroup{&engine, &group, home}) {}
  /// Of a home on another host.
  LocalLock(fabric::Engine& engine, fabric::SendQueue& send_queue, std::uint32_t window, int home,
            std::uint32_t number) noexcept
      : engine_(engine), remote_(std::in_place, engine, send_queue, window, home, number) {}

  void begin(LockRequest& request) noexcept;
  /// True: it is granted. On another host it may have to be stepped first, until granted or over.
  bool try_at_once(LockRequest& request) noexcept;
  [[nodiscard]] bool is_remote() const noexcept { return remote_.has_value(); }
  /// From the home on another host.
  void take(const LockOutcome& outcome) noexcept {
    if (remote_) remote_->take(outcome);
  }
  /// Moves the lock on. True once the request is granted, or over.
  bool step(const LockRequest& request) noexcept;
  [[nodiscard]] bool ready(const LockRequest& request) noexcept;
  /// Takes the request back; false: it has been granted, or will be told so: step it on.
  bool give_up(LockRequest& request) noexcept;
  /// False: this rank does not hold it.
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
  SpinLock lock_;                                 // of the rest
  std::optional<LockAlgorithm<LockGroup>> side_;  // one of these two
  std::optional<RemoteLock> remote_;
  bool asked_ = false;  // side_ has begun a request for the first of the queue
  LockRequest* first_ = nullptr;
  LockRequest** end_ = &first_;
  std::uint32_t holders_ = 0;  // one, or several that share it
  LockMode held_ = LockMode::exclusive;
};

/// All locks of a window that this rank has used.
///
/// Threads: any.
class Locks {
 public:
  Locks(fabric::Engine& engine, const Layout& layout, const Group& group, std::size_t self) noexcept
      : engine_(engine), layout_(layout), group_(group), self_(self) {}
  /// For those of other hosts: what their homes have told, by member, which stays.
  void reach_remote(fabric::SendQueue& send_queue, LockHomes& homes, std::uint32_t window,
                    const RemoteMember* members) noexcept {
    send_queue_ = &send_queue;
    homes_ = &homes;
    window_ = window;
    remote_members_ = members;
  }
  /// From a home on another host.
  void take(int home, const LockOutcome& outcome) noexcept;

  /// Begins a request; then it is to be stepped until granted, and its status asked for. Answers ok, bounds, peer_gone,
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
  /// Of a home that may be gone: its locks are still passed on by those who hold and await them.
  Status find(int home, std::uint32_t number, LocalLock*& lock) noexcept;
  /// Of one that is there.
  Status find_home(int home, std::uint32_t number, LocalLock*& lock) noexcept;
  [[nodiscard]] PartState state_of(std::size_t position) const noexcept;
  [[nodiscard]] bool is_remote(std::size_t position) const noexcept {
    return remote_members_ != nullptr && engine_.is_remote(job::rank_at(group_, static_cast<int>(position)));
  }
  static std::uint64_t name_of(int position, std::uint32_t number) noexcept {
    return static_cast<std::uint64_t>(position) << 32 | number;
  }
  void wait_for(LockRequest& request, int home) noexcept;
  void hear_remote_ranks() noexcept;

  fabric::Engine& engine_;
  const Layout& layout_;
  const Group& group_;
  std::size_t self_;
  fabric::SendQueue* send_queue_ = nullptr;
  LockHomes* homes_ = nullptr;
  std::uint32_t window_ = 0;
  const RemoteMember* remote_members_ = nullptr;  // null: there are none
  static constexpr std::uint64_t hear_ns = 5'000;
  std::atomic<std::uint64_t> heard_ns_{0};  // when, last; relaxed: only that it is not too often
  SpinLock lock_;                           // of the next
  std::unordered_map<std::uint64_t, LocalLock> locks_;
};

}  // namespace tonari::window
