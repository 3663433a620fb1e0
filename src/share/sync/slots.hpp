#pragma once

#include <tonari/message.hpp>
#include <tonari/window.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tonari::share {

inline constexpr std::uint32_t places_a_rank = 4096;
inline constexpr std::uint64_t place_bytes = 64;  // a cache line each: its word,
inline constexpr std::uint64_t awaited_at = 8;    // and 1 once a rank of another host has waited for that, for ever
inline std::atomic_ref<std::uint64_t> atomic_word(std::byte* at) noexcept {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at));
}

/// Where mutexes, flags and counters lie: place i at rank i % ranks. All ranks make them in the same order, so all take
/// the same places: first those that never were used, then those that renew() has found.
///
/// Used again: only what every rank has destroyed, as their all-reduce says. So all uses of what lay there come before
/// renew(), whenever each rank destroyed it; its home sets the word to 0 between the all-reduce and the barrier, which
/// comes before all new uses. Its lock is free, or becomes so with an unlock that is still on its way home.
///
/// Threads: any may give back; take() is collective.
class SyncSlots {
 public:
  explicit SyncSlots(int ranks);

  /// Throws SetupError: there is none left; or a rank died, when it had to ask the others.
  std::uint32_t take(Communicator& ranks, Window& window);
  void give_back(std::uint32_t place) noexcept;

  /// So many were taken, ever.
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }

 private:
  void renew(Communicator& ranks, Window& window);

  const std::uint32_t most_;
  std::uint64_t taken_ = 0;
  std::vector<std::uint32_t> renewed_{};  // the last one is taken next
  std::mutex mutex_;                      // of the next
  std::vector<std::uint64_t> given_{};    // a bit a place: it is given back; as long as places were taken
};

}  // namespace tonari::share
