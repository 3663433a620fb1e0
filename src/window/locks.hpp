#pragma once

#include "base/lock.hpp"
#include "fabric/engine.hpp"
#include "window/layout.hpp"
#include "window/lock_side.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <unordered_map>

namespace tonari::window {

/// A thread's request for a lock, or a descriptor's. In its queue from begin() until it is granted or given up.
struct LockRequest {
  LockMode mode = LockMode::exclusive;
  std::atomic<bool> granted{false};  // release: what the last holder wrote; by whichever thread moves the lock on
  bool after_death = false;          // published by `granted`
  class LocalLock* lock = nullptr;
  LockRequest* next = nullptr;
};

/// Who the ranks of a window are to its locks: positions in its group.
struct LockGroup {
  fabric::Engine* engine;
  const Group* group;

  [[nodiscard]] bool alive(int position) const noexcept { return engine->session().alive(group->at(position)); }
  void wake(int position) const noexcept { engine->wake_if_asleep(group->at(position)); }
};

/// A lock of a window as one rank uses it: its threads queue here, and the first of them asks for the rank.
class LocalLock {
 public:
  LocalLock(fabric::Engine& engine, LockMemory& memory, const Group& group, std::size_t self) noexcept
      : engine_(engine), side_(memory, group.size(), static_cast<int>(self), {&engine, &group}) {}

  void begin(LockRequest& request) noexcept;
  bool try_at_once(LockRequest& request) noexcept;
  /// Moves the lock on. True once the request is granted.
  bool step(const LockRequest& request) noexcept;
  [[nodiscard]] bool ready(const LockRequest& request) noexcept;
  /// Takes the request back; false: it has been granted.
  bool give_up(LockRequest& request) noexcept;
  /// False: this rank does not hold it.
  bool unlock() noexcept;

 private:
  bool advance() noexcept;
  [[nodiscard]] bool may_share(LockMode mode) const noexcept;
  void grant_first(bool after_death) noexcept;
  void remove(LockRequest& request) noexcept;

  fabric::Engine& engine_;
  SpinLock lock_;  // of the rest
  LockSide<LockGroup> side_;
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

  /// Begins a request; then it is to be stepped until granted, and its status asked for. Answers ok, bounds, peer_gone,
  /// no_memory.
  Status begin(LockRequest& request, int home, std::uint32_t number, LockMode mode) noexcept;
  static Status status_of(const LockRequest& request) noexcept {
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

  fabric::Engine& engine_;
  const Layout& layout_;
  const Group& group_;
  std::size_t self_;
  SpinLock lock_;  // of the next
  std::unordered_map<std::uint64_t, LocalLock> locks_;
};

}  // namespace tonari::window
