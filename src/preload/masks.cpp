#include "preload/masks.hpp"

#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/unreached.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <cstring>

// Wraps the calls that block signals: SIGBUS and SIGSYS stay unblocked where they serve page faults. Masks are copied
// to local memory; for the rest, calls are repeated if they meet absent memory, as in repeating.cpp.
TONARI_NEXT(sigprocmask)
TONARI_NEXT(pthread_sigmask)
TONARI_NEXT(pthread_attr_setsigmask_np)
TONARI_NEXT(sigsuspend)
TONARI_NEXT(ppoll)
TONARI_NEXT(pselect)
TONARI_NEXT(epoll_pwait)
TONARI_NEXT(epoll_pwait2)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // older programs call them
TONARI_NEXT(sigblock)
TONARI_NEXT(sigsetmask)
TONARI_NEXT(sighold)
#pragma GCC diagnostic pop

using namespace tonari::preload;

namespace tonari::preload {

constinit std::atomic<bool> faults_signal{false};

}  // namespace tonari::preload

namespace {

template <class Value>
Room room(Value* start) {
  return {start, start != nullptr ? sizeof(Value) : 0};
}

template <class Call>
int change_mask(Call& call, int how, const sigset_t* set, sigset_t* before) noexcept {
  const Mask mask(set, how);
  sigset_t copy;
  const int answer = call(how, mask.get(), before != nullptr ? &copy : nullptr);
  if (before != nullptr && answer == 0) std::memcpy(before, &copy, set_bytes);
  return answer;
}

// A mask of BSD has one bit for each of the first 32 signals.
int without_faults(int mask) noexcept {
  if (!faults_signal.load(std::memory_order_relaxed)) return mask;
  auto left = static_cast<unsigned>(mask);
  for (const int signal : fault_signals) left &= ~(1U << (signal - 1));
  return static_cast<int>(left);
}

}  // namespace

TONARI_EXPORTED int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return change_mask(next::sigprocmask, how, set, before);
}

TONARI_EXPORTED int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return change_mask(next::pthread_sigmask, how, set, before);
}

TONARI_EXPORTED int sigblock(int mask) noexcept { return next::sigblock(without_faults(mask)); }

TONARI_EXPORTED int sigsetmask(int mask) noexcept { return next::sigsetmask(without_faults(mask)); }

TONARI_EXPORTED int sighold(int signal) noexcept { return serves_faults(signal) ? 0 : next::sighold(signal); }

TONARI_EXPORTED int pthread_attr_setsigmask_np(pthread_attr_t* attributes, const sigset_t* set) {
  const Mask mask(set);
  return next::pthread_attr_setsigmask_np(attributes, mask.get());
}

TONARI_EXPORTED int sigsuspend(const sigset_t* set) {
  const Mask mask(set);
  return next::sigsuspend(mask.get());
}

TONARI_EXPORTED int ppoll(pollfd* set, nfds_t count, const timespec* timeout, const sigset_t* blocked) {
  const Mask mask(blocked);
  return repeated([&] { return next::ppoll(set, count, timeout, mask.get()); }, Room{set, count * sizeof(pollfd)});
}

TONARI_EXPORTED int pselect(int count, fd_set* reads, fd_set* writes, fd_set* others, const timespec* timeout,
                            const sigset_t* blocked) {
  const Mask mask(blocked);
  return repeated([&] { return next::pselect(count, reads, writes, others, timeout, mask.get()); }, room(reads),
                  room(writes), room(others));
}

TONARI_EXPORTED int epoll_pwait(int file, epoll_event* to, int count, int timeout_ms, const sigset_t* blocked) {
  const Mask mask(blocked);
  return repeated([&] { return next::epoll_pwait(file, to, count, timeout_ms, mask.get()); },
                  Room{to, static_cast<unsigned>(count) * sizeof(epoll_event)});
}

TONARI_EXPORTED int epoll_pwait2(int file, epoll_event* to, int count, const timespec* timeout,
                                 const sigset_t* blocked) {
  const Mask mask(blocked);
  return repeated([&] { return next::epoll_pwait2(file, to, count, timeout, mask.get()); },
                  Room{to, static_cast<unsigned>(count) * sizeof(epoll_event)},
                  Bytes{timeout, timeout != nullptr ? sizeof *timeout : 0});
}
