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

/// The guarded variables of one rank. They outlive the program's use, since other ranks may still need the data.
///
/// Threads: any.
class ReplicaTable {
 public:
  ReplicaTable(fabric::Engine& engine, fabric::SendQueue& send_queue)
      : engine_(engine),
        send_queue_(send_queue),
        held_(engine.handlers()),
        undelivered_from_(static_cast<std::size_t>(engine.session().size())) {}

  /// Makes a variable that messages do not find yet. One thread at a time, like open(). Throws std::bad_alloc.
  std::shared_ptr<Replica> make(std::size_t bytes, const GuardedOptions& options);
  /// Opens the variable that was made last, once all ranks have made it. The other arguments are
  /// Replica::open()'s.
  void open(const std::shared_ptr<Replica>& made, std::span<const std::byte> initial, std::optional<Window> window,
            std::unique_ptr<window::Put> put) noexcept;
  void free(const std::shared_ptr<Replica>& guard) noexcept;
  /// Sets the number of branches of variables made from now on. As many as ranks: each rank is told one by one. For the
  /// benchmark that compares both.
  void set_branches(std::size_t branches) noexcept { branches_ = branches; }
  /// Keeps the window of data on one host for as long as needs() returns true; calls it now and then.
  void keep(Window&& window, std::function<bool(Window&)> needs);
  /// Frees all variables at the end of the job. Messages to them that arrive meanwhile are dropped.
  void end() noexcept;

  void receive(const fabric::Head& head) noexcept;  // called by the holder of the progress lock, like the next two
  void retry() noexcept;
  [[nodiscard]] bool held_back() const noexcept { return !held_.is_zero(); }  // then call retry()
  void died(int rank) noexcept;

 private:
  static constexpr std::size_t undelivered_max = 1 << 16;  // heads from one rank

  fabric::Engine& engine_;
  fabric::SendQueue& send_queue_;
  fabric::HeldBack held_;  // variables with something to send
  struct Kept {
    Window window;
    std::function<bool(Window&)> needs;
  };
  void free_what_is_over() noexcept;
  /// Gives up a reference that message handling has used. That thread must not free a variable, since this may wait: if
  /// no rank needs it, it is put aside for a thread of the program.
  void let_go(std::uint32_t number, std::shared_ptr<Replica> used) noexcept;
  bool keep_undelivered(const fabric::Head& head) noexcept;
  void drop(const fabric::Head& head) noexcept;

  std::mutex mutex_;                                // protects the rest
  std::vector<std::shared_ptr<Replica>> replicas_;  // by number; null: freed
  std::vector<fabric::Head> undelivered_;           // for variables that this rank has not made yet
  std::vector<std::size_t> undelivered_from_;       // their number, by rank
  std::vector<int> dead_;                           // ranks that died before these heads were delivered
  std::vector<std::shared_ptr<Replica>> over_;      // to be freed by a thread of the program, like kept_
  std::list<Kept> kept_;
  std::size_t branches_ = branches_usual;  // set by the thread that makes variables
};

}  // namespace tonari::share
