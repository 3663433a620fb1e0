#pragma once

#include <pthread.h>
#include <signal.h>

namespace tonari::job {

/// Blocks all signals of the calling thread while it lives, so that a thread started meanwhile never gets one.
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

}  // namespace tonari::job
