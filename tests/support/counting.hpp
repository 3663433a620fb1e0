#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <stdexcept>
#include <thread>

// Counts the system calls and the allocations of a thread.
namespace tonari::test {

/// The requests of one thread to the system.
struct Counts {
  int system_calls = 0;
  int last_system_call = -1;
  int allocations = 0;
};

namespace counting {

/// The counts of this thread, while it counts. malloc() and a signal handler write to it. So it must be in the
/// program's own thread-local memory, which exists from the thread's begin on.
inline thread_local Counts counts;
inline thread_local bool on = false;

// A refused system call comes here instead. It returns ENOSYS.
inline void take_refused(int, siginfo_t* info, void* state) noexcept {
  if (on) {
    ++counts.system_calls;
    counts.last_system_call = info->si_syscall;
  }
  auto& registers = static_cast<ucontext_t*>(state)->uc_mcontext;
#if defined(__x86_64__)
  registers.gregs[REG_RAX] = -ENOSYS;
#elif defined(__aarch64__)
  registers.regs[0] = static_cast<std::uint64_t>(-ENOSYS);
#endif
}

// From here on the kernel refuses this thread's system calls: for ever, and without privileges.
inline void refuse_system_calls() {
  struct sigaction action {};
  action.sa_sigaction = take_refused;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (::sigaction(SIGSYS, &action, nullptr) != 0) throw std::runtime_error("sigaction of SIGSYS failed");
  constexpr auto number = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  std::array filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 2, 0),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGSYS);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  const bool refused =
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  if (!refused) throw std::runtime_error("the kernel takes no seccomp filter");
}

}  // namespace counting

/// Runs `work` twice in a thread of its own, and returns the requests of the second run. The first run warms up.
inline Counts count(const std::function<void()>& work) {
  Counts result;
  std::exception_ptr failure;
  const auto twice = [&] {
    try {
      work();
      counting::refuse_system_calls();
      counting::counts = {};
      counting::on = true;
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    counting::on = false;
    result = counting::counts;
  };
  std::thread(twice).join();
  if (failure) std::rethrow_exception(failure);
  return result;
}

}  // namespace tonari::test
