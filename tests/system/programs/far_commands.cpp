// A program that knows nothing of tonari: it starts other programs in all ways of libc, with commands, arguments,
// variables and file actions in large memory, and sets handlers and masks of signals in all older ways. Prints "ok", or
// says what went wrong.
//   far_commands CASE

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <string_view>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
extern "C" sighandler_t bsd_signal(int number, sighandler_t handler) noexcept;

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t all_bytes = 48 << 20;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::_Exit(1);
}

char* far_memory() {
  static char* const memory = static_cast<char*>(std::malloc(all_bytes));
  return memory;
}

/// Returns a page of its own in large memory.
char* fresh() {
  static std::size_t used = 0;
  used += 16 * page;
  return far_memory() + used;
}

char* far_text(const char* text) { return std::strcpy(fresh(), text); }

/// Touches so much memory that the pages touched before it leave.
void sweep() {
  static volatile char* const memory = static_cast<char*>(std::malloc(all_bytes));
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < all_bytes; i += page) memory[i] = 1;
  }
}

/// Moves the list of variables and one variable to large memory.
void move_variables() {
  auto** const list = reinterpret_cast<char**>(fresh());
  std::size_t count = 0;
  for (char** each = environ; *each != nullptr; ++each) {
    if (std::strncmp(*each, "FAR_VARIABLE=", 13) != 0) list[count++] = *each;
  }
  list[count++] = far_text("FAR_VARIABLE=7");
  for (std::size_t i = 0; i < count; ++i) {
    if (std::strncmp(list[i], "PATH=", 5) == 0) list[i] = far_text(list[i]);
  }
  list[count] = nullptr;
  environ = list;
}

bool has_ended(int status, int code) { return WIFEXITED(status) && WEXITSTATUS(status) == code; }

void wait_for(pid_t child, int code, const char* what) {
  int status = -1;
  check(::waitpid(child, &status, 0) == child && has_ended(status, code), what);
}

