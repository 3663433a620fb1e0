#include "base/file_descriptor.hpp"
#include "cli/info.hpp"
#include "cli/launch_hosts.hpp"
#include "job/ending.hpp"
#include "job/memory.hpp"
#include "job/pmix/client.hpp"
#include "pager/userfaultfd.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <system_error>

namespace tonari::cli {

namespace {

// Returns the first line of a file of the kernel; empty if there is no such file.
std::string read_setting(const char* path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns the chosen word of a line such as "always [madvise] never".
std::string chosen(const std::string& line) {
  const auto first = line.find('[');
  const auto last = line.find(']');
  return first == line.npos || last == line.npos ? "" : line.substr(first + 1, last - first - 1);
}

// ---- userfaultfd ----

enum class Faults : std::uint8_t { all, by_device, of_programs, none };

struct FaultService {
  Faults faults = Faults::none;
  int error = 0;
  std::uint64_t features = 0;
};

std::uint64_t features_of(const FileDescriptor& faults) {
  uffdio_api api{};
  api.api = UFFD_API;
  return ::ioctl(faults.number(), UFFDIO_API, &api) == 0 ? api.features : 0;
}

FaultService try_fault_service() {
  constexpr int flags = O_CLOEXEC | O_NONBLOCK;
  if (const FileDescriptor made{static_cast<int>(::syscall(SYS_userfaultfd, flags))}) {
    return {Faults::all, 0, features_of(made)};
  }
  const int error = errno;
  if (const FileDescriptor device{::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC)}) {
    constexpr auto make = _IO(0xAA, 0x00);  // USERFAULTFD_IOC_NEW, of Linux 6.1
    const FileDescriptor made{::ioctl(device.number(), make, flags)};
    if (made) return {Faults::by_device, 0, features_of(made)};
  }
  constexpr int user_mode_only = 1;  // UFFD_USER_MODE_ONLY
  if (const FileDescriptor made{static_cast<int>(::syscall(SYS_userfaultfd, flags | user_mode_only))}) {
    return {Faults::of_programs, error, features_of(made)};
  }
  return {Faults::none, error, 0};
}

Feature check_userfaultfd(const FaultService& service) {
  const bool is_root = ::geteuid() == 0;
  switch (service.faults) {
    case Faults::all:
      return {"userfaultfd", true,
              read_setting("/proc/sys/vm/unprivileged_userfaultfd") == "1"
                  ? "every user may use it"
                  : fmt::format("by {}; for other users: {}", is_root ? "root" : "CAP_SYS_PTRACE",
                                pager::remedy_for_reach)};
    case Faults::by_device: return {"userfaultfd", true, "by access to /dev/userfaultfd"};
    case Faults::of_programs:
      return {"userfaultfd", false,
              fmt::format("only faults of programs, not of system calls, whose data `tonari far` therefore copies; to "
                          "allow all: {}",
                          pager::remedy_for_reach)};
    case Faults::none: break;
  }
  const std::string cause = std::generic_category().message(service.error);
  return {"userfaultfd", false,
          fmt::format("{}: no far memory and no shared arrays; {}", cause,
                      service.error == ENOSYS ? "use a kernel with CONFIG_USERFAULTFD"
                                              : fmt::format("to allow it: {}", pager::remedy_for_reach))};
}

Feature check_write_protection(const FaultService& service) {
  if ((service.features & UFFD_FEATURE_PAGEFAULT_FLAG_WP) != 0) return {"write protection", true, "of userfaultfd"};
  return {"write protection", false,
          "unchanged pages cannot be distinguished from changed ones, so all are written back; use Linux 5.7 or later "
          "on x86-64, 6.2 on aarch64"};
}

Feature check_move(const FaultService& service) {
  constexpr std::uint64_t move = 1 << 16;  // UFFD_FEATURE_MOVE
  if ((service.features & move) != 0) return {"page moves", true, "of userfaultfd"};
  return {"page moves", false, "every page that arrives or leaves is copied once more; use Linux 6.8 or later"};
}

// ---- Reading another process's memory ----

constexpr std::uint64_t marker = 0x6e65'6967'6862'6f75;

// Runs `work` in a child process and returns its status; -1 if it was killed or could not be started.
template <class Work>
int in_child(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

// Lets one child read another one's memory: like ranks, neither is the other's parent. Returns 0 or an errno.
int read_sibling() {
  static const std::uint64_t there = marker;
  std::array<int, 2> ready{};
  if (::pipe2(ready.data(), O_CLOEXEC) != 0) return errno;
  const FileDescriptor reader{ready[0]};
  FileDescriptor writer{ready[1]};
  const pid_t sibling = ::fork();
  if (sibling == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    static_cast<void>(!::write(writer.number(), "", 1));
    for (;;) ::pause();
  }
  if (sibling < 0) return errno;
  writer = {};
  char byte = 0;
  static_cast<void>(!::read(reader.number(), &byte, 1));

  const int error = in_child([&] {
    std::uint64_t found = 0;
    const iovec to{.iov_base = &found, .iov_len = sizeof found};
    const iovec from{.iov_base = const_cast<std::uint64_t*>(&there), .iov_len = sizeof found};
    const auto bytes = ::process_vm_readv(sibling, &to, 1, &from, 1, 0);
    return bytes == sizeof found && found == marker ? 0 : errno;
  });
  ::kill(sibling, SIGKILL);
  ::waitpid(sibling, nullptr, 0);
  return error;
}

Feature check_direct_copies() {
  const int error = read_sibling();
  if (error == 0) return {"process_vm", true, "ranks can copy directly between their memories"};
  const std::string cause = error < 0 ? "a trial failed" : std::generic_category().message(error);
  return {"process_vm", false,
          fmt::format("{}: long messages are copied twice, through bulk memory; {}", cause,
                      error == ENOSYS ? "use a kernel with CONFIG_CROSS_MEMORY_ATTACH"
                                      : "sysctl kernel.yama.ptrace_scope=1, in a container --cap-add=SYS_PTRACE")};
}

Feature check_yama() {
  const std::string scope = read_setting("/proc/sys/kernel/yama/ptrace_scope");
  if (scope.empty()) return {"Yama", true, "not in this kernel"};
  if (scope == "0") return {"Yama", true, "ptrace_scope 0: processes of one user may read each other"};
  if (scope == "1") return {"Yama", true, "ptrace_scope 1: ranks give each other permission when they join"};
  return {"Yama", false,
          fmt::format("ptrace_scope {}: only privileged processes copy directly between their memories; sysctl "
                      "kernel.yama.ptrace_scope=1",
                      scope)};
}

// ---- Limits ----

std::string limit_text(rlim_t limit) { return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit); }

Feature check_locked_memory() {
  constexpr rlim_t enough = 1 << 30;
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return {"locked memory", true, "unlimited"};
  const std::string text = job::memory_text(limit.rlim_cur);
  if (limit.rlim_cur >= enough) return {"locked memory", true, text};
  return {
      "locked memory", false,
      text + ": more memory cannot be registered for RDMA, which only jobs on several hosts use; ulimit -l unlimited"};
}

Feature check_descriptors() {
  constexpr rlim_t enough = 1024;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::string text = fmt::format("{}, at most {}", limit_text(limit.rlim_cur), limit_text(limit.rlim_max));
  if (limit.rlim_max >= enough) return {"descriptors", true, text};
  return {"descriptors", false,
          text + ": `tonari run` needs 5 for each rank, so this limits the size of jobs; ulimit -Hn 4096"};
}

Feature check_processes() {
  constexpr rlim_t enough = 1024;
  rlimit limit{};
  ::getrlimit(RLIMIT_NPROC, &limit);
  const std::string text = limit_text(limit.rlim_cur);
  if (limit.rlim_cur >= enough) return {"processes", true, text};
  return {"processes", false, text + ": each rank needs one process and one thread; ulimit -u 4096"};
}

// ---- Huge pages, descriptors of memory and processes ----

Feature check_huge_pages() {
  const std::string choice = chosen(read_setting("/sys/kernel/mm/transparent_hugepage/enabled"));
  if (choice == "always" || choice == "madvise") return {"huge pages", true, choice};
  return {"huge pages", false,
          "off: far memory moves pages of 4 KiB instead of blocks of 2 MiB; echo madvise > "
          "/sys/kernel/mm/transparent_hugepage/enabled"};
}

Feature check_shared_huge_pages() {
  const std::string choice = chosen(read_setting("/sys/kernel/mm/transparent_hugepage/shmem_enabled"));
  if (!choice.empty() && choice != "never" && choice != "deny") return {"huge pages, shared", true, choice};
  return {"huge pages, shared", false,
          fmt::format("{}: shared memory has 4 KiB pages, and long copies through it miss the TLB more often; echo "
                      "advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled",
                      choice.empty() ? "not in this kernel" : choice)};
}

Feature check_memory_files() {
  const FileDescriptor made{::memfd_create("tonari-info", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (made && ::fcntl(made.number(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) == 0) return {"memfd", true, ""};
  return {"memfd", false,
          std::generic_category().message(errno) + ": no job of more than one rank; use Linux 3.17 or later"};
}

Feature check_process_descriptors() {
  const FileDescriptor made = job::open_process(::getpid());
  if (made) return {"pidfd", true, ""};
  return {"pidfd", false,
          std::generic_category().message(errno) + ": `tonari run` cannot watch its ranks; use Linux 5.3 or later"};
}

// ---- Processors ----

// A virtual machine that halts an idle processor needs its host to wake it: tens of microseconds, at every fault.
Feature check_idle_processors() {
  const std::string name = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
  const std::string patience = read_setting(name.c_str());
  const std::string driver = read_setting("/sys/devices/system/cpu/cpuidle/current_driver");
  if (driver != "haltpoll" || patience != "0") return {"idle processors", true, driver};
  return {"idle processors", false,
          fmt::format("halt at once, and a virtual machine takes long to wake one: faults of far memory take twice as "
                      "long; echo 200000 > {}, or tonari far --bind core",
                      name)};
}

// ---- Several hosts ----

Feature check_pmix() {
  const std::string why = job::pmix::why_absent();
  return why.empty() ? Feature{"PMIx", true, ""} : Feature{"PMIx", false, why + ": no job spans hosts"};
}

Feature check_launchers() {
  std::string found;
  for (const Launcher& launcher : find_launchers()) found += (found.empty() ? "" : ", ") + launcher.text;
  if (!found.empty()) return {"launchers", true, found};
  return {"launchers", false,
          "no launcher with PMIx: ranks start only on this machine; apt-get install openmpi-bin, or use srun of Slurm"};
}

}  // namespace

std::vector<Feature> check_features() {
  const FaultService service = try_fault_service();
  return {check_userfaultfd(service),
          check_write_protection(service),
          check_move(service),
          check_direct_copies(),
          check_yama(),
          check_locked_memory(),
          check_descriptors(),
          check_processes(),
          check_huge_pages(),
          check_shared_huge_pages(),
          check_memory_files(),
          check_process_descriptors(),
          check_idle_processors(),
          check_pmix(),
          check_launchers()};
}

}  // namespace tonari::cli
