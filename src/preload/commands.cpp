#include "preload/commands.hpp"

#include "preload/exported.hpp"
#include "preload/lock.hpp"
#include "preload/next.hpp"
#include "preload/streams.hpp"
#include "preload/unreached.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <span>

// Wraps system() and popen() where memory may be unreached. libc's functions call its own posix_spawn, whose child
// would meet absent memory. These call ours (spawning.cpp).
TONARI_NEXT(system)
TONARI_NEXT(popen)

using namespace tonari::preload;

namespace {

const sigset_t& set_of(sigset_t& set, std::initializer_list<int> signals) noexcept {
  ::sigemptyset(&set);
  for (const int each : signals) ::sigaddset(&set, each);
  return set;
}

/// Starts the shell. `attributes` may be nullptr. Returns 0 or an error number.
int start_shell(const char* command, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
                pid_t& process) noexcept {
  const std::array<const char*, 5> words{"sh", "-c", "--", command, nullptr};
  return ::posix_spawn(&process, "/bin/sh", actions, attributes, const_cast<char* const*>(words.data()), ::environ);
}

// ---- system() ----

/// SIGINT and SIGQUIT, which the process ignores while one or more threads are in system().
class KeyboardSignals {
 public:
  /// Adds the signals that were not ignored before to `handled`.
  void ignore(sigset_t& handled) noexcept {
    const Guard guard(lock_);
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    for (Kept& each : kept_) {
      if (calls_ == 0) (void)::sigaction(each.signal, &ignored, &each.before);
      if (each.before.sa_handler != SIG_IGN) ::sigaddset(&handled, each.signal);
    }
    ++calls_;
  }
  void restore() noexcept {
    const Guard guard(lock_);
    if (--calls_ != 0) return;
    for (const Kept& each : kept_) (void)::sigaction(each.signal, &each.before, nullptr);
  }

 private:
  struct Kept {
    int signal;
    struct sigaction before {};
  };

  Lock lock_;
  std::size_t calls_ = 0;
  std::array<Kept, 2> kept_{Kept{.signal = SIGINT}, Kept{.signal = SIGQUIT}};
};
constinit KeyboardSignals keyboard_signals{};

/// A call of system(). It changes the signals of the process while it lives.
class SystemCall {
 public:
  SystemCall() noexcept {
    sigset_t ended;
    (void)::pthread_sigmask(SIG_BLOCK, &set_of(ended, {SIGCHLD}), &mask_);
    keyboard_signals.ignore(handled_);
  }
  SystemCall(const SystemCall&) = delete;
  SystemCall& operator=(const SystemCall&) = delete;
  ~SystemCall() { restore(); }

  /// Returns the status of the child, or -1.
  int run(const char* command) {
    if (const int error = start(command); error != 0) {
      const bool has_no_child = error == EAGAIN || error == ENOMEM;
      return failed(error, has_no_child ? -1 : W_EXITCODE(127, 0));
    }
    int status = -1;
    pthread_cleanup_push(&SystemCall::cancel, this);
    while (::waitpid(process_, &status, 0) == -1 && errno == EINTR) {
    }
    pthread_cleanup_pop(0);
    return status;
  }

 private:
  // The child has the signals that the program had before the call.
  int start(const char* command) noexcept {
    posix_spawnattr_t attributes;
    (void)::posix_spawnattr_init(&attributes);
    (void)::posix_spawnattr_setsigmask(&attributes, &mask_);
    (void)::posix_spawnattr_setsigdefault(&attributes, &handled_);
    (void)::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    return start_shell(command, nullptr, &attributes, process_);
  }
  void restore() noexcept {
    keyboard_signals.restore();
    (void)::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  // The thread ends in waitpid(), and destroys nothing.
  static void cancel(void* call) noexcept {
    auto& self = *static_cast<SystemCall*>(call);
    (void)::kill(self.process_, SIGKILL);
    (void)wait_for_command(self.process_);
    self.restore();
  }

  pid_t process_ = 0;
  sigset_t mask_{};     // of the thread, before
  sigset_t handled_{};  // signals that the child must not ignore
};

// ---- popen() ----

/// The streams of popen() that are open. Their memory may be absent, so their descriptors are kept here.
class Commands {
 public:
  static constexpr std::size_t count_max = 1024;
  using Files = std::array<int, count_max>;

  /// Returns false if there is no place. `process` is 0 if the stream is libc's.
  bool add(const FILE* stream, int file, pid_t process) noexcept {
    const Guard guard(lock_);
    Command* const place = find(nullptr);
    if (place == nullptr) return false;
    *place = {stream, file, process};
    count_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  void set_process(const FILE* stream, pid_t process) noexcept {
    const Guard guard(lock_);
    if (Command* const place = find(stream)) place->process = process;
  }
  /// Returns the stream's process; 0 if it has none here.
  pid_t remove(const FILE* stream) noexcept {
    // Relaxed: the thread knows the stream from the thread that has added it.
    if (count_.load(std::memory_order_relaxed) == 0) return 0;
    const Guard guard(lock_);
    Command* const place = find(stream);
    if (place == nullptr) return 0;
    place->stream = nullptr;
    count_.fetch_sub(1, std::memory_order_relaxed);
    return place->process;
  }
  [[nodiscard]] std::span<const int> files(Files& to) noexcept {
    const Guard guard(lock_);
    std::size_t count = 0;
    for (const Command& each : all_) {
      if (each.stream != nullptr) to[count++] = each.file;
    }
    return {to.data(), count};
  }

 private:
  struct Command {
    const FILE* stream = nullptr;  // nullptr: the place is free
    int file = -1;
    pid_t process = 0;
  };

  Command* find(const FILE* stream) noexcept {
    for (Command& each : all_) {
      if (each.stream == stream) return &each;
    }
    return nullptr;
  }

  Lock lock_;
  std::atomic<std::size_t> count_{0};  // changed under `lock_`
  std::array<Command, count_max> all_{};
};
constinit Commands commands{};

// Held from the start of a child until the stream is in `commands`: later children must not keep its pipe open. Signals
// stay as they are, because the thread may meet page faults.
constinit Lock starting{};

struct Mode {
  bool reads = false;
  bool writes = false;
  bool closes_on_exec = false;
  bool is_valid = true;

