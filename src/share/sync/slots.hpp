#pragma once

#include <tonari/message.hpp>
#include <tonari/window.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tonari::share {

inline constexpr std::uint32_t slots_per_rank = 4096;
inline constexpr std::uint64_t slot_bytes = 64;  // one cache line per slot: its word,
inline constexpr std::uint64_t awaited_at = 8;   // and a mark: 1 from the first wait of a rank of another host on
inline std::atomic_ref<std::uint64_t> atomic_word(std::byte* at) noexcept {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at));
}

/// The slots of mutexes, flags and counters: slot i is at rank i % ranks. All ranks make these objects in the same
/// order, so all take the same slots: first unused ones, then slots that renew() has found.
///
/// A slot is reused only if every rank has destroyed its object, as an all-reduce finds out. So all uses of the old
/// object come before renew(). The home sets the word to 0 between the all-reduce and a barrier, which comes before all
/// new uses. The slot's lock is free, or an unlock is still on its way to the home.
///
/// Threads: give_back(): any. take(): collective.
class SyncSlots {
 public:
  explicit SyncSlots(int ranks);

  /// Throws SetupError if no slot is left, or if a rank died while ranks looked for slots to reuse.
  std::uint32_t take(Communicator& ranks, Window& window);
  void give_back(std::uint32_t slot) noexcept;

  /// Returns the number of slots taken so far.
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }

 private:
  void renew(Communicator& ranks, Window& window);

  const std::uint32_t most_;
  std::uint64_t taken_ = 0;
  std::vector<std::uint32_t> renewed_{};  // the last element is taken next
  std::mutex mutex_;                      // protects given_
  std::vector<std::uint64_t> given_{};    // one bit per slot taken so far: it was given back
};

}  // namespace tonari::share
