#include "far/preload/children.hpp"

#include "far/preload/begin.hpp"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <string_view>

namespace tonari::far {

namespace {

// The program's own action for SIGSEGV. The handler restores it; the touch is then repeated, or the signal sent again.
constinit struct sigaction before {};

void end_with_message(int signal, siginfo_t* info, void* /*context*/) noexcept {
  constexpr std::string_view message =
      "tonari far: a forked child touched far memory of its parent, which children do not have: use posix_spawn or "
      "exec, or a larger --min-size, so that this stays local\n";
  if (info->si_code > 0 && is_of_parent(info->si_addr)) {  // si_code > 0: a fault, not a kill()
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

void watch_segmentation(const struct sigaction& now) noexcept {
  if (is_watched(now)) return;
  before = now;
  struct sigaction ending {};
  ending.sa_sigaction = end_with_message;
  ending.sa_flags = SA_SIGINFO | SA_ONSTACK;
  (void)::sigaction(SIGSEGV, &ending, nullptr);
}

// Installs the handler before the fork: an allocator whose memory is in the arena may touch it in the child before our
// code runs there. A handler of the program's own stays in place in the parent.
void prepare() noexcept {
  struct sigaction now {};
  if (is_ready() && ::sigaction(SIGSEGV, nullptr, &now) == 0 && has_usual_end(now)) watch_segmentation(now);
}

void go_on_as_parent() noexcept {
  if (!is_ready() || program.lost_count != 0) return;  // the parent itself may touch lost memory of its own parent
  struct sigaction now {};
  if (::sigaction(SIGSEGV, nullptr, &now) == 0 && is_watched(now)) (void)::sigaction(SIGSEGV, &before, nullptr);
}

void begin_as_child() noexcept {
  // Keeps the child from getting memory of its own in the hole where the arena was: it would be taken for far memory.
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  const Range hole = arena();
  const bool had_memory = !hole.is_empty() || program.lost_count != 0;
  if (!hole.is_empty()) (void)system_call(SYS_mmap, hole.start, hole.bytes, PROT_NONE, flags, -1, 0);
  for (const Range& each : statics()) {
    (void)system_call(SYS_mmap, each.start, each.bytes, PROT_NONE, flags, -1, 0);
  }
  begin_anew();
  struct sigaction now {};
  if (had_memory && ::sigaction(SIGSEGV, nullptr, &now) == 0) watch_segmentation(now);
}

}  // namespace

int watch_for_children() noexcept { return ::pthread_atfork(prepare, go_on_as_parent, begin_as_child); }

}  // namespace tonari::far
