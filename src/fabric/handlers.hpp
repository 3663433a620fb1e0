#pragma once

#include "fabric/head.hpp"
#include "job/session.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
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
  /// Whether retry() would find something to do. Polls ask only while a HeldBack of the rank is not zero.
  [[nodiscard]] virtual bool held_back() const noexcept = 0;
  /// Does work that can wait until there is nothing else to do. Called by the holder of the progress lock.
  virtual void idle() noexcept = 0;
  /// `rank` has died: every operation that needs it must fail. Called by the service thread.
  virtual void died(int rank) noexcept = 0;
  /// `rank` is leaving: it completes operations that have begun, and begins no others. Called by the service thread.
  virtual void left(int rank) noexcept = 0;
  /// Does the work that heads have asked for and that may touch the program's memory. Called without any lock, by any
  /// thread in the library, while add_deferred_work() has been called more often than finish_deferred_work().
  virtual void run_deferred_work() noexcept {}
};

/// The handlers of a rank, one per protocol, and what they have to do. Heads and deaths that arrive before a handler is
/// registered are kept for it.
///
/// Threads: hand_up(), deliver_undelivered(), retry() and idle(): the holder of the progress lock. The rest: any.
/// Costs:   retry() and run_deferred_work() are one load each if there is nothing to do.
class Handlers {
 public:
  explicit Handlers(job::Session& session) noexcept : session_(session) {}

  /// Returns the handler of `protocol`, made by `make()` and registered on first use.
  template <class T, class Make>
  T& get(Protocol protocol, Make make) {
    const auto index = static_cast<std::size_t>(protocol);
    const std::lock_guard guard(mutex_);
    if (!owned_[index]) add(index, make());
    return static_cast<T&>(*owned_[index]);
  }
  [[nodiscard]] bool any() const noexcept;

  /// Hands heads up in the order in which they arrived. `own(head)` handles the heads of Protocol::fabric.
  template <class Own>
  void hand_up(std::span<const Head> heads, Own&& own) noexcept {
    while (!heads.empty()) {
      const Protocol protocol = heads.front().kind.protocol();
      const auto end =
          std::ranges::find_if(heads, [protocol](const Head& head) { return head.kind.protocol() != protocol; });
      const auto count = static_cast<std::size_t>(end - heads.begin());
      if (protocol != Protocol::fabric) {
        hand_up_to(static_cast<std::size_t>(protocol), heads.first(count));
      } else {
        for (const Head& head : heads.first(count)) own(head);
      }
      heads = heads.subspan(count);
    }
  }
  /// Hands up the heads for handlers that have been registered since their arrival.
  void deliver_undelivered() noexcept {
    if (has_undelivered_) [[unlikely]]
      deliver_undelivered_slow();
  }

  /// Has the handlers repeat what they hold back.
  void retry() noexcept {
    if (held_back_.load(std::memory_order_seq_cst) != 0) [[unlikely]]  // order: see HeldBack
      retry_slow();
  }
  /// Whether retry() would find something to do.
  [[nodiscard]] bool held_back() const noexcept;
  void idle() noexcept;

  /// Announces work for the run_deferred_work() of a handler, which the caller has stored before.
  void add_deferred_work() noexcept {
    deferred_work_.fetch_add(1, std::memory_order_release);
  }  // release: with the work itself
  void finish_deferred_work() noexcept { deferred_work_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] bool has_deferred_work() const noexcept { return deferred_work_.load(std::memory_order_relaxed) != 0; }
  void run_deferred_work() noexcept {
    if (deferred_work_.load(std::memory_order_acquire) != 0) [[unlikely]]
      run_deferred_work_slow();
  }

  /// Tells all handlers that `rank` has died or is leaving: `event` is ProtocolHandler::died or left. Handlers that are
  /// registered later are told too. Called by the service thread.
  void tell(int rank, void (ProtocolHandler::*event)(int) noexcept) noexcept;

 private:
  friend class HeldBack;
  struct Gone {
    int rank;
    void (ProtocolHandler::*event)(int) noexcept;
  };

  void add(std::size_t index, std::unique_ptr<ProtocolHandler> handler);  // with mutex_ held
  void hand_up_to(std::size_t index, std::span<const Head> heads) noexcept {
    ProtocolHandler* const handler = handlers_[index].load(std::memory_order_acquire);
    std::vector<Head>& undelivered = undelivered_[index];
    if (handler != nullptr && undelivered.empty()) [[likely]] {  // else these would overtake the undelivered heads
      handler->receive(heads);
    } else {
      undelivered.insert(undelivered.end(), heads.begin(), heads.end());
      has_undelivered_ = true;
    }
  }
  [[gnu::cold]] void deliver_undelivered_slow() noexcept;
  [[gnu::cold]] void retry_slow() noexcept;
  [[gnu::cold]] void run_deferred_work_slow() noexcept;
  template <class Visit>
  void for_each(Visit visit) noexcept {
    for (auto& slot : handlers_) {
      ProtocolHandler* const handler = slot.load(std::memory_order_acquire);
      if (handler != nullptr) visit(*handler);
    }
  }

  job::Session& session_;
  std::array<std::atomic<ProtocolHandler*>, handlers_count> handlers_{};
  std::atomic<std::uint32_t> held_back_{0};  // sum of all HeldBack of the rank
  std::atomic<std::uint32_t> deferred_work_{0};
  // Used by the holder of the progress lock: heads for handlers that are not registered yet, and whether there are any.
  bool has_undelivered_ = false;
  std::array<std::vector<Head>, handlers_count> undelivered_;

  std::mutex mutex_;        // guards the rest
  std::vector<Gone> gone_;  // deaths and departures so far
  // Last member: it ends first, since handlers may poll while they end.
  std::array<std::unique_ptr<ProtocolHandler>, handlers_count> owned_;
};

/// Number of things that one part of a handler holds back, for which retry() has to be called: sends without room, for
/// example. While it is not zero, each poll asks all handlers of the rank.
///
/// add() is sequentially consistent with Handlers::retry(). A thread that adds something calls Engine::wake_self()
/// afterwards: either the holder of the progress lock retries after the addition, or the thread finds that the lock is
/// held and rings the holder's doorbell.
///
/// Threads: any.
class HeldBack {
 public:
  explicit HeldBack(Handlers& handlers) noexcept : of_rank_(handlers.held_back_) {}

  [[nodiscard]] bool is_zero() const noexcept { return own_.load(std::memory_order_seq_cst) == 0; }
  /// Call after the thing has been stored, or with the lock held that retry() takes.
  void add(std::uint32_t count = 1) noexcept {
    own_.fetch_add(count, std::memory_order_seq_cst);
    of_rank_.fetch_add(count, std::memory_order_seq_cst);  // last: a thread that sees it sees own_
  }
  void remove(std::uint32_t count = 1) noexcept {
    own_.fetch_sub(count, std::memory_order_relaxed);
    of_rank_.fetch_sub(count, std::memory_order_relaxed);
  }
  /// For a part whose count changes only with a lock of that part held.
  void set(std::size_t count) noexcept {
    const auto now = static_cast<std::uint32_t>(count);
    const std::uint32_t before = own_.load(std::memory_order_relaxed);
    if (now > before) add(now - before);
    if (now < before) remove(before - now);
  }

 private:
  std::atomic<std::uint32_t> own_{0};
  std::atomic<std::uint32_t>& of_rank_;
};

}  // namespace tonari::fabric
