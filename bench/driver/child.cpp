#include "driver/child.hpp"

#include "base/error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>

namespace tonari::bench::driver {

namespace {

constexpr std::array stop_signals{SIGINT, SIGTERM, SIGHUP};
constexpr int seconds_to_stop = 5;

sigset_t watched_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  for (const int signal : stop_signals) ::sigaddset(&set, signal);
  return set;
}

sigset_t mask_before;

/// Waits for a watched signal and returns it; 0 if none comes in time.
int wait_for_signal(long milliseconds) {
  const auto set = watched_signals();
  const timespec time{.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1'000'000};
  const int signal = ::sigtimedwait(&set, nullptr, &time);
  return signal > 0 ? signal : 0;
}

/// The child's side of fork: executes the command.
[[noreturn]] void become(const Command& command, const std::vector<char*>& arguments, int output) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  for (const auto& pair : command.environment) ::putenv(const_cast<char*>(pair.c_str()));
  ::sigprocmask(SIG_SETMASK, &mask_before, nullptr);
  ::execvp(arguments[0], arguments.data());
  ::_exit(errno == ENOENT ? 127 : 126);
}

/// Returns whether `child` has ended, and sets its exit status.
bool has_ended(pid_t child, int& exit_status) {
  int status = 0;
  if (::waitpid(child, &status, WNOHANG) != child) return false;
  exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return true;
}

[[noreturn]] void stop(pid_t child, int signal) {
  ::kill(-child, SIGTERM);
  int status = 0;
  for (int tenths = 0; !has_ended(child, status); ++tenths) {
    if (tenths == seconds_to_stop * 10) ::kill(-child, SIGKILL);
    ::usleep(100'000);
  }
  ::kill(-child, SIGKILL);  // processes that a launcher left in its group
  throw Interrupted{signal};
}

}  // namespace

std::string to_string(const Command& command) {
  return fmt::format("{}{}{}", fmt::join(command.environment, " "), command.environment.empty() ? "" : " ",
                     fmt::join(command.arguments, " "));
}

StopSignals::StopSignals() {
  const auto set = watched_signals();
  ::sigprocmask(SIG_BLOCK, &set, &mask_before);
}

StopSignals::~StopSignals() { ::sigprocmask(SIG_SETMASK, &mask_before, nullptr); }

ResultFile::ResultFile() : file_(::memfd_create("tonari-bench", MFD_CLOEXEC)) {
  if (!file_) throw_system_error("memfd_create for the results of a worker");
}

std::string ResultFile::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), file_.number()); }

void ResultFile::read_lines(const std::function<void(std::string_view)>& take) {
  std::array<char, 65536> bytes{};
  for (ssize_t count; (count = ::pread(file_.number(), bytes.data(), bytes.size(), offset_)) > 0;) {
    unfinished_.append(bytes.data(), static_cast<std::size_t>(count));
    offset_ += count;
  }
  std::size_t start = 0;
  for (std::size_t end; (end = unfinished_.find('\n', start)) != unfinished_.npos; start = end + 1) {
    take(std::string_view(unfinished_).substr(start, end - start));
  }
  unfinished_.erase(0, start);
}

int run_child(const Command& command, const std::function<void()>& look, int output) {
  std::vector<char*> arguments;
  for (const auto& argument : command.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw_system_error(fmt::format("fork for {}", command.arguments[0]));
  if (child == 0) become(command, arguments, output);

  int exit_status = 0;
  while (!has_ended(child, exit_status)) {
    const int signal = wait_for_signal(250);
    if (signal != 0 && signal != SIGCHLD) stop(child, signal);
    look();
  }
  look();
  return exit_status;
}

}  // namespace tonari::bench::driver
