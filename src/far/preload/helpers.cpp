#include "far/preload/helpers.hpp"

#include "preload/lock.hpp"

#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <climits>
#include <csignal>

namespace tonari::far {

using namespace preload;  // its tools

namespace {

// The credentials that the helpers are to take. Written by one thread at a time, which then waits for the helpers.
struct Credentials {
  std::atomic<std::uint32_t> changes{0};  // release: publishes the members below
  std::atomic<std::uint32_t> missing{0};  // helpers that have not followed the last change yet
  std::atomic<bool> refused{false};       // relaxed: published by `missing`
  std::array<uid_t, 3> users{};           // real, effective, saved
  std::array<gid_t, 3> groups{};
  bool lists = false;  // the list below is to be taken, too
  long listed = 0;
  std::array<gid_t, NGROUPS_MAX> list{};
};
constinit Credentials credentials{};

// Groups first: without the old user, a helper may not change them.
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

// The futexes on which helpers sleep; all agents share one. Release: a thread that sees the count sees the futexes.
constexpr std::size_t helpers_max = 16;
constinit std::array<std::atomic<std::uint32_t>*, helpers_max> doorbells{};
constinit std::atomic<std::uint32_t> helpers_count{0};

}  // namespace

long clone_helper(void (*function)() noexcept, std::byte* stack_end) noexcept {
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

void close_all_but(std::span<int> kept) noexcept {
  std::ranges::sort(kept);
  int first = 0;
  for (const int each : kept) {
    if (first < each) (void)system_call(SYS_close_range, first, each - 1, 0);
    first = each + 1;
  }
  (void)system_call(SYS_close_range, first, INT_MAX, 0);
}

Follower::Follower(std::atomic<std::uint32_t>& doorbell) noexcept
    : changes_(credentials.changes.load(std::memory_order_relaxed)) {  // it does not change while helpers start
  const std::uint32_t index = helpers_count.load(std::memory_order_relaxed);
  doorbells[index] = &doorbell;
  helpers_count.store(index + 1, std::memory_order_release);
}

void Follower::follow() noexcept {
  // Acquire: sees the whole change.
  const std::uint32_t now = credentials.changes.load(std::memory_order_acquire);
  if (now == changes_) return;
  changes_ = now;
  follow_change();
}

bool change_helpers_credentials(Groups groups) noexcept {
  const std::uint32_t count = helpers_count.load(std::memory_order_acquire);
  auto& [real, effective, saved] = credentials.users;
  auto& [real_group, effective_group, saved_group] = credentials.groups;
  (void)system_call(SYS_getresuid, &real, &effective, &saved);
  (void)system_call(SYS_getresgid, &real_group, &effective_group, &saved_group);
  credentials.lists = groups == Groups::changed;
  if (credentials.lists) {
    credentials.listed = system_call(SYS_getgroups, credentials.list.size(), credentials.list.data());
  }
  credentials.missing.store(count, std::memory_order_relaxed);
  credentials.changes.fetch_add(1, std::memory_order_release);
  for (std::uint32_t i = 0; i < count; ++i) {
    doorbells[i]->fetch_add(1, std::memory_order_release);  // release: a helper that sees it also sees the change
    wake(*doorbells[i], INT_MAX, With::keeper);
  }
  for (;;) {
    const std::uint32_t missing = credentials.missing.load(std::memory_order_acquire);
    if (missing == 0) return !credentials.refused.load(std::memory_order_relaxed);
    wait_on(credentials.missing, missing, With::threads);
  }
}

bool has_helpers() noexcept { return helpers_count.load(std::memory_order_relaxed) != 0; }

void forget_helpers() noexcept { helpers_count.store(0, std::memory_order_relaxed); }

void end_program() noexcept { (void)system_call(SYS_kill, system_call(SYS_getpid), SIGKILL); }

bool has_closed(int socket) noexcept {
  std::byte nothing{};
  return system_call(SYS_recvfrom, socket, &nothing, 1, MSG_PEEK | MSG_DONTWAIT, 0, 0) == 0;
}

}  // namespace tonari::far
