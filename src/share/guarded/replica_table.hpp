#pragma once

#include "share/guarded/replica.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace tonari::share {

/// The guarded variables of one rank. They outlive the program's use of them, since others may still ask for the data.
///
/// Threads: any.
class ReplicaTable {
 public:
  ReplicaTable(fabric::Engine& engine, fabric::SendQueue& send_queue)
      : engine_(engine),
        send_queue_(send_queue),
        undelivered_from_(static_cast<std::size_t>(engine.session().size())) {}

  /// One that others do not find yet. By one thread at a time, as the next. Throws std::bad_alloc.
  std::shared_ptr<Replica> make(std::size_t bytes, const GuardedOptions& options);
  /// The one made last, once all ranks have made it. The rest: as Guard::open().
  void open(const std::shared_ptr<Replica>& made, std::span<const std::byte> initial, std::optional<Window> window,
            std::unique_ptr<window::Put> put) noexcept;
  void free(const std::shared_ptr<Replica>& guard) noexcept;
  /// Of what is made from now on: as many as there are ranks tell them one by one. For the benchmark that compares
  /// that.
  void set_branches(std::size_t branches) noexcept { branches_ = branches; }
  /// Of data on one host: `window` stays as long as `needs` says, which is asked now and then.
  void keep(Window&& window, std::function<bool(Window&)> needs);
  /// The job is over: frees all of them. What is heard of them meanwhile is for nobody.
  void end() noexcept;

  void receive(const fabric::Head& head) noexcept;  // by the progress lock's holder, as the next two
  void retry() noexcept;
  [[nodiscard]] bool held_back() const noexcept { return held_.load(std::memory_order_relaxed) != 0; }  // retried
  void died(int rank) noexcept;

 private:
  static constexpr std::size_t undelivered_max = 1 << 16;  // from one rank

  fabric::Engine& engine_;
  fabric::SendQueue& send_queue_;
  std::atomic<std::size_t> held_{0};
  struct Kept {
    Window window;
    std::function<bool(Window&)> needs;
  };
  void free_what_is_over() noexcept;
  /// By who hears of others, and may not be the last to have it: to free it may mean to wait. If nobody needs it, it is
  /// put aside for a thread of the program.
  void let_go(std::uint32_t number, std::shared_ptr<Replica> used) noexcept;
  bool keep_undelivered(const fabric::Head& head) noexcept;
  void drop(const fabric::Head& head) noexcept;

  std::mutex mutex_;                                // of the rest
  std::vector<std::shared_ptr<Replica>> replicas_;  // by number; null: over
  std::vector<fabric::Head> undelivered_;           // for variables that this rank has not made yet
  std::vector<std::size_t> undelivered_from_;       // by rank, how many
  std::vector<int> dead_;                           // before those
  std::vector<std::shared_ptr<Replica>> over_;      // to be freed by a thread of the program, as the next
  std::list<Kept> kept_;
  std::size_t branches_ = branches_usual;  // set by the thread that makes variables
};

}  // namespace tonari::share
