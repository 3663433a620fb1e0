// Runs a command in a sandbox like a container's: without capabilities, and with a filter that refuses with EPERM the
// system calls that Docker and Podman refuse by default.
// Usage: sandboxed [--allow-userfaultfd] [--refuse clone3|sched_getaffinity|sched_setaffinity] COMMAND ARGUMENT...

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

constexpr int refused[] = {
    SYS_acct,
    SYS_add_key,
    SYS_bpf,
    SYS_delete_module,
    SYS_finit_module,
    SYS_get_mempolicy,
    SYS_init_module,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_io_uring_setup,
    SYS_kcmp,
    SYS_kexec_load,
    SYS_keyctl,
    SYS_mbind,
    SYS_mount,
    SYS_move_pages,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_perf_event_open,
    SYS_pidfd_getfd,
    SYS_pivot_root,
    SYS_process_madvise,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_ptrace,
    SYS_quotactl,
    SYS_reboot,
    SYS_request_key,
    SYS_set_mempolicy,
    SYS_setns,
    SYS_swapoff,
    SYS_swapon,
    SYS_umount2,
    SYS_unshare,
    SYS_userfaultfd,
};

sock_filter answer(unsigned what) { return BPF_STMT(BPF_RET | BPF_K, what); }

// The call that --refuse names; -1 for any other name.
int number_of(std::string_view call) {
  if (call == "clone3") return SYS_clone3;
  if (call == "sched_getaffinity") return SYS_sched_getaffinity;
  if (call == "sched_setaffinity") return SYS_sched_setaffinity;
  return -1;
}

bool filter_system_calls(bool allows_userfaultfd, int also_refused) {
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  const auto add = [&](int number, int error) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1));
    program.push_back(answer(SECCOMP_RET_ERRNO | static_cast<unsigned>(error)));
  };
  for (const int number : refused) {
    if (number != SYS_userfaultfd || !allows_userfaultfd) add(number, EPERM);
  }
  if (also_refused >= 0) add(also_refused, EPERM);
  add(SYS_clone3, ENOSYS);  // no filter can see its arguments
  program.push_back(answer(SECCOMP_RET_ALLOW));
  const sock_fprog all{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
}

// After an exec the program has none, even as root.
void drop_capabilities() {
  for (unsigned long capability = 0; ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; ++capability) {
  }
}

}  // namespace

int main(int count, char** words) {
  int command = 1;
  const bool allows_userfaultfd = command < count && words[command] == std::string_view("--allow-userfaultfd");
  if (allows_userfaultfd) ++command;
  int also_refused = -1;
  if (command + 1 < count && words[command] == std::string_view("--refuse")) {
    also_refused = number_of(words[command + 1]);
    if (also_refused < 0) return 2;
    command += 2;
  }
  if (command >= count) return 2;
  drop_capabilities();
  if (!filter_system_calls(allows_userfaultfd, also_refused)) {
    std::fprintf(stderr, "sandboxed: seccomp: %s\n", std::strerror(errno));
    return 2;
  }
  ::execvp(words[command], words + command);
  std::fprintf(stderr, "sandboxed: %s: %s\n", words[command], std::strerror(errno));
  return 127;
}
