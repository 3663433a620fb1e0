#pragma once

#include "base/lock.hpp"
#include "fabric/waitable.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

namespace tonari::fabric {

/// The lock of a rank whose holder polls for all threads of the rank. The others sleep beside the holder until their
/// own waits are over, or until the holder leaves and passes the lock on. The lock is a word in the rank's block, so
/// that peers see whether a thread of the rank polls:
///
///   bits  31-1                                      0
///         number of threads that sleep beside it    held
///
/// Threads: any.
/// Costs:   taking and dropping it is one read-modify-write each.
class ProgressLock {
 public:
  explicit ProgressLock(std::atomic<std::uint32_t>& word) noexcept : word_(word) {}

  /// Whether the rank with this word has a thread that polls.
  [[nodiscard]] static bool is_held(const std::atomic<std::uint32_t>& word,
                                    std::memory_order order = std::memory_order_relaxed) noexcept {
    return (word.load(order) & held) != 0;
  }
  [[nodiscard]] bool is_held(std::memory_order order = std::memory_order_relaxed) const noexcept {
    return is_held(word_, order);
  }

  /// Returns false if another thread holds it.
  [[nodiscard]] bool try_take() noexcept {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    // Sequentially consistent with Engine::wake_self(). This also acquires the writes of the last holder: pairs with
    // drop().
    return (seen & held) == 0 && word_.compare_exchange_strong(seen, seen | held, std::memory_order_seq_cst);
  }
  /// Called by the holder. If it is `leaving`, it passes the lock on to a thread that sleeps beside it.
  void drop(bool leaving) noexcept {
    if (word_.fetch_sub(held, std::memory_order_release) != held && leaving) [[unlikely]]
      pass_on_slow();
  }
  /// Passes the lock on if no thread holds it. Called at the end of a wait, since the lock may have been passed on to
  /// this thread although its wait was over.
  void pass_on_if_free() noexcept {
    const std::uint32_t seen = word_.load(std::memory_order_relaxed);
    if ((seen & held) == 0 && seen != 0) [[unlikely]]
      pass_on_slow();
  }

  /// Counts the calling thread, while this exists, as one that sleeps beside the holder: a holder that leaves later
  /// passes the lock on.
  class SleeperRegistration {
   public:
    explicit SleeperRegistration(ProgressLock& lock) noexcept
        : lock_(lock),
          sleeper_(lock.register_sleeper()),
          is_held_((lock.word_.fetch_add(one_sleeper, std::memory_order_acq_rel) & held) != 0) {}
    SleeperRegistration(SleeperRegistration&&) = delete;
    ~SleeperRegistration() {
      lock_.unregister_sleeper(sleeper_);
      lock_.word_.fetch_sub(one_sleeper, std::memory_order_acq_rel);
    }
    [[nodiscard]] Sleeper& sleeper() noexcept { return *sleeper_; }
    /// Whether the lock was held when this was made. If not, the thread must not sleep: no holder would wake it.
    [[nodiscard]] bool is_held() const noexcept { return is_held_; }

   private:
    ProgressLock& lock_;
    Sleeper* sleeper_;
    bool is_held_;
  };

 private:
  static constexpr std::uint32_t held = 1;
  static constexpr std::uint32_t one_sleeper = 2;

  Sleeper* register_sleeper() noexcept;
  void unregister_sleeper(Sleeper* sleeper) noexcept;
  [[gnu::cold]] void pass_on_slow() noexcept;

  std::atomic<std::uint32_t>& word_;
  SpinLock sleepers_lock_;         // guards the rest
  std::deque<Sleeper> sleepers_;   // all that were ever used
  std::vector<Sleeper*> free_;     // sleepers that no thread uses
  std::vector<Sleeper*> waiting_;  // threads to which the lock may be passed on, the longest waiting first
};

}  // namespace tonari::fabric
