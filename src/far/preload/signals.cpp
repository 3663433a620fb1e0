#include "far/preload/owned_signals.hpp"
#include "preload/exported.hpp"
#include "preload/masks.hpp"
#include "preload/next.hpp"

#include <cerrno>
#include <csignal>

// Where the program's threads serve their own faults, SIGBUS and SIGSYS are blocked in no handler, and their handlers
// are ours (owned_signals.hpp). `action` may be in far memory: it is read here first, where a fault can be served.
extern "C" sighandler_t bsd_signal(int number, sighandler_t handler) noexcept;
TONARI_NEXT(sigaction)
TONARI_NEXT(signal)
TONARI_NEXT(__sysv_signal)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // older programs call them
TONARI_NEXT(sigset)
TONARI_NEXT(sigignore)
#pragma GCC diagnostic pop

namespace {

using namespace tonari::far;
namespace preload = tonari::preload;
namespace next = tonari::preload::next;

// Returns the handler that the program had before.
sighandler_t set_program_handler(int number, sighandler_t handler, int flags) noexcept {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  struct sigaction before {};
  (void)set_program_action(number, &action, &before);
  return before.sa_handler;
}

}  // namespace

int tonari::far::sigaction_of_libc(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  return next::sigaction(signal, action, before);
}

TONARI_EXPORTED int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  if (!preload::faults_signal.load(std::memory_order_relaxed)) return next::sigaction(signal, action, before);
  if (is_owned(signal)) return set_program_action(signal, action, before);
  struct sigaction ours {};
  if (action != nullptr) {
    ours = *action;
    preload::leave_unblocked(ours.sa_mask);
  }
  struct sigaction previous {};
  const int answer =
      next::sigaction(signal, action != nullptr ? &ours : nullptr, before != nullptr ? &previous : nullptr);
  if (before != nullptr && answer == 0) *before = previous;
  return answer;
}

TONARI_EXPORTED sighandler_t signal(int number, sighandler_t handler) noexcept {
  if (!is_owned(number)) return next::signal(number, handler);
  return set_program_handler(number, handler, SA_RESTART);
}
TONARI_EXPORTED sighandler_t bsd_signal(int number, sighandler_t handler) noexcept { return signal(number, handler); }
TONARI_EXPORTED sighandler_t ssignal(int number, sighandler_t handler) noexcept { return signal(number, handler); }

// The handler is called once. `signal` means this function in programs that are compiled for System V or POSIX only.
TONARI_EXPORTED sighandler_t __sysv_signal(int number, sighandler_t handler) noexcept {
  if (!is_owned(number)) return next::__sysv_signal(number, handler);
  return set_program_handler(number, handler, static_cast<int>(SA_RESETHAND) | SA_NODEFER);
}
TONARI_EXPORTED sighandler_t sysv_signal(int number, sighandler_t handler) noexcept {
  return __sysv_signal(number, handler);
}

// SIG_HOLD blocks the signal, which is left out for ours.
TONARI_EXPORTED sighandler_t sigset(int number, sighandler_t handler) noexcept {
  if (handler == SIG_HOLD && preload::serves_faults(number)) {
    struct sigaction now {};
    (void)sigaction(number, nullptr, &now);
    return now.sa_handler;
  }
  return is_owned(number) ? set_program_handler(number, handler, 0) : next::sigset(number, handler);
}

TONARI_EXPORTED int sigignore(int number) noexcept {
  if (!is_owned(number)) return next::sigignore(number);
  (void)set_program_handler(number, SIG_IGN, 0);
  return 0;
}
