#include "far/preload/faults.hpp"

#include "base/clock.hpp"
#include "far/preload/agent.hpp"
#include "far/preload/program.hpp"
#include "pager/own_faults.hpp"
#include "preload/masks.hpp"

#include <ucontext.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

// The handler of SIGBUS serves the page faults of its thread (pager/own_faults.hpp). It uses no far memory, no lock,
// and nothing of libc but its clock.
namespace tonari::far {

namespace {

using pager::Answer;
using pager::page_bytes;

struct System {
  ControlCalls faults;

  [[nodiscard]] Answer copy(pager::Address to, const std::byte* from, std::uint64_t mode = 0) const noexcept {
    const auto make = [&](std::size_t) {
      return uffdio_copy{.dst = to, .src = address_of(from), .len = page_bytes, .mode = mode, .copy = 0};
    };
    const auto progress = [](const uffdio_copy& each) { return each.copy; };
    return pager::kernel::go_on(faults, UFFDIO_COPY, page_bytes, make, progress).answer;
  }
  [[nodiscard]] Answer zero(pager::Address to) const noexcept { return pager::kernel::zero(faults, to, page_bytes); }
  static std::uint64_t now_ns() noexcept { return monotonic_ns(); }
  static std::uint32_t thread() noexcept { return static_cast<std::uint32_t>(system_call(SYS_gettid)); }
  static void yield() noexcept { ControlCalls::yield(); }
  static void wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen) noexcept {
    wait_on(const_cast<std::atomic<std::uint32_t>&>(word), seen, With::keeper);
  }
  static void wake(const std::atomic<std::uint32_t>& word) noexcept {
    preload::wake(const_cast<std::atomic<std::uint32_t>&>(word), INT_MAX, With::keeper);
  }
};

struct OwnServing {
  Channel* channel = nullptr;  // set after the others
  const std::byte* lent = nullptr;
  std::byte* tables = nullptr;
  int faults = -1;
};
constinit OwnServing serving{};

// The program's own action for SIGBUS.
constinit Lock program_action_lock{};
constinit struct sigaction program_action {};

[[gnu::tls_model("initial-exec")]] constinit thread_local pager::RecentFaults recent_faults{};

pager::RegionTables tables_at(Address at) noexcept {
  const Channel& channel = *serving.channel;
  const std::uint32_t count = channel.regions_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& [start, bytes, tables] = channel.regions[i];
    if (at - start < bytes) return {start, bytes, serving.tables + tables};
  }
  return {};
}

// An agent reads pages that are here and protected. One that is absent was given back to the kernel without this
// library's knowledge, and reads as zeros. Returns false if the page is not far memory.
bool fill_hole(Address at) noexcept {
  static constexpr std::array<std::byte, page_bytes> zeros{};
  const Answer answer =
      System{{faults_of_agents()}}.copy(at / page_bytes * page_bytes, zeros.data(), UFFDIO_COPY_MODE_WP);
  return answer == Answer::ok || answer == Answer::there;
}

// The program's handler must not run in an agent, whose stack is small and which libc does not know. A signal that was
// sent to the process is sent again, for another thread: this one blocks it now. Any other fault, for example because a
// server's memory is full, ends the process when it is repeated.
void act_in_agent(const siginfo_t& info) noexcept {
  if (info.si_code == BUS_ADRERR && fill_hole(address_of(info.si_addr))) return;
  if (info.si_code <= 0) {
    const long process = system_call(SYS_getpid);
    // With its value, if it was sent with one: the kernel lets only the first thread repeat what kill() sends.
    if (is_error(system_call(SYS_rt_sigqueueinfo, process, SIGBUS, &info))) {
      (void)system_call(SYS_kill, process, SIGBUS);
    }
    return;
  }
  const struct sigaction usual {};
  (void)sigaction_of_libc(SIGBUS, &usual, nullptr);
}

