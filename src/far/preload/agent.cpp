#include "far/preload/agent.hpp"

#include "far/preload/program.hpp"
#include "pager/copying.hpp"
#include "pager/placing.hpp"
#include "preload/lock.hpp"

#include <limits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdint>

namespace tonari::far {

namespace {

using pager::Address;
using pager::block_bytes;
using pager::page_bytes;
using pager::Progress;

struct Calls {
  ControlCalls watch;
  ControlCalls faults;

  [[nodiscard]] Progress move_out(Address to, Address from, std::size_t bytes) const noexcept {
    return pager::kernel::move(watch, to, from, bytes);
  }
  [[nodiscard]] Progress move_in(Address to, Address from, std::size_t bytes) const noexcept {
    return pager::kernel::move(faults, to, from, bytes);
  }
  void wake(Address start, std::size_t bytes) const noexcept { pager::kernel::wake(faults, start, bytes); }
  void zero(Address to, std::size_t bytes) const noexcept { (void)pager::kernel::zero(watch, to, bytes); }
  static bool drop(Address start, std::size_t bytes) noexcept {
    return system_call(SYS_madvise, start, bytes, MADV_DONTNEED) == 0;  // fails if something else is mapped there
  }
  [[nodiscard]] pager::Answer protect(Address start, std::size_t bytes, bool writes_wait) const noexcept {
    return pager::kernel::protect(faults, start, bytes, writes_wait);
  }
  static bool populate(Address start, std::size_t bytes) noexcept {
    return system_call(SYS_madvise, start, bytes, MADV_POPULATE_WRITE) == 0;
  }
  static bool look_up(Address start, std::size_t bytes, unsigned char* pages) noexcept {
    return system_call(SYS_mincore, start, bytes, pages) == 0;
  }
};

constexpr std::size_t stack_bytes = 32 << 10;

struct Agents {
  AgentTools tools;
  std::atomic<std::uint32_t> settled{0};  // number of agents that run; it numbers the next one
};
constinit Agents agents{};
alignas(16) constinit std::array<std::array<std::byte, stack_bytes>, agents_max> stacks{};

// The credentials that the agents are to take. Written by one thread at a time, which then waits for the agents.
struct Credentials {
  std::atomic<std::uint32_t> changes{0};  // release: publishes the members below
  std::atomic<std::uint32_t> missing{0};  // agents that have not followed the last change yet
  std::atomic<bool> refused{false};       // relaxed: published by `missing`
  std::array<uid_t, 3> users{};           // real, effective, saved
  std::array<gid_t, 3> groups{};
  bool lists = false;  // the list below is to be taken, too
  long listed = 0;
  std::array<gid_t, NGROUPS_MAX> list{};
};
constinit Credentials credentials{};

// Groups first: without the old user, an agent may not change them.
bool take_credentials() noexcept {
  const auto& [real_group, effective_group, saved_group] = credentials.groups;
  const auto& [real, effective, saved] = credentials.users;
  if (credentials.lists && is_error(system_call(SYS_setgroups, credentials.listed, credentials.list.data()))) {
    return false;
  }
  return !is_error(system_call(SYS_setresgid, real_group, effective_group, saved_group)) &&
         !is_error(system_call(SYS_setresuid, real, effective, saved));
}

void follow_change() noexcept {
  if (!take_credentials()) credentials.refused.store(true, std::memory_order_relaxed);
  // Release: the waiting thread sees `refused`.
  if (credentials.missing.fetch_sub(1, std::memory_order_acq_rel) == 1) wake(credentials.missing, 1, With::threads);
}

void close_all_others() noexcept {
  std::array<int, 3> kept{agents.tools.faults, agents.tools.watch, agents.tools.socket};
  std::ranges::sort(kept);
  int first = 0;
  for (const int each : kept) {
    if (first < each) (void)system_call(SYS_close_range, first, each - 1, 0);
    first = each + 1;
  }
  (void)system_call(SYS_close_range, first, INT_MAX, 0);
}

std::byte* shared_place(const Command& command) noexcept {
  std::byte* const start = command.shared == Shared::lent
                               ? agents.tools.lent
                               : reinterpret_cast<std::byte*>(agents.tools.channel) + scratch_offset;
  return start + command.place;
}

void carry_out(pager::Placing<Calls>& placing, Command& command) noexcept {
  const Address buffer = agents.tools.buffers + command.buffer * block_bytes;
  auto* const bytes = static_cast<std::byte*>(pointer_to(buffer));
  switch (command.what) {
    case Command::What::take_out:
      command.pages = placing.take_out(command.address, command.pages, buffer);
      pager::sum_pages(bytes, command.pages, command.sums);
      break;
    case Command::What::move_in: command.pages = placing.move_in(command.address, command.pages, buffer); break;
    case Command::What::prefault: command.done = placing.prefault(buffer) ? 1 : 0; break;
    case Command::What::empty: placing.empty(buffer); break;
    case Command::What::drop: (void)Calls::drop(command.address, command.bytes); break;
    case Command::What::fill:
      pager::fill_pages(bytes, shared_place(command), command.pages, command.sums);
      command.done = 1;
      break;
    case Command::What::read:
      pager::copy_pages(shared_place(command), command.first, bytes, command.pages);
      command.done = 1;
      break;
    case Command::What::protect:
      command.pages = placing.protect(command.address, command.pages);
      pager::sum_pages(static_cast<std::byte*>(pointer_to(command.address)), command.pages, command.sums);
      break;
    case Command::What::read_in_place:
      pager::copy_pages(shared_place(command), command.first, static_cast<std::byte*>(pointer_to(command.address)),
                        command.pages);
      command.done = 1;
      break;
    case Command::What::drop_protected:
      command.pages = placing.drop_protected(command.address, command.pages, command.going);
      break;
  }
}

bool carry_out_all(pager::Placing<Calls>& placing) noexcept {
  bool met = false;
  for (Command& command : agents.tools.channel->commands) {
    std::uint32_t expected = Command::asked;
    // Acquire: sees the whole command. Only one agent gets it.
    if (!command.state.compare_exchange_strong(expected, Command::at_work, std::memory_order_acquire)) continue;
    carry_out(placing, command);
    command.state.store(Command::answered, std::memory_order_release);
    wake(command.state, INT_MAX, With::keeper);
    met = true;
  }
  return met;
}

// How long the first agent waits before it checks that the keeper still lives.
constexpr timespec patience{.tv_sec = 1, .tv_nsec = 0};

bool keeper_has_gone() noexcept {
  std::byte nothing{};
  return system_call(SYS_recvfrom, agents.tools.socket, &nothing, 1, MSG_PEEK | MSG_DONTWAIT, 0, 0) == 0;
}

// The absent pages are lost with the keeper. The program's parent reports the reason.
void end_program() noexcept { (void)system_call(SYS_kill, system_call(SYS_getpid), SIGKILL); }

[[noreturn]] void serve() noexcept {
  (void)system_call(SYS_prctl, PR_SET_NAME, "tonari-agent", 0, 0, 0);
  if (agents.tools.channel->table_bytes != 0) {  // the program's threads serve their own faults: see act_in_agent()
    const std::uint64_t faults = 1ULL << (SIGBUS - 1);
    (void)system_call(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, nullptr, sizeof faults);
  }
  close_all_others();
  std::uint32_t changes = credentials.changes.load(std::memory_order_relaxed);  // it does not change while agents start
  const Address nursery = agents.tools.nurseries + agents.settled.load(std::memory_order_relaxed) * block_bytes;
  agents.settled.fetch_add(1, std::memory_order_release);  // release: pairs with start_agents()
  wake(agents.settled, 1, With::threads);

  pager::Placing<Calls> placing({{agents.tools.watch}, {agents.tools.faults}}, nursery);
  const bool is_first = nursery == agents.tools.nurseries;
  const Channel& channel = *agents.tools.channel;
  std::atomic<std::uint32_t>& doorbell = agents.tools.channel->agent_doorbell;
  for (;;) {
    // read before looking for commands, so that no command is missed
    const std::uint32_t seen = doorbell.load(std::memory_order_acquire);
    // Acquire: sees the whole change.
    if (const std::uint32_t now = credentials.changes.load(std::memory_order_acquire); now != changes) {
      changes = now;
      follow_change();
    }
    if (carry_out_all(placing)) continue;
    const bool waited_out = wait_on(doorbell, seen, With::keeper, is_first ? &patience : nullptr);
    // Relaxed: the doorbell published it.
    if (channel.ended.load(std::memory_order_relaxed) != 0 || (waited_out && keeper_has_gone())) end_program();
  }
}

// Starts a thread that libc does not know. It shares the thread-local memory of its creator, and must not use it.
long clone_to(void (*function)() noexcept, std::byte* stack_end) noexcept {
  constexpr long flags = CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
#if defined(__x86_64__)
  long result = SYS_clone;
  register long tls asm("r8") = 0;
  register long child asm("r10") = 0;
  register auto target asm("r12") = function;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"  // ends the chain of frames for debuggers
      "call *%[target]\n\t"
      "ud2\n"
      "1:"
      : "+a"(result)
      : "D"(flags), "S"(stack_end), "d"(0L), "r"(child), "r"(tls), [target] "r"(target)
      : "rcx", "r11", "memory");
  return result;
#else
  register long which asm("x8") = SYS_clone;
  register long result asm("x0") = flags;
  register long top asm("x1") = reinterpret_cast<long>(stack_end);
  register long parent asm("x2") = 0;
  register long tls asm("x3") = 0;
  register long child asm("x4") = 0;
  register auto target asm("x9") = function;
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, xzr\n\t"
      "mov x30, xzr\n\t"
      "blr %[target]\n\t"
      "brk #1\n"
      "1:"
      : "+r"(result)
      : "r"(which), "r"(top), "r"(parent), "r"(tls), "r"(child), [target] "r"(target)
      : "memory");
  return result;
#endif
}

}  // namespace

