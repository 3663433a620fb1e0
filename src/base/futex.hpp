#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tonari {

/// Sleeps while `word` holds `seen`, for at most `timeout`. Works between processes that map the word. May return
/// early.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds timeout) noexcept;

/// Wakes up to `threads` threads that sleep on `word`.
void futex_wake(const std::atomic<std::uint32_t>& word, int threads) noexcept;

/// Changes `word` and wakes all threads that sleep on it.
inline void ring_doorbell(std::atomic<std::uint32_t>& word) noexcept {
  word.fetch_add(1, std::memory_order_release);
  futex_wake(word, 0x7fffffff);
}

}  // namespace tonari