bool serve_fault(const siginfo_t& info) noexcept {
  if (info.si_code != BUS_ADRERR || serving.channel == nullptr) return false;
  const Address at = address_of(info.si_addr);
  if (!is_ready()) return false;  // a forked child
  const pager::RegionTables tables = tables_at(at);
  if (!tables.contains(at)) return false;
  Channel& channel = *serving.channel;
  return pager::OwnFaults<System>({{serving.faults}}, serving.lent, channel.tally, channel.passed)
      .serve(tables, at, recent_faults);
}

// Calls the program's handler with the signals blocked that the kernel would block, except SIGBUS.
template <class Handler>
void call_handler(const struct sigaction& action, const void* context, Handler handler) noexcept {
  sigset_t blocked = static_cast<const ucontext_t*>(context)->uc_sigmask;
  for (int signal = 1; signal < NSIG; ++signal) {
    if (::sigismember(&action.sa_mask, signal) == 1) ::sigaddset(&blocked, signal);
  }
  ::sigdelset(&blocked, SIGBUS);
  (void)system_call(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, nullptr, sizeof(std::uint64_t));
  handler();
}

void act_as_program(int signal, siginfo_t* info, void* context) noexcept {
  struct sigaction action {};
  {
    const Guard guard(program_action_lock);
    action = program_action;
    if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) program_action = {};
  }
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    return call_handler(action, context, [&] { action.sa_sigaction(signal, info, context); });
  }
  if (action.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
    return call_handler(action, context, [&] { action.sa_handler(signal); });
  }
  // Does what the kernel would: a fault is repeated, and ends the process; a signal that was sent is sent again.
  struct sigaction usual {};
  (void)sigaction_of_libc(SIGBUS, &usual, nullptr);
  if (info->si_code <= 0) (void)::raise(signal);
}

void on_signal(int signal, siginfo_t* info, void* context) noexcept {
  if (is_agent()) return act_in_agent(*info);  // its errno would be another thread's
  const int before = errno;
  if (!serve_fault(*info)) act_as_program(signal, info, context);
  errno = before;
}

}  // namespace

int serve_own_faults(Channel& channel, const std::byte* lent, std::byte* tables, int faults) noexcept {
  serving = {.channel = nullptr, .lent = lent, .tables = tables, .faults = faults};
  struct sigaction ours {};
  ours.sa_sigaction = on_signal;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  // All of them: sigfillset() leaves out the signal with which libc cancels threads. A thread that was cancelled in the
  // handler would hold a block for ever.
  std::memset(&ours.sa_mask, 0xff, sizeof ours.sa_mask);
  struct sigaction before {};
  expect_faults();
  serving.channel = &channel;  // first: an action that another thread sets meanwhile is kept aside
  if (sigaction_of_libc(SIGBUS, &ours, &before) != 0) {
    serving.channel = nullptr;
    return errno;
  }
  const bool was_ours = (before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction == on_signal;
  const Guard guard(program_action_lock);
  if (!was_ours && program_action.sa_handler == SIG_DFL) program_action = before;
  return 0;
}

void expect_faults() noexcept {
  if (preload::faults_signal.exchange(true, std::memory_order_relaxed)) return;
  const std::uint64_t faults = 1ULL << (SIGBUS - 1);
  (void)system_call(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, nullptr, sizeof faults);  // if inherited
  // handlers that constructors of other libraries have set
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction_of_libc(signal, nullptr, &action) != 0 || ::sigismember(&action.sa_mask, SIGBUS) != 1) continue;
    ::sigdelset(&action.sa_mask, SIGBUS);
    (void)sigaction_of_libc(signal, &action, nullptr);
  }
}

bool serves_own_faults() noexcept { return serving.channel != nullptr; }

// The program's memory may be absent, and no fault can be served while the lock is held.
int set_program_action(const struct sigaction* action, struct sigaction* before) noexcept {
  struct sigaction wanted {};
  struct sigaction previous {};
  if (action != nullptr) wanted = *action;
  {
    const Guard guard(program_action_lock);
    previous = program_action;
    if (action != nullptr) program_action = wanted;
  }
  if (before != nullptr) *before = previous;
  return 0;
}

}  // namespace tonari::far
