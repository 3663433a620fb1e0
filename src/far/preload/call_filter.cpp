#include "far/preload/call_filter.hpp"

#include "preload/system_calls.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>

namespace tonari::far {

namespace {

using preload::error_of;
using preload::is_error;
using preload::page_bytes;
using preload::pointer_to;
using preload::system_call;

/// A system call, and the arguments that are addresses of memory which the kernel reads or writes.
struct Call {
  int number;
  std::uint8_t addresses;  // bit i: argument i
};

constexpr Call call(int number, std::initializer_list<int> addresses) {
  Call made{number, 0};
  for (const int each : addresses) made.addresses = static_cast<std::uint8_t>(made.addresses | 1U << each);
  return made;
}

// The most frequent ones first: the filter goes through them in order. Calls about address space (mmap, madvise) are
// not here: they do not touch memory.
constexpr std::array calls{
    call(SYS_read, {1}),
    call(SYS_write, {1}),
    call(SYS_futex, {0, 3, 4}),
#ifdef SYS_epoll_wait
    call(SYS_epoll_wait, {1}),
    call(SYS_poll, {0}),
#endif
    call(SYS_epoll_pwait, {1, 4}),
    call(SYS_recvfrom, {1, 4, 5}),
    call(SYS_sendto, {1, 4}),
    call(SYS_recvmsg, {1}),
    call(SYS_sendmsg, {1}),
    call(SYS_pread64, {1}),
    call(SYS_pwrite64, {1}),
    call(SYS_readv, {1}),
    call(SYS_writev, {1}),
    call(SYS_ppoll, {0, 2, 3}),
    call(SYS_newfstatat, {1, 2}),
    call(SYS_fstat, {1}),
    call(SYS_openat, {1}),
    call(SYS_rt_sigprocmask, {1, 2}),
    call(SYS_ioctl, {2}),
    call(SYS_fcntl, {2}),
    call(SYS_getdents64, {1}),
    call(SYS_nanosleep, {0, 1}),
    call(SYS_clock_nanosleep, {2, 3}),
    call(SYS_getrandom, {0}),
    call(SYS_preadv, {1}),
    call(SYS_pwritev, {1}),
    call(SYS_preadv2, {1}),
    call(SYS_pwritev2, {1}),
    call(SYS_sendmmsg, {1}),
    call(SYS_recvmmsg, {1, 4}),
    call(SYS_epoll_ctl, {3}),
    call(SYS_epoll_pwait2, {1, 3, 4}),
    call(SYS_pselect6, {1, 2, 3, 4, 5}),
    call(SYS_statx, {1, 4}),
    call(SYS_openat2, {1, 2}),
    call(SYS_faccessat, {1}),
    call(SYS_faccessat2, {1}),
    call(SYS_readlinkat, {1, 2}),
    call(SYS_getcwd, {0}),
    call(SYS_chdir, {0}),
    call(SYS_mkdirat, {1}),
    call(SYS_unlinkat, {1}),
    call(SYS_renameat2, {1, 3}),
    call(SYS_linkat, {1, 3}),
    call(SYS_symlinkat, {0, 2}),
    call(SYS_fchmodat, {1}),
    call(SYS_fchownat, {1}),
    call(SYS_truncate, {0}),
    call(SYS_statfs, {0, 1}),
    call(SYS_fstatfs, {1}),
    call(SYS_utimensat, {1, 2}),
    call(SYS_execve, {0, 1, 2}),
    call(SYS_execveat, {1, 2, 3}),
    call(SYS_wait4, {1, 3}),
    call(SYS_waitid, {2, 4}),
    call(SYS_clock_gettime, {1}),
    call(SYS_connect, {1}),
    call(SYS_bind, {1}),
    call(SYS_accept, {1, 2}),
    call(SYS_accept4, {1, 2}),
    call(SYS_getsockname, {1, 2}),
    call(SYS_getpeername, {1, 2}),
    call(SYS_setsockopt, {3}),
    call(SYS_getsockopt, {3, 4}),
    call(SYS_pipe2, {0}),
    call(SYS_socketpair, {3}),
    call(SYS_uname, {0}),
    call(SYS_sysinfo, {0}),
    call(SYS_times, {0}),
    call(SYS_getrusage, {1}),
    call(SYS_prlimit64, {2, 3}),
    call(SYS_sched_getaffinity, {2}),
    call(SYS_sched_setaffinity, {2}),
    call(SYS_rt_sigaction, {1, 2}),
    call(SYS_rt_sigsuspend, {0}),
    call(SYS_rt_sigtimedwait, {0, 1, 2}),
    call(SYS_sigaltstack, {0, 1}),
    call(SYS_timer_create, {1, 2}),
    call(SYS_timer_settime, {2, 3}),
    call(SYS_timerfd_settime, {2, 3}),
    call(SYS_timerfd_gettime, {1}),
    call(SYS_sendfile, {2}),
    call(SYS_splice, {1, 3}),
    call(SYS_copy_file_range, {1, 3}),
    call(SYS_vmsplice, {1}),
    call(SYS_process_vm_readv, {1, 3}),
    call(SYS_process_vm_writev, {1, 3}),
    call(SYS_memfd_create, {0}),
    call(SYS_mincore, {2}),
    call(SYS_getgroups, {1}),
    call(SYS_setgroups, {1}),
    call(SYS_getxattr, {0, 1, 2}),
    call(SYS_lgetxattr, {0, 1, 2}),
    call(SYS_fgetxattr, {1, 2}),
    call(SYS_setxattr, {0, 1, 2}),
    call(SYS_fsetxattr, {1, 2}),
    call(SYS_listxattr, {0, 1}),
    call(SYS_flistxattr, {1}),
    call(SYS_inotify_add_watch, {1}),
#ifdef SYS_open
    call(SYS_open, {0}),
    call(SYS_stat, {0, 1}),
    call(SYS_lstat, {0, 1}),
    call(SYS_access, {0}),
    call(SYS_select, {1, 2, 3, 4}),
    call(SYS_getdents, {1}),
    call(SYS_readlink, {0, 1}),
    call(SYS_mkdir, {0}),
    call(SYS_rmdir, {0}),
    call(SYS_unlink, {0}),
    call(SYS_rename, {0, 1}),
    call(SYS_link, {0, 1}),
    call(SYS_symlink, {0, 1}),
    call(SYS_chmod, {0}),
    call(SYS_chown, {0}),
    call(SYS_utimes, {0, 1}),
    call(SYS_pipe, {0}),
    call(SYS_getrlimit, {1}),
    call(SYS_setrlimit, {1}),
    call(SYS_gettimeofday, {0, 1}),
#endif
};

// With these the kernel's own threads use the program's memory, and meet absent pages. Most programs do without them,
// as in containers that forbid them.
constexpr std::array calls_refused{SYS_io_uring_setup, SYS_io_setup};

/// The filter's program: for each call, a comparison with its number and checks of its arguments.
class Filter {
 public:
  constexpr Filter() {
    add(load(offsetof(seccomp_data, nr)));
    for (const Call& each : calls) add_checks(each);
    for (const long each : calls_refused) {
      add(jump(BPF_JEQ, static_cast<std::uint32_t>(each), 0, 1));
      add(answer(SECCOMP_RET_ERRNO | ENOSYS));
    }
    add(answer(SECCOMP_RET_ALLOW));
  }
  [[nodiscard]] constexpr sock_fprog program() noexcept {
    return {.len = static_cast<unsigned short>(used_), .filter = code_.data()};
  }

