#include "far/preload/owned_signals.hpp"
#include "preload/exported.hpp"
#include "preload/masks.hpp"
#include "preload/next.hpp"

#include <cerrno>
#include <csignal>

// Where the program's threads serve their own faults, SIGBUS and SIGSYS are blocked in no handler, and their handlers
// are ours (owned_signals.hpp). `action` may be in far memory: it is read here first, where a fault can be served.
TONARI_NEXT(sigaction)
TONARI_NEXT(signal)

namespace {

using namespace tonari::far;
namespace preload = tonari::preload;
namespace next = tonari::preload::next;

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
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  struct sigaction before {};
  (void)set_program_action(number, &action, &before);
  return before.sa_handler;
}
