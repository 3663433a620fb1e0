#pragma once

#include "base/lock.hpp"
#include "fabric/engine.hpp"
#include "window/locks/local_locks.hpp"
#include "window/state/window_state.hpp"

#include <tonari/queue.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tonari::window {

/// What was posted to a queue. Whoever *runs* it executes descriptors, oldest first, until one has to wait: the poster
/// in post(), whoever waits for it, and else the worker.
///
///   posted --> under way --> [waits for a lock or barrier] --> complete --> answered
///
/// I1  one thread at a time runs it, and only that one changes the oldest descriptor          try_run: running_
/// I2  what was posted while somebody ran it is not forgotten: who stops running looks again  try_run
class DescriptorQueue final : public fabric::Watched {
 public:
  DescriptorQueue(std::shared_ptr<WindowState> access, std::atomic<std::uint64_t>* completions) noexcept
      : access_(std::move(access)), completions_(completions) {}

  Status post(std::span<Descriptor> descriptors) noexcept;
  Descriptor* take_complete() noexcept;
  Status take_failure() noexcept;
  /// Nothing is under way.
  [[nodiscard]] bool is_empty() const noexcept;
  [[nodiscard]] WindowState& access() const noexcept { return *access_; }

  enum class Effort : std::uint8_t { short_ones, all };
  /// Runs it as far as it goes, unless somebody does.
  void try_run(Effort effort) noexcept;
  /// Running it would get somewhere.
  [[nodiscard]] bool can_run() const noexcept {
    const std::lock_guard guard(lock_);
    return can_run_locked();
  }
  /// The same, or there is something to answer, or nothing to wait for.
  [[nodiscard]] bool ready() const noexcept override {
    const std::lock_guard guard(lock_);
    return first_complete_ != nullptr || first_ == nullptr || can_run_locked();
  }

 private:
  enum class Waits : std::uint8_t { for_nothing, for_lock, for_barrier };

  [[nodiscard]] bool can_run_locked() const noexcept;
  void run(Effort effort) noexcept;
  [[nodiscard]] Descriptor* oldest() noexcept;
  [[nodiscard]] bool is_long(const Descriptor& descriptor) const noexcept;
  bool execute(Descriptor& descriptor) noexcept;
  bool execute_together(Descriptor& first) noexcept;
  bool resume(Descriptor& descriptor, Waits waited) noexcept;
  bool begin_lock(Descriptor& descriptor) noexcept;
  bool step_lock(Descriptor& descriptor) noexcept;
  bool begin_barrier(Descriptor& descriptor) noexcept;
  bool step_barrier(Descriptor& descriptor) noexcept;
  bool wait_for(Waits what) noexcept;
  Status perform(Descriptor& descriptor) noexcept;
  void complete(Descriptor& descriptor) noexcept;

  std::shared_ptr<WindowState> access_;
  std::atomic<std::uint64_t>* completions_;
  std::atomic<bool> running_{false};
  // Of the descriptor that waits; by who runs it.
  LockRequest request_;
  WindowState::Meeting meeting_;

  mutable SpinLock lock_;             // of the rest
  Waits waits_ = Waits::for_nothing;  // written by who runs it
  Descriptor* first_ = nullptr;       // under way
  Descriptor* last_ = nullptr;
  Descriptor* first_complete_ = nullptr;
  Descriptor* last_complete_ = nullptr;
  Status failure_ = Status::ok;
};

/// The thread that runs queues when nobody else does. Starts when first woken; sleeps while they are all empty.
///
/// Threads: any.
class Worker {
 public:
  explicit Worker(fabric::Engine& engine) noexcept : engine_(engine) {}
  ~Worker();
  /// From now on it may run `work`. Throws std::bad_alloc.
  void enter(DescriptorQueue& work);
  /// There is something to run. False: there can be no thread for it.
  bool wake() noexcept;
  /// Returns once it neither runs `work` nor will.
  void leave(const DescriptorQueue& work) noexcept;

 private:
  struct Round;
  void run() noexcept;
  [[nodiscard]] DescriptorQueue* begin(std::size_t index) noexcept;
  [[nodiscard]] bool end(const DescriptorQueue& work) noexcept;

  fabric::Engine& engine_;
  std::mutex mutex_;  // of the next three
  std::vector<DescriptorQueue*> works_;
  const DescriptorQueue* runs_ = nullptr;
  std::thread thread_;
  std::atomic<std::uint32_t> changes_{0};  // futex, and their count; release: with works_, and what is posted
  std::atomic<bool> stopping_{false};
};

}  // namespace tonari::window
