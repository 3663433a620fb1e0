#include "base/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace tonari {

// The kernel reads the word as four plain bytes, so the atomic must consist of exactly these.
static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

// FUTEX_WAIT and FUTEX_WAKE are called without the private flag, because the word may be in memory that several
// processes share. ThreadSanitizer sees no ordering through a futex. It needs none: the ordering comes from the word,
// which is atomic.

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds timeout) noexcept {
  if (timeout <= std::chrono::nanoseconds::zero()) return;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(timeout);
  const timespec limit{.tv_sec = static_cast<time_t>(seconds.count()),
                       .tv_nsec = static_cast<long>((timeout - seconds).count())};
  const int error = errno;
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
  errno = error;  // woken, changed before, interrupted or timed out: in each case the caller reads the word again
}

void futex_wake(const std::atomic<std::uint32_t>& word, int threads) noexcept {
  const int error = errno;
  ::syscall(SYS_futex, &word, FUTEX_WAKE, threads, nullptr, nullptr, 0);
  errno = error;
}

}  // namespace tonari