bool is_agent() noexcept {
  const auto* const here = static_cast<const std::byte*>(__builtin_frame_address(0));
  return here >= stacks.front().data() && here < stacks.back().data() + stack_bytes;
}

int faults_of_agents() noexcept { return agents.tools.faults; }

bool change_agents_credentials(Groups groups) noexcept {
  auto& [real, effective, saved] = credentials.users;
  auto& [real_group, effective_group, saved_group] = credentials.groups;
  (void)system_call(SYS_getresuid, &real, &effective, &saved);
  (void)system_call(SYS_getresgid, &real_group, &effective_group, &saved_group);
  credentials.lists = groups == Groups::changed;
  if (credentials.lists) {
    credentials.listed = system_call(SYS_getgroups, credentials.list.size(), credentials.list.data());
  }
  credentials.missing.store(agents.settled.load(std::memory_order_relaxed), std::memory_order_relaxed);
  credentials.changes.fetch_add(1, std::memory_order_release);
  std::atomic<std::uint32_t>& doorbell = agents.tools.channel->agent_doorbell;
  doorbell.fetch_add(1, std::memory_order_release);  // release: an agent that sees it also sees the change
  wake(doorbell, INT_MAX, With::keeper);
  for (;;) {
    const std::uint32_t missing = credentials.missing.load(std::memory_order_acquire);
    if (missing == 0) return !credentials.refused.load(std::memory_order_relaxed);
    wait_on(credentials.missing, missing, With::threads);
  }
}

int start_agents(const AgentTools& tools) noexcept {
  agents.tools = tools;
  agents.settled.store(0, std::memory_order_relaxed);  // a forked child inherits its parent's count
  constexpr std::array<std::byte, page_bytes> zeros{};
  (void)pager::checksum_of(zeros.data());  // detects the processor's features now, while there is only one thread
  const WithoutSignals inherited;
  for (std::uint32_t settled = 0; settled < std::min<std::uint32_t>(tools.channel->agents, agents_max); ++settled) {
    const long thread = clone_to(serve, stacks[settled].data() + stack_bytes);
    if (is_error(thread)) return error_of(thread);
    while (agents.settled.load(std::memory_order_acquire) == settled) wait_on(agents.settled, settled, With::threads);
  }
  return 0;
}

}  // namespace tonari::far