  explicit Mode(const char* text) noexcept {
    for (; *text != 0; ++text) {
      switch (*text) {
        case 'r': reads = true; break;
        case 'w': writes = true; break;
        case 'e': closes_on_exec = true; break;
        default: is_valid = false;
      }
    }
    is_valid = is_valid && reads != writes;
  }
};

/// A pipe to or from a child.
class Pipe {
 public:
  explicit Pipe(bool reads) noexcept : reads_(reads) { is_open_ = ::pipe2(ends_.data(), O_CLOEXEC) == 0; }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    if (is_open_) close(childs());
    if (is_open_ && !is_given_) close(ours());
  }
  [[nodiscard]] bool is_open() const noexcept { return is_open_; }
  [[nodiscard]] int ours() const noexcept { return ends_[reads_ ? 0 : 1]; }
  [[nodiscard]] int childs() const noexcept { return ends_[reads_ ? 1 : 0]; }
  [[nodiscard]] int standard_file() const noexcept { return reads_ ? STDOUT_FILENO : STDIN_FILENO; }
  /// Returns the stream, which owns our end; nullptr on failure.
  [[nodiscard]] FILE* give() noexcept {
    FILE* const stream = ::fdopen(ours(), reads_ ? "r" : "w");
    is_given_ = stream != nullptr;
    return stream;
  }

 private:
  static void close(int file) noexcept { (void)system_call(SYS_close, file); }  // keeps errno, and is never cancelled

  std::array<int, 2> ends_{};
  bool reads_;
  bool is_open_ = false;
  bool is_given_ = false;
};

/// The changes of descriptors that a child makes before it becomes the shell.
class FileActions {
 public:
  explicit FileActions(const Pipe& pipe) noexcept {
    error_ = ::posix_spawn_file_actions_init(&actions_);
    add(::posix_spawn_file_actions_adddup2, pipe.childs(), pipe.standard_file());
    Commands::Files room;
    for (const int each : commands.files(room)) {
      if (each != pipe.standard_file()) add(::posix_spawn_file_actions_addclose, each);
    }
  }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { (void)::posix_spawn_file_actions_destroy(&actions_); }

  /// Returns 0 or an error number.
  [[nodiscard]] int error() const noexcept { return error_; }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  template <class Add, class... Files>
  void add(Add add_it, Files... files) noexcept {
    if (error_ == 0) error_ = add_it(&actions_, files...);
  }

  posix_spawn_file_actions_t actions_{};
  int error_;
};

int start_command(const char* command, const Pipe& pipe, bool closes_on_exec, const FILE* stream) noexcept {
  starting.lock();
  pid_t process = 0;
  int error = 0;
  {
    const FileActions actions(pipe);
    error = commands.add(stream, pipe.ours(), 0) ? actions.error() : EMFILE;
    if (error == 0) error = start_shell(command, actions.get(), nullptr, process);
  }
  if (error == 0 && !closes_on_exec) (void)system_call(SYS_fcntl, pipe.ours(), F_SETFD, 0);
  if (error == 0) commands.set_process(stream, process);
  starting.unlock();
  return error;
}

FILE* open_command(const char* command, const char* mode_text) {
  const Mode mode(mode_text);
  if (!mode.is_valid) return failed<FILE*>(EINVAL, nullptr);
  Pipe pipe(mode.reads);
  if (!pipe.is_open()) return nullptr;
  FILE* const stream = pipe.give();
  if (stream == nullptr) return nullptr;
  const int error = start_command(command, pipe, mode.closes_on_exec, stream);
  if (error == 0) return stream;
  (void)::fclose(stream);
  return failed<FILE*>(error, nullptr);
}

}  // namespace

pid_t tonari::preload::forget_command(const FILE* stream) noexcept { return commands.remove(stream); }

int tonari::preload::wait_for_command(pid_t process) noexcept {
  int status = 0;
  long answer = 0;
  do answer = system_call(SYS_wait4, process, &status, 0, nullptr);
  while (answer == -EINTR);
  return is_error(answer) ? failed(error_of(answer), -1) : status;
}

TONARI_EXPORTED int system(const char* command) {
  if (!may_be_unreached()) return next::system(command);
  SystemCall call;
  if (command == nullptr) return call.run("exit 0") == 0 ? 1 : 0;
  return call.run(command);
}

TONARI_EXPORTED FILE* popen(const char* command, const char* mode) {
  if (may_be_unreached()) return open_command(command, mode);
  FILE* const stream = buffered(next::popen(command, mode));
  if (stream != nullptr) (void)commands.add(stream, ::fileno(stream), 0);  // on failure: later children inherit it
  return stream;
}
