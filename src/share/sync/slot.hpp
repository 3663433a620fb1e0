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

/// Where a mutex, a flag or a counter lies: a lock and a word, 0 at first, of the window for synchronisation. Made
/// collectively. As many as there are ranks, made one after the other, are one at each, until places are used again.
class SyncSlot {
 public:
  explicit SyncSlot(Job& job)
      : shared_memory_(ShareRuntime::of(job.session()).sharing(job)),
        places_(shared_memory_.places()),
        number_(shared_memory_.take_place()),
        home_(static_cast<int>(number_ % static_cast<std::uint32_t>(job.size()))),
        index_(number_ / static_cast<std::uint32_t>(job.size())),
        rank_(job.rank().value()),
        flags_(ShareRuntime::of(job.session()).flags()) {}
  SyncSlot(SyncSlot&&) = delete;
  ~SyncSlot() { places_->give_back(number_); }

  [[nodiscard]] SharedMemory& sharing() const noexcept { return shared_memory_; }
  [[nodiscard]] Window& window() const noexcept { return shared_memory_.window(); }
  [[nodiscard]] int home() const noexcept { return home_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }  ///< Of its home's; also the lock's number.
  [[nodiscard]] GlobalAddress word() const noexcept { return window().at(JobRank{home_}, index_ * place_bytes); }
  [[nodiscard]] FlagHome& flags() const noexcept { return flags_; }  ///< Of this rank.
  /// How often this rank has the lock now; of builds with assertions. Orders nothing.
  [[nodiscard]] std::atomic<int>& holds() noexcept { return holds_; }

 private:
  SharedMemory& shared_memory_;
  std::shared_ptr<SyncSlots> places_;  // which outlives the job, as this may
  std::uint32_t number_;
  int home_;
  std::uint32_t index_;
  int rank_;
  FlagHome& flags_;
  std::atomic<int> holds_{0};
};

}  // namespace tonari::share
