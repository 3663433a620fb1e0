#include "preload/masks.hpp"

#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/unreached.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

// Wraps the calls that block signals: SIGBUS stays unblocked where it serves page faults. They are repeated if they
// meet absent memory, as the calls in repeating.cpp are.
TONARI_NEXT(sigprocmask)
TONARI_NEXT(pthread_sigmask)
TONARI_NEXT(sigsuspend)
TONARI_NEXT(ppoll)
TONARI_NEXT(pselect)
TONARI_NEXT(epoll_pwait)

using namespace tonari::preload;

namespace tonari::preload {

constinit std::atomic<bool> faults_signal{false};

}  // namespace tonari::preload

namespace {

template <class Value>
Bytes value(const Value* start) {
  return {start, start != nullptr ? sizeof(Value) : 0};
}
template <class Value>
Room room(Value* start) {
  return {start, start != nullptr ? sizeof(Value) : 0};
}

}  // namespace

TONARI_EXPORTED int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  const Mask mask(how == SIG_UNBLOCK ? nullptr : set);
  const sigset_t* const blocked = how == SIG_UNBLOCK ? set : mask.get();
  return repeated([&] { return next::sigprocmask(how, blocked, before); }, value(blocked), room(before));
}

// Returns an error number, and leaves errno alone: absent memory is touched before the call.
TONARI_EXPORTED int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  const Mask mask(how == SIG_UNBLOCK ? nullptr : set);
  sigset_t copy;
  const int answer =
      next::pthread_sigmask(how, how == SIG_UNBLOCK ? set : mask.get(), before != nullptr ? &copy : nullptr);
  if (before != nullptr && answer == 0) *before = copy;
  return answer;
}

TONARI_EXPORTED int sigsuspend(const sigset_t* set) {
  const Mask mask(set);
  return repeated([&] { return next::sigsuspend(mask.get()); }, value(mask.get()));
}

TONARI_EXPORTED int ppoll(pollfd* set, nfds_t count, const timespec* timeout, const sigset_t* blocked) {
  const Mask mask(blocked);
  return repeated([&] { return next::ppoll(set, count, timeout, mask.get()); }, Room{set, count * sizeof(pollfd)},
                  value(mask.get()));
}

TONARI_EXPORTED int pselect(int count, fd_set* reads, fd_set* writes, fd_set* others, const timespec* timeout,
                            const sigset_t* blocked) {
  const Mask mask(blocked);
  return repeated([&] { return next::pselect(count, reads, writes, others, timeout, mask.get()); }, room(reads),
                  room(writes), room(others), value(mask.get()));
}

TONARI_EXPORTED int epoll_pwait(int file, epoll_event* to, int count, int timeout_ms, const sigset_t* blocked) {
  const Mask mask(blocked);
  return repeated([&] { return next::epoll_pwait(file, to, count, timeout_ms, mask.get()); },
                  Room{to, static_cast<unsigned>(count) * sizeof(epoll_event)}, value(mask.get()));
}
