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

/// The descriptors that were posted to a queue. One thread at a time *runs* the queue: it executes descriptors, oldest
/// first, until one has to wait. That thread is the poster in post(), a thread that waits for the queue, or else the
/// worker.
///
///   posted --> under way --> [waits for a lock or barrier] --> complete --> returned
///
/// I1  one thread at a time runs the queue, and only it changes the oldest descriptor   try_run: running_
/// I2  a descriptor that was posted while the queue ran is not forgotten: the thread    try_run
///     that stops running looks again
class DescriptorQueue final : public fabric::Watched {
 public:
  DescriptorQueue(std::shared_ptr<WindowState> state, std::atomic<std::uint64_t>* completions) noexcept
      : state_(std::move(state)), completions_(completions) {}

  Status post(std::span<Descriptor> descriptors) noexcept;
  Descriptor* take_complete() noexcept;
  Status take_failure() noexcept;
  /// Returns true if no descriptor is under way.
  [[nodiscard]] bool is_empty() const noexcept;
  [[nodiscard]] WindowState& state() const noexcept { return *state_; }

  enum class Effort : std::uint8_t { short_ones, all };
  /// Runs the queue as far as possible, unless another thread does.
  void try_run(Effort effort) noexcept;
  /// Returns true if running the queue would make progress.
  [[nodiscard]] bool can_run() const noexcept {
    const std::lock_guard guard(lock_);
    return can_run_locked();
  }
  /// Returns true if can_run(), if a descriptor is complete, or if nothing is under way.
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

  std::shared_ptr<WindowState> state_;
  std::atomic<std::uint64_t>* completions_;
  std::atomic<bool> running_{false};
  // For the descriptor that waits; used by the running thread.
  LockRequest request_;
  WindowBarrier::Meeting meeting_;

  mutable SpinLock lock_;             // guards all members below
  Waits waits_ = Waits::for_nothing;  // written by the running thread
  Descriptor* first_ = nullptr;       // descriptors under way
  Descriptor* last_ = nullptr;
  Descriptor* first_complete_ = nullptr;
  Descriptor* last_complete_ = nullptr;
  Status failure_ = Status::ok;
};

/// The thread that runs queues when no other thread does. It starts at the first wake(), and sleeps while all queues
/// are empty.
///
/// Threads: any.
class Worker {
 public:
  explicit Worker(fabric::Engine& engine) noexcept : engine_(engine) {}
  ~Worker();
  /// Lets the worker run `work`. Throws std::bad_alloc.
  void enter(DescriptorQueue& work);
  /// Announces that there is something to run. Returns false if the thread could not be started.
  bool wake() noexcept;
  /// Returns once the worker does not run `work` and will not run it again.
  void leave(const DescriptorQueue& work) noexcept;

 private:
  struct Round;
  void run() noexcept;
  [[nodiscard]] DescriptorQueue* begin(std::size_t index) noexcept;
  [[nodiscard]] bool end(const DescriptorQueue& work) noexcept;

  fabric::Engine& engine_;
  std::mutex mutex_;  // guards the next three members
  std::vector<DescriptorQueue*> works_;
  const DescriptorQueue* runs_ = nullptr;
  std::thread thread_;
  std::atomic<std::uint32_t> changes_{0};  // futex that counts changes; release: works_ and posted descriptors
  std::atomic<bool> stopping_{false};
};

}  // namespace tonari::window
