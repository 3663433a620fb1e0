#include "far/preload/lost.hpp"

#include "far/preload/inherited.hpp"

#include <sys/mman.h>

#include <csignal>
#include <string_view>

namespace tonari::far {

namespace {

// The program's own action for SIGSEGV. The handler restores it; the touch is then repeated, or the signal sent again.
constinit struct sigaction before {};

void end_with_message(int signal, siginfo_t* info, void* /*context*/) noexcept {
  constexpr std::string_view message =
      "tonari far: a forked child touched far memory of its parent that it could not inherit: probably it had no "
      "descriptor or no memory left (ulimit -n, ulimit -v)\n";
  if (info->si_code > 0 && is_lost(info->si_addr)) {  // si_code > 0: a fault, not a kill()
    (void)system_call(SYS_write, STDERR_FILENO, message.data(), message.size());
  }
  (void)::sigaction(signal, &before, nullptr);
  if (info->si_code <= 0) (void)::raise(signal);
}

bool has_usual_end(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL;
}
bool is_watched(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == end_with_message;
}

void watch(const struct sigaction& now) noexcept {
  if (is_watched(now)) return;
  before = now;
  struct sigaction ending {};
  ending.sa_sigaction = end_with_message;
  ending.sa_flags = SA_SIGINFO | SA_ONSTACK;
  (void)::sigaction(SIGSEGV, &ending, nullptr);
}

}  // namespace

void lose(Range range) noexcept {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  (void)system_call(SYS_mmap, range.start, range.bytes, PROT_NONE, flags, -1, 0);
  // If there is no room, a touch of it ends the child without a message.
  if (program.lost_count != program.lost.size()) program.lost[program.lost_count++] = range;
  struct sigaction now {};
  if (::sigaction(SIGSEGV, nullptr, &now) == 0) watch(now);
}

// A handler of the program's own stays in place in the parent.
void watch_lost_memory() noexcept {
  struct sigaction now {};
  if (::sigaction(SIGSEGV, nullptr, &now) == 0 && has_usual_end(now)) watch(now);
}

void unwatch_lost_memory() noexcept {
  if (program.lost_count != 0) return;
  struct sigaction now {};
  if (::sigaction(SIGSEGV, nullptr, &now) == 0 && is_watched(now)) (void)::sigaction(SIGSEGV, &before, nullptr);
}

void lose_all() noexcept {
  program.extents.for_each_without(arena(), Extents::is_foreign, lose);
  for (const Range& each : statics()) lose(each);
  (void)for_each_inherited_part(everywhere, [](Inherited&, Range part) {
    lose(part);
    return true;
  });
  program.inherited_count = 0;
  program.inheritance = 0;
}

}  // namespace tonari::far
