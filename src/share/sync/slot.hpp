#pragma once

#include "share/share_runtime.hpp"
#include "share/shared_memory.hpp"
#include "share/sync/slots.hpp"

#include <tonari/address.hpp>
#include <tonari/job.hpp>
#include <tonari/window.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace tonari::share {

/// The slot of a mutex, a flag or a counter: a lock and a word, initially 0, of the window for synchronisation. Made
/// collectively. Consecutive slots are at consecutive ranks, until slots are reused.
class SyncSlot {
 public:
  explicit SyncSlot(Job& job)
      : shared_memory_(ShareRuntime::of(job.session()).sharing(job)),
        slots_(shared_memory_.slots()),
        number_(shared_memory_.take_slot()),
        home_(static_cast<int>(number_ % static_cast<std::uint32_t>(job.size()))),
        index_(number_ / static_cast<std::uint32_t>(job.size())),
        rank_(job.rank().value()),
        flags_(ShareRuntime::of(job.session()).flags()) {}
  SyncSlot(SyncSlot&&) = delete;
  ~SyncSlot() { slots_->give_back(number_); }

  [[nodiscard]] SharedMemory& sharing() const noexcept { return shared_memory_; }
  [[nodiscard]] Window& window() const noexcept { return shared_memory_.window(); }
  [[nodiscard]] int home() const noexcept { return home_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] std::uint32_t index() const noexcept {
    return index_;
  }  ///< Number at its home; also the lock's number.
  [[nodiscard]] GlobalAddress word() const noexcept { return window().at(JobRank{home_}, index_ * slot_bytes); }
  [[nodiscard]] FlagHome& flags() const noexcept { return flags_; }  ///< This rank's.
  /// Number of times that this rank holds the lock. Only in builds with assertions; relaxed.
  [[nodiscard]] std::atomic<int>& holds() noexcept { return holds_; }

 private:
  SharedMemory& shared_memory_;
  std::shared_ptr<SyncSlots> slots_;  // kept alive: this slot may outlive the job
  std::uint32_t number_;
  int home_;
  std::uint32_t index_;
  int rank_;
  FlagHome& flags_;
  std::atomic<int> holds_{0};
};

}  // namespace tonari::share
