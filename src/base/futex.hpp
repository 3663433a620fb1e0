#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tonari {

/// Sleeps while `word` holds `seen`, at most `timeout`. Works between processes that map the word. May return early.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds timeout) noexcept;

/// Wakes up to `threads` sleepers of `word`.
void futex_wake(const std::atomic<std::uint32_t>& word, int threads) noexcept;

/// Changes `word` and wakes everyone who sleeps on it.
inline void ring_doorbell(std::atomic<std::uint32_t>& word) noexcept {
  word.fetch_add(1, std::memory_order_release);
  futex_wake(word, 0x7fffffff);
}

}  // namespace tonari