 private:
  static constexpr sock_filter load(std::size_t offset) {
    return {.code = BPF_LD | BPF_W | BPF_ABS, .jt = 0, .jf = 0, .k = static_cast<std::uint32_t>(offset)};
  }
  static constexpr sock_filter jump(unsigned how, std::uint32_t value, unsigned if_true, unsigned if_false) {
    return {.code = static_cast<std::uint16_t>(BPF_JMP | how | BPF_K),
            .jt = static_cast<std::uint8_t>(if_true),
            .jf = static_cast<std::uint8_t>(if_false),
            .k = value};
  }
  static constexpr sock_filter answer(std::uint32_t what) {
    return {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = what};
  }
  constexpr void add(sock_filter each) { code_[used_++] = each; }

  // Compares the upper half of each address with that of the zone.
  constexpr void add_checks(const Call& each) {
    constexpr std::uint32_t first = zone_start >> 32;
    constexpr std::uint32_t end = (zone_start + zone_bytes) >> 32;
    const std::size_t jump_over = used_;
    add({});
    for (unsigned i = 0; i < 6; ++i) {
      if ((each.addresses & 1U << i) == 0) continue;
      add(load(offsetof(seccomp_data, args) + i * 8 + 4));
      add(jump(BPF_JGE, first, 0, trap_instructions + 1));
      add(jump(BPF_JGE, end, trap_instructions, 0));
      add_trap();
    }
    add(answer(SECCOMP_RET_ALLOW));
    code_[jump_over] =
        jump(BPF_JEQ, static_cast<std::uint32_t>(each.number), 0, static_cast<unsigned>(used_ - jump_over - 1));
  }

