#pragma once

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

// The system calls that read or write memory of the program at an address among their arguments. Calls about address
// space (mmap, madvise) are not here: they do not touch memory. Neither are the addresses in structures.
namespace tonari::far {

/// An argument that is an address, and how much memory is there: `bytes`, and for each of the number that argument
/// `count` gives, `bytes_each`. If both are 0, the amount is not known: a text, or data whose amount memory tells.
struct Argument {
  static constexpr std::uint8_t none = 0xff;
  std::uint8_t index = none;
  std::uint16_t bytes = 0;
  std::uint8_t count = none;
  std::uint16_t bytes_each = 0;
};

/// A system call with such arguments. If there are `commands`, they are addresses only if argument `selector` is one of
/// these.
struct Call {
  int number = -1;
  std::array<Argument, 5> arguments{};
  std::uint8_t selector = 1;
  std::array<std::uint16_t, 6> commands{};  // 0: none

  [[nodiscard]] constexpr bool has_commands() const { return commands[0] != 0; }
};

namespace call_list {

constexpr Argument fixed(std::uint8_t index, std::size_t bytes) {
  return {.index = index, .bytes = static_cast<std::uint16_t>(bytes)};
}
constexpr Argument array(std::uint8_t index, std::uint8_t count, std::size_t bytes_each, std::uint16_t bytes = 0) {
  return {.index = index, .bytes = bytes, .count = count, .bytes_each = static_cast<std::uint16_t>(bytes_each)};
}
constexpr Argument open(std::uint8_t index) { return {.index = index}; }

constexpr Call call(int number, std::initializer_list<Argument> arguments) {
  Call made{.number = number};
  std::ranges::copy(arguments, made.arguments.begin());
  return made;
}
constexpr Call call_for(int number, std::uint8_t selector, std::initializer_list<std::uint16_t> commands,
                        std::initializer_list<Argument> arguments) {
  Call made = call(number, arguments);
  made.selector = selector;
  std::ranges::copy(commands, made.commands.begin());
  return made;
}

inline constexpr std::size_t time = 16;    // timespec, timeval
inline constexpr std::size_t times = 32;   // itimerspec, itimerval, two times
inline constexpr std::size_t signals = 8;  // the kernel's set
inline constexpr std::size_t info = 128;   // siginfo_t
inline constexpr std::size_t event = 64;   // sigevent

}  // namespace call_list

/// The most frequent ones first: the filter goes through them in order.
inline constexpr auto calls = [] {
  using namespace call_list;
  return std::to_array<Call>({
      call(SYS_read, {open(1)}),
      call(SYS_write, {open(1)}),
      call(SYS_futex, {open(0), fixed(3, time)}),  // the filter lets private wake-ups pass: they read no memory
#ifdef SYS_epoll_wait
      call(SYS_epoll_wait, {array(1, 2, sizeof(epoll_event))}),
      call(SYS_poll, {array(0, 1, 8)}),
#endif
      call(SYS_epoll_pwait, {array(1, 2, sizeof(epoll_event)), fixed(4, signals)}),
      call(SYS_recvfrom, {open(1), open(4), open(5)}),
      call(SYS_sendto, {open(1), open(4)}),
      call(SYS_recvmsg, {open(1)}),
      call(SYS_sendmsg, {open(1)}),
      call(SYS_pread64, {open(1)}),
      call(SYS_pwrite64, {open(1)}),
      call(SYS_readv, {open(1)}),
      call(SYS_writev, {open(1)}),
      call(SYS_ppoll, {array(0, 1, 8), fixed(2, time), fixed(3, signals)}),
      call(SYS_newfstatat, {open(1), fixed(2, sizeof(struct stat))}),
      call(SYS_fstat, {fixed(1, sizeof(struct stat))}),
      call(SYS_openat, {open(1)}),
      call(SYS_rt_sigprocmask, {fixed(1, signals), fixed(2, signals)}),
      call(SYS_ioctl, {open(2)}),
      call_for(SYS_fcntl, 1, {5, 6, 7, 36, 37, 38}, {fixed(2, 32)}),  // locks
      call(SYS_getdents64, {open(1)}),
      call(SYS_nanosleep, {fixed(0, time), fixed(1, time)}),
      call(SYS_clock_nanosleep, {fixed(2, time), fixed(3, time)}),
      call(SYS_clock_gettime, {fixed(1, time)}),
      call(SYS_getrandom, {open(0)}),
      call(SYS_preadv, {open(1)}),
      call(SYS_pwritev, {open(1)}),
      call(SYS_preadv2, {open(1)}),
      call(SYS_pwritev2, {open(1)}),
      call(SYS_sendmmsg, {open(1)}),
      call(SYS_recvmmsg, {open(1), open(4)}),
      call(SYS_epoll_ctl, {fixed(3, sizeof(epoll_event))}),
      call(SYS_epoll_pwait2, {array(1, 2, sizeof(epoll_event)), fixed(3, time), fixed(4, signals)}),
      call(SYS_pselect6, {open(1), open(2), open(3), fixed(4, time), fixed(5, 16)}),
      call(SYS_accept, {open(1), open(2)}),
      call(SYS_accept4, {open(1), open(2)}),
      call(SYS_wait4, {open(1), open(3)}),
      call(SYS_waitid, {fixed(2, info), fixed(4, sizeof(rusage))}),

      // files
      call(SYS_statx, {open(1), fixed(4, 256)}),
      call(SYS_openat2, {open(1), array(2, 3, 1)}),
      call(SYS_faccessat, {open(1)}),
      call(SYS_faccessat2, {open(1)}),
      call(SYS_readlinkat, {open(1), open(2)}),
      call(SYS_getcwd, {open(0)}),
      call(SYS_chdir, {open(0)}),
      call(SYS_chroot, {open(0)}),
      call(SYS_mkdirat, {open(1)}),
      call(SYS_mknodat, {open(1)}),
      call(SYS_unlinkat, {open(1)}),
#ifdef SYS_renameat
      call(SYS_renameat, {open(1), open(3)}),
#endif
      call(SYS_renameat2, {open(1), open(3)}),
      call(SYS_linkat, {open(1), open(3)}),
      call(SYS_symlinkat, {open(0), open(2)}),
      call(SYS_fchmodat, {open(1)}),
      call(452, {open(1)}),  // fchmodat2
      call(SYS_fchownat, {open(1)}),
      call(SYS_truncate, {open(0)}),
      call(SYS_statfs, {open(0), fixed(1, sizeof(struct statfs))}),
      call(SYS_fstatfs, {fixed(1, sizeof(struct statfs))}),
      call(SYS_utimensat, {open(1), fixed(2, times)}),
      call(SYS_sendfile, {fixed(2, 8)}),
      call(SYS_splice, {fixed(1, 8), fixed(3, 8)}),
      call(SYS_copy_file_range, {fixed(1, 8), fixed(3, 8)}),
      call(SYS_vmsplice, {open(1)}),
      call(SYS_getxattr, {open(0), open(1), array(2, 3, 1)}),
      call(SYS_lgetxattr, {open(0), open(1), array(2, 3, 1)}),
      call(SYS_fgetxattr, {open(1), array(2, 3, 1)}),
      call(SYS_setxattr, {open(0), open(1), array(2, 3, 1)}),
      call(SYS_lsetxattr, {open(0), open(1), array(2, 3, 1)}),
      call(SYS_fsetxattr, {open(1), array(2, 3, 1)}),
      call(SYS_listxattr, {open(0), array(1, 2, 1)}),
      call(SYS_llistxattr, {open(0), array(1, 2, 1)}),
      call(SYS_flistxattr, {array(1, 2, 1)}),
      call(SYS_removexattr, {open(0), open(1)}),
      call(SYS_lremovexattr, {open(0), open(1)}),
      call(SYS_fremovexattr, {open(1)}),
      call(SYS_memfd_create, {open(0)}),
      call(SYS_inotify_add_watch, {open(1)}),
      call(SYS_name_to_handle_at, {open(1), open(2), fixed(3, 4)}),

      // sockets and pipes
      call(SYS_connect, {array(1, 2, 1)}),
      call(SYS_bind, {array(1, 2, 1)}),
      call(SYS_getsockname, {open(1), fixed(2, 4)}),
      call(SYS_getpeername, {open(1), fixed(2, 4)}),
      call(SYS_setsockopt, {array(3, 4, 1)}),
      call(SYS_getsockopt, {open(3), fixed(4, 4)}),
      call(SYS_pipe2, {fixed(0, 8)}),
      call(SYS_socketpair, {fixed(3, 8)}),

      // processes, time, signals
      call(SYS_execve, {open(0), open(1), open(2)}),
      call(SYS_execveat, {open(1), open(2), open(3)}),
      call(SYS_uname, {fixed(0, sizeof(utsname))}),
      call(SYS_sysinfo, {fixed(0, sizeof(struct sysinfo))}),
      call(SYS_times, {fixed(0, 32)}),
      call(SYS_getrusage, {fixed(1, sizeof(rusage))}),
      call(SYS_getrlimit, {fixed(1, 16)}),
      call(SYS_setrlimit, {fixed(1, 16)}),
      call(SYS_prlimit64, {fixed(2, 16), fixed(3, 16)}),
      call_for(SYS_prctl, 0, {15, 16}, {fixed(1, 16)}),  // names of threads
      call(SYS_getcpu, {fixed(0, 4), fixed(1, 4)}),
      call(SYS_gettimeofday, {fixed(0, time), fixed(1, 8)}),
      call(SYS_clock_getres, {fixed(1, time)}),
      call(SYS_clock_settime, {fixed(1, time)}),
      call(SYS_getitimer, {fixed(1, times)}),
      call(SYS_setitimer, {fixed(1, times), fixed(2, times)}),
      call(SYS_timer_create, {fixed(1, event), fixed(2, 4)}),
      call(SYS_timer_settime, {fixed(2, times), fixed(3, times)}),
      call(SYS_timer_gettime, {fixed(1, times)}),
      call(SYS_timerfd_settime, {fixed(2, times), fixed(3, times)}),
      call(SYS_timerfd_gettime, {fixed(1, times)}),
      call(SYS_sched_getaffinity, {array(2, 1, 1)}),
      call(SYS_sched_setaffinity, {array(2, 1, 1)}),
      call(SYS_sched_getparam, {fixed(1, 4)}),
      call(SYS_sched_setparam, {fixed(1, 4)}),
      call(SYS_sched_setscheduler, {fixed(2, 4)}),
      call(SYS_sched_getattr, {array(1, 2, 1)}),
      call(SYS_sched_setattr, {open(1)}),
      call(SYS_sched_rr_get_interval, {fixed(1, time)}),
      call(SYS_rt_sigaction, {fixed(1, 32), fixed(2, 32)}),
      call(SYS_rt_sigsuspend, {fixed(0, signals)}),
      call(SYS_rt_sigpending, {array(0, 1, 1)}),
      call(SYS_rt_sigtimedwait, {fixed(0, signals), fixed(1, info), fixed(2, time)}),
      call(SYS_rt_sigqueueinfo, {fixed(2, info)}),
      call(SYS_rt_tgsigqueueinfo, {fixed(3, info)}),
      call(SYS_signalfd4, {fixed(1, signals)}),
      call(SYS_sigaltstack, {fixed(0, sizeof(stack_t)), fixed(1, sizeof(stack_t))}),
      call(SYS_getgroups, {array(1, 0, 4)}),
      call(SYS_setgroups, {array(1, 0, 4)}),
      call(SYS_getresuid, {fixed(0, 4), fixed(1, 4), fixed(2, 4)}),
      call(SYS_getresgid, {fixed(0, 4), fixed(1, 4), fixed(2, 4)}),
      call(SYS_capget, {fixed(0, 8), fixed(1, 24)}),
      call(SYS_capset, {fixed(0, 8), fixed(1, 24)}),
      call(449, {open(0), fixed(3, time)}),  // futex_waitv
      call(454, {open(0)}),                  // futex_wake
      call(455, {open(0), fixed(4, time)}),  // futex_wait
      call(456, {open(0)}),                  // futex_requeue

      // memory
      call(SYS_mincore, {open(2)}),
      call(SYS_get_mempolicy, {fixed(0, 4), open(1)}),
      call(SYS_set_mempolicy, {open(1)}),
      call(SYS_mbind, {open(3)}),
      call(SYS_move_pages, {open(2), open(3), open(4)}),
      call(SYS_process_vm_readv, {open(1), open(3)}),
      call(SYS_process_vm_writev, {open(1), open(3)}),

      // queues of messages
      call(SYS_msgsnd, {array(1, 2, 1, 8)}),
      call(SYS_msgrcv, {array(1, 2, 1, 8)}),
      call(SYS_msgctl, {fixed(2, 120)}),
      call(SYS_semop, {array(1, 2, 6)}),
      call(SYS_semtimedop, {array(1, 2, 6), fixed(3, time)}),
      call(SYS_mq_open, {open(0), fixed(3, 64)}),
      call(SYS_mq_unlink, {open(0)}),
      call(SYS_mq_timedsend, {array(1, 2, 1), fixed(4, time)}),
      call(SYS_mq_timedreceive, {array(1, 2, 1), fixed(3, 4), fixed(4, time)}),
      call(SYS_mq_notify, {fixed(1, event)}),
      call(SYS_mq_getsetattr, {fixed(1, 64), fixed(2, 64)}),
#ifdef SYS_open
      call(SYS_open, {open(0)}),
      call(SYS_creat, {open(0)}),
      call(SYS_stat, {open(0), fixed(1, sizeof(struct stat))}),
      call(SYS_lstat, {open(0), fixed(1, sizeof(struct stat))}),
      call(SYS_access, {open(0)}),
      call(SYS_select, {open(1), open(2), open(3), fixed(4, time)}),
      call(SYS_getdents, {open(1)}),
      call(SYS_readlink, {open(0), open(1)}),
      call(SYS_mkdir, {open(0)}),
      call(SYS_mknod, {open(0)}),
      call(SYS_rmdir, {open(0)}),
      call(SYS_unlink, {open(0)}),
      call(SYS_rename, {open(0), open(1)}),
      call(SYS_link, {open(0), open(1)}),
      call(SYS_symlink, {open(0), open(1)}),
      call(SYS_chmod, {open(0)}),
      call(SYS_chown, {open(0)}),
      call(SYS_lchown, {open(0)}),
      call(SYS_utime, {open(0), fixed(1, 16)}),
      call(SYS_utimes, {open(0), fixed(1, times)}),
      call(SYS_futimesat, {open(1), fixed(2, times)}),
      call(SYS_pipe, {fixed(0, 8)}),
      call(SYS_signalfd, {fixed(1, signals)}),
      call(SYS_time, {fixed(0, 8)}),
#endif
  });
}();

/// Returns nullptr if the call is not in the list.
constexpr const Call* find_call(long number) noexcept {
  const auto* const found = std::ranges::find(calls, number, &Call::number);
  return found != calls.end() ? found : nullptr;
}

}  // namespace tonari::far
