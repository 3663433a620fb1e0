#include "far/preload/faults.hpp"

#include "base/clock.hpp"
#include "far/preload/agent.hpp"
#include "far/preload/owned_signals.hpp"
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

  [[nodiscard]] pager::Progress copy(pager::Address to, const std::byte* from, std::size_t bytes,
                                     std::uint64_t mode = 0) const noexcept {
    return pager::kernel::copy(faults, to, from, bytes, mode);
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

pager::OwnFaults<System> own_faults() noexcept {
  Channel& channel = *serving.channel;
  return {{{serving.faults}}, serving.lent, channel.tally, channel.passed};
}

// An agent reads pages that are here and protected. One that is absent was given back to the kernel without this
// library's knowledge, and reads as zeros. Returns false if the page is not far memory.
bool fill_hole(Address at) noexcept {
  static constexpr std::array<std::byte, page_bytes> zeros{};
  const Answer answer = System{{faults_of_agents()}}
                            .copy(at / page_bytes * page_bytes, zeros.data(), page_bytes, UFFDIO_COPY_MODE_WP)
                            .answer;
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

// Returns the tables of the far memory of this process that contains `at`; none in a forked child.
pager::RegionTables own_tables_at(Address at) noexcept {
  if (serving.channel == nullptr || !is_ready()) return {};
  return tables_at(at);
}

bool serve_fault(const siginfo_t& info) noexcept {
  if (info.si_code != BUS_ADRERR) return false;
  const Address at = address_of(info.si_addr);
  const pager::RegionTables tables = own_tables_at(at);
  return tables.contains(at) && own_faults().serve(tables, at, recent_faults);
}

void on_fault(int signal, siginfo_t* info, void* context) noexcept {
  if (is_agent()) return act_in_agent(*info);  // its errno would be another thread's
  const int before = errno;
  if (!serve_fault(*info)) act_as_program(signal, info, context);
  errno = before;
}

}  // namespace

int serve_own_faults(Channel& channel, const std::byte* lent, std::byte* tables, int faults) noexcept {
  serving = {.channel = nullptr, .lent = lent, .tables = tables, .faults = faults};
  expect_faults();
  serving.channel = &channel;
  // All signals are blocked: a thread that was cancelled in the handler would hold a block for ever.
  const int error = own_signal(SIGBUS, on_fault, SA_ONSTACK | SA_RESTART, Blocks::all_signals);
  if (error != 0) serving.channel = nullptr;
  return error;
}

void expect_faults() noexcept {
  if (preload::faults_signal.exchange(true, std::memory_order_relaxed)) return;
  const std::uint64_t faults = 1ULL << (SIGBUS - 1) | 1ULL << (SIGSYS - 1);
  (void)system_call(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, nullptr, sizeof faults);  // if inherited
  // handlers that constructors of other libraries have set
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction_of_libc(signal, nullptr, &action) != 0) continue;
    if (::sigismember(&action.sa_mask, SIGBUS) != 1 && ::sigismember(&action.sa_mask, SIGSYS) != 1) continue;
    preload::leave_unblocked(action.sa_mask);
    (void)sigaction_of_libc(signal, &action, nullptr);
  }
}

bool serves_own_faults() noexcept { return serving.channel != nullptr; }

Bringing bring(Address at) noexcept {
  const pager::RegionTables tables = own_tables_at(at);
  if (!tables.contains(at)) return Bringing::not_far;
  const WithoutSignals without_signals;
  return own_faults().bring(tables, at, recent_faults) ? Bringing::here : Bringing::lost;
}

}  // namespace tonari::far