  // The only code in the zone's first 4 GiB is that of call_unfiltered().
  constexpr void add_trap() {
    add(load(offsetof(seccomp_data, instruction_pointer) + 4));
    add(jump(BPF_JEQ, zone_start >> 32, 0, 1));
    add(answer(SECCOMP_RET_ALLOW));
    add(answer(SECCOMP_RET_TRAP | filter_mark));
  }
  static constexpr unsigned trap_instructions = 4;

  std::array<sock_filter, 4096> code_{};  // as many as the kernel allows
  std::size_t used_ = 0;
};
constinit Filter filter{};

// long call_unfiltered(long number, const long words[6])
constexpr auto code = std::to_array<unsigned char>({
#if defined(__x86_64__)
  0xf3, 0x0f, 0x1e, 0xfa,      // endbr64
      0x48, 0x89, 0xf8,        // mov %rdi, %rax
      0x49, 0x89, 0xf3,        // mov %rsi, %r11
      0x49, 0x8b, 0x3b,        // mov (%r11), %rdi
      0x49, 0x8b, 0x73, 0x08,  // mov 8(%r11), %rsi
      0x49, 0x8b, 0x53, 0x10,  // mov 16(%r11), %rdx
      0x4d, 0x8b, 0x53, 0x18,  // mov 24(%r11), %r10
      0x4d, 0x8b, 0x43, 0x20,  // mov 32(%r11), %r8
      0x4d, 0x8b, 0x4b, 0x28,  // mov 40(%r11), %r9
      0x0f, 0x05,              // syscall
      0xc3,                    // ret
#elif defined(__aarch64__)
  0xe8, 0x03, 0x00, 0xaa,      // mov x8, x0
      0xe9, 0x03, 0x01, 0xaa,  // mov x9, x1
      0x20, 0x05, 0x40, 0xa9,  // ldp x0, x1, [x9]
      0x22, 0x0d, 0x41, 0xa9,  // ldp x2, x3, [x9, #16]
      0x24, 0x15, 0x42, 0xa9,  // ldp x4, x5, [x9, #32]
      0x01, 0x00, 0x00, 0xd4,  // svc #0
      0xc0, 0x03, 0x5f, 0xd6,  // ret
#endif
});

int install() noexcept {
  sock_fprog program = filter.program();
  // With TSYNC the result may also be the number of a thread that has other filters.
  const long done = system_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  return is_error(done) ? error_of(done) : done == 0 ? 0 : EBUSY;
}

}  // namespace

bool can_filter_calls() noexcept {
  const std::uint32_t action = SECCOMP_RET_TRAP;
  return !is_error(system_call(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action));
}

int map_unfiltered_code() noexcept {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  const long at = system_call(SYS_mmap, zone_start, page_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (is_error(at)) return error_of(at);
  int error = at == static_cast<long>(zone_start) ? 0 : EEXIST;  // an address space without these addresses
  if (error == 0) {
    std::memcpy(pointer_to(zone_start), code.data(), code.size());
    __builtin___clear_cache(static_cast<char*>(pointer_to(zone_start)),
                            static_cast<char*>(pointer_to(zone_start)) + code.size());
    error = error_of(system_call(SYS_mprotect, zone_start, page_bytes, PROT_READ | PROT_EXEC));
  }
  if (error != 0) (void)system_call(SYS_munmap, at, page_bytes);
  return error;
}

int filter_calls() noexcept {
  const int error = install();
  if (error != EACCES) return error;
  (void)system_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return install();
}

long call_unfiltered(long number, const std::array<long, 6>& words) {
  return reinterpret_cast<long (*)(long, const long*)>(zone_start)(number, words.data());
}

}  // namespace tonari::far