bool has_no_children() { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

sighandler_t handler_of(int signal) {
  struct sigaction found {};
  check(::sigaction(signal, nullptr, &found) == 0, "sigaction");
  return found.sa_handler;
}

bool is_blocked(int signal) {
  sigset_t mask;
  check(::sigprocmask(SIG_BLOCK, nullptr, &mask) == 0, "sigprocmask");
  return sigismember(&mask, signal) == 1;
}

void on_interrupt(int) {}

int run(const char* command) {
  char* const text = far_text(command);
  sweep();
  return std::system(text);
}

void systems() {
  move_variables();
  check(has_ended(run("exit $FAR_VARIABLE"), 7), "system");
  check(has_ended(std::system("exit 3"), 3), "system with a local command");
  sweep();
  check(std::system(nullptr) != 0, "system without a command");
  check(has_ended(run("/no/such/program 2> /dev/null"), 127), "system with a missing program");
  check(WTERMSIG(run("kill -9 $$")) == SIGKILL, "system with a program that is killed");

  // the signals of the keyboard: ignored here, but not in the child
  ::signal(SIGINT, on_interrupt);
  ::signal(SIGQUIT, SIG_IGN);
  const std::string own = std::to_string(::getpid());
  check(has_ended(run(("kill -INT " + own + "; kill -QUIT " + own + "; exit 5").c_str()), 5), "signals while it waits");
  check(WTERMSIG(run("kill -INT $$")) == SIGINT, "the child's SIGINT");
  check(has_ended(run("kill -QUIT $$; exit 6"), 6), "the child's SIGQUIT");
  check(handler_of(SIGINT) == on_interrupt && handler_of(SIGQUIT) == SIG_IGN, "handlers after system");
  check(!is_blocked(SIGCHLD), "SIGCHLD after system");
  check(has_ended(run("grep -q '^SigBlk:.0000000000000000$' /proc/self/status"), 0), "the child's mask");
  check(has_no_children(), "children after system");
}

std::FILE* open_command(const char* command, const char* mode) {
  char* const text = far_text(command);
  sweep();
  std::FILE* const stream = ::popen(text, mode);
  check(stream != nullptr, "popen");
  sweep();
  return stream;
}

bool closes_on_exec(std::FILE* stream) { return (::fcntl(::fileno(stream), F_GETFD) & FD_CLOEXEC) != 0; }

void pipes(std::FILE* early_reader, std::FILE* early_writer) {
  move_variables();
  std::FILE* const reader = open_command("echo $FAR_VARIABLE; exit 2", "r");
  int number = 0;
  check(std::fscanf(reader, "%d", &number) == 1 && number == 7 && !closes_on_exec(reader), "popen to read");
  check(has_ended(::pclose(reader), 2), "pclose of a reader");
  std::FILE* const writer = open_command("read word; exit $word", "we");
  check(closes_on_exec(writer) && std::fputs("9\n", writer) >= 0, "popen to write");
  check(has_ended(::pclose(writer), 9), "pclose of a writer");
  std::FILE* const closed = open_command("exit 4", "r");
  check(has_ended(std::fclose(closed), 4), "fclose of a command's stream");

  // A child that keeps the pipe of another one would let that one wait for ever.
  std::FILE* const first = open_command("cat > /dev/null", "w");
  std::FILE* const second = open_command("cat > /dev/null", "w");
  check(has_ended(::pclose(early_writer), 0), "pclose of a stream that is older than far memory");
  check(has_ended(::pclose(first), 0) && has_ended(::pclose(second), 0), "pclose of several streams");
  check(has_ended(::pclose(early_reader), 8), "pclose of a reader that is older than far memory");
  check(::popen("true", "rw") == nullptr && errno == EINVAL, "a mode that is not valid");
  check(has_no_children(), "children after pclose");
}

// Executes in a child that was forked, and in one that shares its memory.
void execute(const char* what, int code, const std::function<void()>& call) {
  sweep();
  const pid_t forked = ::fork();
  if (forked == 0) {
    call();
    ::_exit(99);
  }
  wait_for(forked, code, what);
  sweep();
  const pid_t sharing = ::vfork();
  if (sharing == 0) {
    call();
    ::_exit(99);
  }
  wait_for(sharing, code, what);
}

char* const end_of_words = nullptr;

// Only the texts are in large memory: no argument of the system call is.
void execute_with_far_texts() {
  ::setenv("FAR_VARIABLE", "2", 1);
  char* const option = far_text("-c");
  char* const command = far_text("exit $FAR_VARIABLE");
  char* const own_variable = far_text("FAR_VARIABLE=3");
  const std::array<char*, 4> words{far_text("sh"), option, command, nullptr};
  const std::array<char*, 2> variables{own_variable, nullptr};
  execute("execl of far texts", 2, [&] { ::execl("/bin/sh", "sh", option, command, end_of_words); });
  execute("execlp of far texts", 2, [&] { ::execlp("sh", "sh", option, command, end_of_words); });
  execute("execle of far texts", 3,
          [&] { ::execle("/bin/sh", "sh", option, command, end_of_words, variables.data()); });
  execute("execv of far texts", 2, [&] { ::execv("/bin/sh", words.data()); });
  execute("execve of far texts", 3, [&] { ::execve("/bin/sh", words.data(), variables.data()); });
}

void executions() {
  execute_with_far_texts();
  move_variables();
  char* const shell = far_text("/bin/sh");
  char* const name = far_text("sh");
  char* const option = far_text("-c");
  char* const command = far_text("exit $FAR_VARIABLE");
  const std::array<char*, 4> words{name, option, command, nullptr};
  const std::array<char*, 2> variables{far_text("FAR_VARIABLE=3"), nullptr};
  execute("execl", 7, [&] { ::execl(shell, name, option, command, end_of_words); });
  execute("execl with local texts", 7, [&] { ::execl("/bin/sh", "sh", "-c", "exit $FAR_VARIABLE", end_of_words); });
  execute("execlp", 7, [&] { ::execlp(name, name, option, command, end_of_words); });
  execute("execle", 3, [&] { ::execle(shell, name, option, command, end_of_words, variables.data()); });
  execute("execv", 7, [&] { ::execv("/bin/sh", words.data()); });
  execute("execvp", 7, [&] { ::execvp("sh", words.data()); });
  execute("execve", 3, [&] { ::execve(shell, words.data(), variables.data()); });
  execute("a raw execve", 3, [&] { ::syscall(SYS_execve, shell, words.data(), variables.data()); });
}

// Where small allocations are large memory, too, the first ones are not.
void allocate_much() {
  for (std::size_t done = 0, bytes = 16; done < (24 << 20); done += bytes, bytes = bytes % 8192 + 16) {
    *static_cast<volatile char*>(std::malloc(bytes)) = 1;
  }
}

// So many and so long that libc's memory for them is in pages of its own.
void add_actions(posix_spawn_file_actions_t* actions, const std::string& folder) {
  check(::posix_spawn_file_actions_init(actions) == 0, "init");
  for (int i = 0; i < 500; ++i) check(::posix_spawn_file_actions_addclose(actions, 100 + i % 100) == 0, "addclose");
  check(::posix_spawn_file_actions_addchdir_np(actions, folder.c_str()) == 0, "addchdir_np");
  const std::string path = "./" + std::string(3500, '/') + "written";
  check(::posix_spawn_file_actions_addopen(actions, 5, path.c_str(), O_WRONLY | O_CREAT, 0600) == 0, "addopen");
  check(::posix_spawn_file_actions_adddup2(actions, 5, STDOUT_FILENO) == 0, "adddup2");
}

void spawns() {
  ::setenv("PATH", "/no/such/folder::/usr/bin:/bin", 1);  // each user may read these
  allocate_much();
  move_variables();
  std::string folder = "/tmp/far_commands.XXXXXX";
  check(::mkdtemp(folder.data()) != nullptr, "mkdtemp");
  const std::string written = folder + "/written";
  auto* const actions = new (fresh()) posix_spawn_file_actions_t;
  add_actions(actions, folder);
  const std::array<char*, 4> words{far_text("sh"), far_text("-c"), far_text("echo hello; exit $FAR_VARIABLE"), nullptr};
  const auto succeeds = [&](const char* what, auto call, const char* program) {
    sweep();
    pid_t child = 0;
    errno = call(&child, program, actions, nullptr, words.data(), environ);
    check(errno == 0, what);
    wait_for(child, 7, what);
    check(::access(written.c_str(), F_OK) == 0 && ::unlink(written.c_str()) == 0, "the file that a child writes");
  };
  succeeds("posix_spawn", ::posix_spawn, far_text("/bin/sh"));
  succeeds("posix_spawnp", ::posix_spawnp, far_text("sh"));
  succeeds("posix_spawnp with a path", ::posix_spawnp, "/bin/sh");
  pid_t child = 0;
  const auto fails = [&](const char* name) {
    return ::posix_spawnp(&child, name, actions, nullptr, words.data(), environ);
  };
  check(fails("no such program") == ENOENT && fails("") == ENOENT, "posix_spawnp of a missing program");
  check(::posix_spawn_file_actions_destroy(actions) == 0, "destroy");
  check(::access(written.c_str(), F_OK) == 0 ? ::unlink(written.c_str()) == 0 : true, "unlink");
  check(::rmdir(folder.c_str()) == 0, "rmdir");
}

std::atomic<int> handled{0};
void on_signal(int) {
  if (++handled > 100) std::_Exit(3);  // an absent page would call it for ever
}

// Far memory can be reached by the program and by its system calls.
void reach_far_memory(const char* what) {
  char* const text = fresh();
  sweep();
  check(::syscall(SYS_getcwd, text, page) > 0 && text[0] == '/', what);
  sweep();
  check(text[0] == '/', what);
}

void signals() {
  far_memory()[0] = 1;
  const std::map<const char*, std::function<sighandler_t(int, sighandler_t)>> setters{
      {"bsd_signal", bsd_signal},
      {"ssignal", ::ssignal},
      {"sigset", ::sigset},
      {"sysv_signal", ::sysv_signal},
      {"__sysv_signal", ::__sysv_signal}};
  for (const int signal : {SIGBUS, SIGSYS, SIGUSR1}) {
    for (const auto& [name, set] : setters) {
      check(set(signal, on_signal) == SIG_DFL && handler_of(signal) == on_signal, name);
      reach_far_memory(name);
      handled = 0;
      check(::raise(signal) == 0 && handled == 1, name);
      const bool stays = std::string_view(name).find("sysv") == std::string_view::npos;
      check(set(signal, SIG_DFL) == (stays ? on_signal : SIG_DFL), name);
    }
    check(::sigignore(signal) == 0 && handler_of(signal) == SIG_IGN && ::raise(signal) == 0, "sigignore");
    reach_far_memory("sigignore");
    check(::sigset(signal, SIG_HOLD) == SIG_IGN, "sigset to hold");
    reach_far_memory("sigset to hold");
    check(::sighold(signal) == 0, "sighold");
    reach_far_memory("sighold");
    check(signal != SIGUSR1 || is_blocked(signal), "the mask after sighold");
    check(::sigrelse(signal) == 0 && !is_blocked(signal), "sigrelse");
  }
  check(::sigblock(~0) == 0 && is_blocked(SIGUSR2), "sigblock");
  reach_far_memory("sigblock");
  ::sigsetmask(~0);
  check(is_blocked(SIGUSR2), "sigsetmask");
  reach_far_memory("sigsetmask");
}

}  // namespace

int main(int count, char** words) {
  const std::string_view wanted = count > 1 ? words[1] : "";
  if (wanted == "pipes") {
    std::FILE* const reader = ::popen("exit 8", "r");  // by libc: there is no far memory yet
    std::FILE* const writer = ::popen("cat > /dev/null", "w");
    check(reader != nullptr && writer != nullptr, "popen");
    pipes(reader, writer);
  } else if (wanted == "systems") {
    systems();
  } else if (wanted == "executions") {
    executions();
  } else if (wanted == "spawns") {
    spawns();
  } else if (wanted == "signals") {
    signals();
  } else {
    std::fprintf(stderr, "far_commands: name a case\n");
    return 2;
  }
  std::puts("ok");
}
