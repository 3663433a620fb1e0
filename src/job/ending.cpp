#include "job/ending.hpp"

#include "base/error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace tonari::job {

namespace {

Ending from_wait_status(int wait_status) noexcept {
  if (WIFSIGNALED(wait_status)) return {.signal = WTERMSIG(wait_status), .status = 0};
  return {.signal = 0, .status = WEXITSTATUS(wait_status)};
}

std::optional<Ending> ending_of_child(pid_t id) noexcept {
  siginfo_t info{};
  // WNOWAIT: the code that started the child still has to wait for it. Until then the kernel does not reuse its number.
  if (::waitid(P_PID, static_cast<id_t>(id), &info, WEXITED | WNOWAIT | WNOHANG) != 0 || info.si_pid != id) {
    return std::nullopt;
  }
  if (info.si_code == CLD_EXITED) return Ending{.signal = 0, .status = info.si_status};
  return Ending{.signal = info.si_status, .status = 0};
}

// Reads up to 4 KiB of a file of /proc. Empty if its process has vanished, which may happen at any moment.
std::string read_whole(const std::string& path) {
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  std::array<char, 4096> text;
  const auto bytes = file ? ::read(file.number(), text.data(), text.size()) : -1;
  return bytes > 0 ? std::string{text.data(), static_cast<std::size_t>(bytes)} : std::string{};
}

// The last field of /proc/PID/stat is the wait status until the parent has waited. The kernel shows it to processes of
// the same user.
std::optional<Ending> ending_left_in_proc(pid_t id) {
  const std::string line = read_whole(fmt::format("/proc/{}/stat", id));
  const auto name_end = line.rfind(')');
  if (name_end == line.npos || line.size() < name_end + 3) return std::nullopt;
  const char state = line[name_end + 2];
  if (state != 'Z' && state != 'X') return std::nullopt;
  return from_wait_status(std::atoi(line.c_str() + line.rfind(' ')));
}

// After the parent has waited, the kernel still reports the status from version 6.15 on. Info is struct pidfd_info of
// linux/pidfd.h as first published; the headers of Debian 12 do not have it.
std::optional<Ending> ending_told_by_kernel(const FileDescriptor& process) noexcept {
  constexpr std::uint64_t want_ending = 1 << 3;  // PIDFD_INFO_EXIT
  struct Info {
    std::uint64_t mask = want_ending;
    std::uint64_t control_group = 0;
    std::uint32_t numbers[11] = {};  // process, thread group, parent; user and group: real, effective, saved, file
    std::int32_t wait_status = 0;
  } info;
  static_assert(sizeof(Info) == 64);
  constexpr auto get_info = _IOWR(0xFF, 11, Info);  // PIDFD_GET_INFO
  if (::ioctl(process.number(), get_info, &info) != 0 || (info.mask & want_ending) == 0) return std::nullopt;
  return from_wait_status(info.wait_status);
}

}  // namespace

std::string describe(const Ending& ending) {
  if (ending.signal != 0) return fmt::format("was killed by signal {} ({})", ending.signal, ::strsignal(ending.signal));
  if (ending.status == Ending::unknown) return "ended (its exit status is known only to the program that it ran under)";
  return fmt::format("exited with status {}", ending.status);
}

FileDescriptor open_process(pid_t process) noexcept {
  return FileDescriptor{static_cast<int>(::syscall(SYS_pidfd_open, process, 0))};  // the kernel sets close-on-exec
}

FileDescriptor open_own_process(pid_t process) {
  FileDescriptor opened = open_process(process);
  if (!opened) {
    throw_system_error("pidfd_open", errno == EMFILE || errno == ENFILE
                                         ? "raise the limit of open files: see ulimit -n"
                                         : "use Linux 5.3 or later; a container's filter must let the call through");
  }
  return opened;
}

Ending ending_of(const FileDescriptor& process, pid_t id) noexcept {
  if (const auto ending = ending_of_child(id)) return *ending;
  if (const auto ending = ending_left_in_proc(id)) return *ending;
  if (const auto ending = ending_told_by_kernel(process)) return *ending;
  return {.signal = 0, .status = Ending::unknown};
}

void send_signal(const FileDescriptor& process, int signal) noexcept {
  if (process) ::syscall(SYS_pidfd_send_signal, process.number(), signal, nullptr, 0);
}

}  // namespace tonari::job
