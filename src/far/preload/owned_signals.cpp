#include "far/preload/owned_signals.hpp"

#include "preload/lock.hpp"
#include "preload/masks.hpp"
#include "preload/system_calls.hpp"

#include <ucontext.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace tonari::far {

namespace {

using preload::Guard;
using preload::system_call;

struct Owned {
  int signal;
  SignalHandler handler = nullptr;     // ours
  std::atomic<bool> is_owned = false;  // relaxed: set before the first signal that the program could ask about
  preload::Lock lock{};
  struct sigaction program {};  // under `lock`
};
constinit std::array<Owned, 2> all_owned{Owned{.signal = SIGBUS}, Owned{.signal = SIGSYS}};

Owned& owned(int signal) noexcept { return all_owned[signal == SIGBUS ? 0 : 1]; }

// Calls the program's handler with the signals blocked that the kernel would block, except SIGBUS and SIGSYS.
template <class Handler>
void call_handler(const struct sigaction& action, const void* context, Handler handler) {
  sigset_t blocked = static_cast<const ucontext_t*>(context)->uc_sigmask;
  for (int signal = 1; signal < NSIG; ++signal) {
    if (::sigismember(&action.sa_mask, signal) == 1) ::sigaddset(&blocked, signal);
  }
  preload::leave_unblocked(blocked);
  (void)system_call(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, nullptr, preload::set_bytes);
  handler();
}

}  // namespace

int own_signal(int signal, SignalHandler handler, int flags, Blocks blocks) noexcept {
  Owned& mine = owned(signal);
  struct sigaction ours {};
  ours.sa_sigaction = handler;
  ours.sa_flags = SA_SIGINFO | flags;
  // All of them: sigfillset() leaves out the signal with which libc cancels threads.
  if (blocks == Blocks::all_signals) std::memset(&ours.sa_mask, 0xff, sizeof ours.sa_mask);
  mine.handler = handler;
  // First: an action that another thread sets meanwhile is kept aside.
  mine.is_owned.store(true, std::memory_order_relaxed);
  struct sigaction before {};
  if (sigaction_of_libc(signal, &ours, &before) != 0) {
    mine.is_owned.store(false, std::memory_order_relaxed);
    return errno;
  }
  const bool was_ours = (before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction == handler;
  const Guard guard(mine.lock);
  if (!was_ours && mine.program.sa_handler == SIG_DFL) mine.program = before;
  return 0;
}

bool is_owned(int signal) noexcept {
  return (signal == SIGBUS || signal == SIGSYS) && owned(signal).is_owned.load(std::memory_order_relaxed);
}

// The program's memory may be absent, and no fault can be served while the lock is held.
int set_program_action(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  Owned& mine = owned(signal);
  struct sigaction wanted {};
  struct sigaction previous {};
  if (action != nullptr) wanted = *action;
  {
    const Guard guard(mine.lock);
    previous = mine.program;
    if (action != nullptr) mine.program = wanted;
  }
  if (before != nullptr) *before = previous;
  return 0;
}

void act_as_program(int signal, siginfo_t* info, void* context) {
  Owned& mine = owned(signal);
  struct sigaction action {};
  {
    const Guard guard(mine.lock);
    action = mine.program;
    if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) mine.program = {};
  }
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    return call_handler(action, context, [&] { action.sa_sigaction(signal, info, context); });
  }
  if (action.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
    return call_handler(action, context, [&] { action.sa_handler(signal); });
  }
  // Does what the kernel would: a fault is repeated, and ends the process; any other signal is sent again.
  struct sigaction usual {};
  (void)sigaction_of_libc(signal, &usual, nullptr);
  if (info->si_code <= 0 || signal == SIGSYS) (void)::raise(signal);
}

}  // namespace tonari::far
