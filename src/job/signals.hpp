#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace tonari::job {

/// Blocks all signals of the calling thread during its lifetime, so that a thread started meanwhile never handles one.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(AllSignalsBlocked&&) = delete;

 private:
  sigset_t before_;
};

/// During its lifetime, growing a file beyond `ulimit -f` in the calling thread fails with EFBIG, which can be
/// reported. Without it, SIGXFSZ ends the program with no message.
class FileSizeSignalHeld {
 public:
  FileSizeSignalHeld() noexcept {
    ::sigemptyset(&it_);
    ::sigaddset(&it_, SIGXFSZ);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGXFSZ) == 1;
    ::pthread_sigmask(SIG_BLOCK, &it_, &before_);
  }
  ~FileSizeSignalHeld() {
    constexpr timespec at_once{};
    if (!was_pending_) ::sigtimedwait(&it_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  FileSizeSignalHeld(FileSizeSignalHeld&&) = delete;

 private:
  sigset_t it_;
  sigset_t before_;
  bool was_pending_;  // the signal was pending before, for another reason, and must stay pending
};

}  // namespace tonari::job
