#include "cli/launch_program.hpp"

#include "base/error.hpp"
#include "job/ending.hpp"

#include <tonari/status.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

namespace tonari::cli {

namespace {

constexpr int not_found = 127;
constexpr int not_executable = 126;

enum class Found : std::uint8_t { nothing, directory, file, executable };

Found look_at(const std::string& path) noexcept {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return Found::nothing;
  if (S_ISDIR(status.st_mode)) return Found::directory;
  return ::access(path.c_str(), X_OK) == 0 ? Found::executable : Found::file;
}

// Calls `see` with the path that the program would have in each folder of PATH.
template <class See>
void look_through_path(const std::string& program, const See& see) {
  const char* const variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? "/bin:/usr/bin" : variable;
  while (true) {
    const auto colon = rest.find(':');
    const std::string folder{colon == 0 || rest.empty() ? "." : rest.substr(0, colon)};
    see(fmt::format("{}/{}", folder, program));
    if (colon == rest.npos) return;
    rest.remove_prefix(colon + 1);
  }
}

/// The best match in PATH, and its path.
struct Place {
  Found found = Found::nothing;
  std::string path;
};

Place look_in_path(const std::string& program) {
  Place best;
  look_through_path(program, [&best](const std::string& path) {
    if (const Found found = look_at(path); found > best.found) best = {found, path};
  });
  return best;
}

ProgramError not_there(const std::string& program, bool has_folder) {
  if (has_folder) {
    struct stat status;
    const int error = ::stat(program.c_str(), &status) == 0 ? ENOENT : errno;
    const bool is_plain = error == ENOENT;  // otherwise a folder that may not be searched, or a circle of links
    return {is_plain ? fmt::format("there is no file {}", program)
                     : fmt::format("{} cannot be reached: {}", program, std::generic_category().message(error)),
            not_found};
  }
  if (look_at("./" + program) == Found::executable) {
    return {fmt::format("{} is not in PATH, but in this folder: write ./{}", program, program), not_found};
  }
  return {fmt::format("{} is not in PATH; write a program elsewhere with its folder, as in ./{}", program, program),
          not_found};
}

// Runs in the new process, which may call only functions that are safe in signal handlers.
[[noreturn]] void become_rank(const Birth& birth, int input, const Pipe& output, const Pipe& error, pid_t parent) {
  if (birth.own_group) ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before the line above
  if (input >= 0) ::dup2(input, STDIN_FILENO);
  ::dup2(output.writer.number(), STDOUT_FILENO);
  ::dup2(error.writer.number(), STDERR_FILENO);
  if (birth.processors) ::sched_setaffinity(0, sizeof *birth.processors, &*birth.processors);
  ::setrlimit(RLIMIT_NOFILE, &birth.descriptors);
  ::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &birth.signals, nullptr);
  ::execvpe(birth.arguments[0], const_cast<char* const*>(birth.arguments), const_cast<char* const*>(birth.environment));
  const ExecFailure failure{.rank = birth.rank, .error = errno};
  [[maybe_unused]] const auto written = ::write(birth.report, &failure, sizeof failure);
  ::_exit(not_found);
}

}  // namespace

std::optional<ProgramError> check_program(const std::string& program) {
  if (program.empty()) return ProgramError{"the program's name is empty", not_found};
  const bool has_folder = program.find('/') != program.npos;
  switch (has_folder ? look_at(program) : look_in_path(program).found) {
    case Found::nothing: return not_there(program, has_folder);
    case Found::directory: return ProgramError{fmt::format("{} is a folder, not a program", program), not_executable};
    case Found::file:
      return ProgramError{fmt::format("{} is not executable; if it is a program: chmod +x {}", program, program),
                          not_executable};
    case Found::executable: return std::nullopt;
  }
  return std::nullopt;
}

std::string path_of_program(const std::string& program) {
  return program.find('/') != program.npos ? program : look_in_path(program).path;
}

std::vector<std::string> all_paths_of_program(const std::string& name) {
  std::vector<std::string> paths;
  look_through_path(name, [&paths](const std::string& path) {
    if (look_at(path) == Found::executable) paths.push_back(path);
  });
  return paths;
}

ProgramError explain_exec_failure(const std::string& program, int error) {
  if (auto told = check_program(program)) return *std::move(told);
  if (error == ENOENT) {
    return {
        fmt::format("{} exists, but not the interpreter that its first line names, or the loader that it was linked "
                    "for",
                    program),
        not_found};
  }
  return {fmt::format("{} does not start: {}", program, std::generic_category().message(error)), not_executable};
}

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_system_error("pipe2", "see ulimit -n");
  return {.reader = FileDescriptor{ends[0]}, .writer = FileDescriptor{ends[1]}};
}

Newborn give_birth(const Birth& birth) {
  Pipe output = make_pipe();
  Pipe error = make_pipe();
  FileDescriptor nothing;
  if (!birth.keeps_input) {
    nothing = FileDescriptor{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    if (!nothing) throw_system_error("opening /dev/null");
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    throw_system_error(fmt::format("starting rank {}", birth.rank),
                       "use fewer ranks, or raise the limit of processes: see ulimit -u, and pids.max of the control "
                       "group");
  }
  if (pid == 0) become_rank(birth, nothing.number(), output, error, parent);

  if (birth.own_group) ::setpgid(pid, pid);  // the child does the same: the first of the two calls has the effect
  return {.pid = pid,
          .process = job::open_own_process(pid),
          .output = std::move(output.reader),
          .error = std::move(error.reader)};
}

}  // namespace tonari::cli
