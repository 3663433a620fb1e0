#include "cli/far_run.hpp"

#include "base/error.hpp"
#include "cli/binary.hpp"
#include "cli/far_limit.hpp"
#include "cli/far_statistics.hpp"
#include "cli/launch_hosts.hpp"
#include "cli/launch_program.hpp"
#include "cli/preload.hpp"
#include "cli/standard_streams.hpp"
#include "far/channel.hpp"
#include "far/file_store.hpp"
#include "job/ending.hpp"
#include "job/handshake.hpp"
#include "job/memory.hpp"
#include "pager/page.hpp"
#include "pager/userfaultfd.hpp"

#include <tonari/status.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sched.h>
#include <sodium.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace tonari::cli {

namespace {

constexpr std::string_view preload_name = "libtonari_far_preload.so";
constexpr int setup_failed = 2;
constexpr int killed_by_us = 128 + SIGKILL;
constexpr std::uint64_t arena_bytes_min = 1ULL << 40;  // of addresses, which cost nothing
constexpr std::uint64_t arena_bytes_max = 16ULL << 40;

std::filesystem::path own_path() { return std::filesystem::read_symlink("/proc/self/exe"); }

std::string random_name() {
  std::array<unsigned char, 16> bytes{};
  ::randombytes_buf(bytes.data(), bytes.size());
  return fmt::format("tonari-far-{:02x}", fmt::join(bytes, ""));
}

// More bytes than the servers and the disk can ever store: a compressed page takes at least a sixteenth of its size.
std::uint64_t arena_bytes_for(std::uint64_t capacity, std::uint64_t room, far::StoreKind store) {
  const std::uint64_t times = far::compresses(store) ? 32 : 4;
  const std::uint64_t wanted = std::clamp(times * capacity + 4 * room, arena_bytes_min, arena_bytes_max);
  return wanted / pager::block_bytes * pager::block_bytes;
}

std::vector<char*> pointers_of(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// The number of servers; and, if hosts are named, all hosts: first this one, where the keeper runs.
struct Places {
  std::size_t servers = 0;
  std::string hosts;
};

Places places_of(const FarOptions& options) {
  if (!far::has_servers(options.store)) return {};
  const std::string& text = options.servers;
  if (std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; })) {
    return {.servers = std::stoul(text), .hosts = {}};
  }
  return {.servers = static_cast<std::size_t>(std::ranges::count(text, ',') + 1), .hosts = "localhost," + text};
}

std::vector<std::string> words_of_servers(const FarOptions& options, const std::string& name) {
  const std::string self = own_path();
  const auto [servers, hosts] = places_of(options);
  if (options.replicas > servers && far::has_servers(options.store)) {
    throw SetupError(fmt::format(
        "--replicas {}: needs at least as many servers, because each copy is kept by another one; --servers is {}",
        options.replicas, servers));
  }
  std::vector<std::string> words{self, "run", "-n", std::to_string(servers + 1), "--bind", "none"};
  if (!hosts.empty()) words.insert(words.end(), {"--hosts", hosts});
  if (!options.placement.apart.empty()) words.insert(words.end(), {"--apart", options.placement.apart});
  if (!options.placement.network.empty()) words.insert(words.end(), {"--network", options.placement.network});
  words.insert(words.end(), {"--", self, "serve", "--for", name, "--beside", text_of(options.local)});
  if (options.memory) words.insert(words.end(), {"--memory", std::to_string(*options.memory)});
  if (options.at_once) words.emplace_back("--at-once");
  return words;
}

// The environment of the program: ours, with the preload library before other ones in LD_PRELOAD.
std::vector<std::string> environment_of_program(const FarOptions& options, int socket, const std::string& name) {
  std::vector<std::string> all;
  std::string_view preloads_before;
  for (char** each = ::environ; *each != nullptr; ++each) {
    const std::string_view pair{*each};
    constexpr std::string_view preloads = "LD_PRELOAD=";
    if (pair.starts_with(far::door_variable)) continue;  // set by another `tonari far`, which started us
    if (!pair.starts_with(preloads)) {
      all.emplace_back(pair);
    } else {
      preloads_before = pair.substr(preloads.size());
    }
  }
  std::string preloads(preloads_before);
  if (options.with_heap) preloads = with_preload(path_of_jemalloc(), preloads);
  all.push_back("LD_PRELOAD=" + with_preload(preload_path(preload_name), preloads));
  all.push_back(fmt::format("{}={}", far::socket_variable, socket));
  const std::string_view faults = far::names_of_faults_by[static_cast<std::size_t>(options.faults)];
  all.push_back(fmt::format("{}={},{}@{}", far::door_variable, options.min_bytes, faults, far::door_of(name)));
  return all;
}

// Throws SetupError if the kernel reports no faults to this user. If it reports none of system calls, and the keeper is
// to serve all faults, prints how system calls reach far memory.
void check_reach_of_faults(const FarOptions& options) {
  const bool reaches_everything = pager::Userfaultfd().reach() == pager::Reach::everything;
  if (reaches_everything || options.faults != far::FaultsBy::keeper) return;
  if (options.with_heap) {
    throw SetupError(fmt::format(
        "--heap: system calls of this user would not reach all of the heap where the keeper serves page faults; omit "
        "--faults keeper and --store, or allow it: {}",
        pager::remedy_for_reach));
  }
  print_stderr(
      "tonari far: the kernel reports no faults of system calls to this user: data that they read and write in far "
      "memory is "
      "copied, and a few fail with EFAULT; to change that: {}\n",
      pager::remedy_for_reach);
}

// Binds this process, and the processes it starts, to the processor it runs on: the scheduler has chosen a free one.
void stay_on_this_core() {
  cpu_set_t here;
  CPU_ZERO(&here);
  const int processor = ::sched_getcpu();
  if (processor < 0 || processor >= CPU_SETSIZE) {
    throw SetupError("--bind core: this machine has more than 1024 processors; use taskset instead");
  }
  CPU_SET(static_cast<unsigned>(processor), &here);
  if (::sched_setaffinity(0, sizeof here, &here) != 0) throw_system_error("--bind core: sched_setaffinity");
}

std::string why_statics_were_local(const Statics& statics, std::uint64_t min_bytes) {
  if (statics.largest_bytes >= min_bytes) {
    return "which stay local because the program had threads before main(); allocate the arrays with malloc or new";
  }
  if (statics.has_symbols) return "each of which is smaller; use a smaller --min-size";
  const std::uint64_t least = far::unnamed_factor * min_bytes;
  if (statics.bytes < least) {
    return fmt::format(
        "which stay local because the file has no symbols, and they are less than {}; do not strip it, or use a "
        "smaller --min-size",
        job::memory_text(least));
  }
  return "which stay local because the file has no symbols to tell them from locks and other small variables; do not "
         "strip it";
}

}  // namespace

FarRun::FarRun(const FarOptions& options)
    : options_(options), name_(random_name()), clock_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!clock_) throw_system_error("timerfd_create", "raise the limit of open files: see ulimit -n");
  if (const auto why = why_not_preloaded(path_of_program(options.program.front()))) throw SetupError(*why);
  (void)preload_path(preload_name);
  check_reach_of_faults(options);
  if (options.on_one_core) stay_on_this_core();
  if (far::has_file(options.store)) room_ = far::room_for_file(options.directory);
  // Servers on other hosts check it themselves.
  if (options.memory && places_of(options).hosts.empty()) check_lendable(*options.memory);
  listener_ = job::listen_at(name_);
  start_servers();
  wait_for_keeper();
}

// The keeper ends when its connection is closed, and so do the servers.
FarRun::~FarRun() {
  if (program_ != 0) {
    ::kill(program_, SIGKILL);
    ::waitpid(program_, nullptr, 0);
  }
  keeper_ = {};
  if (servers_ == 0) return;
  constexpr int patience_ms = 5000;
  pollfd wait{servers_process_.number(), POLLIN, 0};
  if (::poll(&wait, 1, patience_ms) != 1) ::kill(-servers_, SIGKILL);
  ::waitpid(servers_, nullptr, 0);
}

void FarRun::start_servers() {
  if (!places_of(options_).hosts.empty()) check_root_may_launch("--servers");
  std::vector<std::string> words = words_of_servers(options_, name_);
  const std::vector<char*> arguments = pointers_of(words);
  const pid_t parent = ::getpid();
  servers_ = ::fork();
  if (servers_ < 0) throw_system_error("starting the servers", "raise the limit of processes: see ulimit -u");
  if (servers_ == 0) {
    ::setpgid(0, 0);  // signals from a terminal are meant for the program
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    ::close(STDIN_FILENO);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::signal(SIGPIPE, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &signals_.mask_before(), nullptr);
    ::execv(arguments[0], arguments.data());
    ::_exit(setup_failed);
  }
  ::setpgid(servers_, servers_);
  servers_process_ = job::open_own_process(servers_);
}

// The keeper connects, and reports once all servers are ready.
void FarRun::wait_for_keeper() {
  constexpr int patience_ms = 2000;
  for (bool said = false;;) {
    std::array<pollfd, 3> wait{pollfd{keeper_ ? keeper_.number() : listener_.number(), POLLIN, 0},
                               {servers_process_.number(), POLLIN, 0},
                               {signals_.descriptor(), POLLIN, 0}};
    const int ready = ::poll(wait.data(), wait.size(), said ? -1 : patience_ms);
    if (ready < 0 && errno != EINTR) throw_system_error("poll");
    if (ready == 0) {
      print_stderr("tonari far: waiting for the servers to start{}\n",
                   options_.at_once ? " and to take their memory" : "");
      said = true;
    }
    if (wait[2].revents != 0) throw SetupError("stopped before the servers were ready");
    if (wait[0].revents != 0 && !keeper_) {
      FileDescriptor connection{::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC)};
      if (connection && job::peer_of(connection).user == ::geteuid()) keeper_ = std::move(connection);
    } else if (wait[0].revents != 0) {
      far::Report report;
      if (job::receive_message(keeper_, &report, sizeof report, true) != sizeof report) {
        throw SetupError(fmt::format("the keeper has ended before the servers were ready{}", where_its_message_is()));
      }
      listener_ = {};
      at_start_ = report.statistics;
      return;
    }
    if (wait[1].revents != 0) throw SetupError("the servers did not start; their messages stand above");
  }
}

std::optional<ProgramError> FarRun::start_program() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) throw_system_error("socketpair");
  const FileDescriptor ours{ends[0]};
  const FileDescriptor programs{ends[1]};
  std::vector<std::string> words = options_.program;
  const std::vector<char*> arguments = pointers_of(words);
  std::vector<std::string> environment = environment_of_program(options_, programs.number(), name_);
  const std::vector<char*> variables = pointers_of(environment);
  Pipe report = make_pipe();

  const pid_t parent = ::getpid();
  program_ = ::fork();
  if (program_ < 0) throw_system_error("starting the program", "raise the limit of processes: see ulimit -u");
  if (program_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // without us, its faults would soon be served no more
    if (::getppid() != parent) ::_exit(1);
    ::fcntl(programs.number(), F_SETFD, 0);
    ::signal(SIGPIPE, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &signals_.mask_before(), nullptr);
    ::execvpe(arguments[0], arguments.data(), variables.data());
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(report.writer.number(), &error, sizeof error);
    ::_exit(127);
  }
  program_process_ = job::open_own_process(program_);
  report.writer = {};
  int error = 0;
  if (::read(report.reader.number(), &error, sizeof error) == sizeof error) {
    return explain_exec_failure(options_.program.front(), error);
  }
  far::Order order{.what = far::Order::What::keep,
                   .limit = options_.local,
                   .min_bytes = options_.min_bytes,
                   .arena_bytes = arena_bytes_for(at_start_.capacity_bytes, room_, options_.store),
                   .replicas = static_cast<std::uint32_t>(options_.replicas),
                   .store = options_.store,
                   .faults = options_.faults,
                   .with_children = options_.with_children ? 1U : 0U,
                   .program = program_};
  options_.directory.copy(order.directory.data(), order.directory.size() - 1);
  job::send_message(keeper_, &order, sizeof order, ours.number());
  return std::nullopt;
}

int FarRun::run() {
  if (const auto error = start_program()) {
    print_stderr("tonari far: {}\n", error->text);
    return error->exit_status;
  }
  if (options_.progress) {
    constexpr itimerspec each_second{.it_interval = {1, 0}, .it_value = {1, 0}};
    ::timerfd_settime(clock_.number(), 0, &each_second, nullptr);
  }
  while (program_ != 0 || (kept_ && !all_gone_ && !failed_)) {
    std::array<pollfd, 5> wait{pollfd{program_process_.number(), POLLIN, 0},
                               {signals_.descriptor(), POLLIN, 0},
                               {keeper_.number(), POLLIN, 0},
                               {servers_process_.number(), POLLIN, 0},
                               {clock_.number(), POLLIN, 0}};
    if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) throw_system_error("poll");
    if (wait[1].revents != 0) pass_signals_on();
    while (receive_from_keeper()) {  // also when the program has ended: the keeper may know why
    }
    if (wait[3].revents != 0) end_program("the servers have ended, and the program's far data is lost");
    if (wait[4].revents != 0) show_progress();
    if (wait[0].revents != 0) reap_program();
  }
  if (!failed_ && !kept_) {
    print_stderr("tonari far: the program ended without loading the preload library: all its memory was local\n");
  }
  if (kept_) show_results();
  if (failed_) return kept_ ? killed_by_us : setup_failed;
  return exit_status_;
}

void FarRun::reap_program() {
  const job::Ending ending = job::ending_of(program_process_, program_);
  exit_status_ = ending.exit_status();
  if (ending.signal == SIGKILL && !failed_) say_if_memory_was_short("the program");
  ::waitpid(program_, nullptr, 0);
  program_ = 0;
  program_process_ = {};
  (void)ask_for_statistics();  // also receives the reports that the keeper sent before
}

void FarRun::say_if_memory_was_short(std::string_view process) const {
  if (!memory_.has_killed()) return;
  const auto what_else = [this]() -> std::string_view {
    switch (options_.store) {
      case far::StoreKind::ram: return ", and if servers are on this machine, let them compress (--store lz4)";
      case far::StoreKind::lz4: return ", or use servers on other hosts (--servers)";
      case far::StoreKind::lz4_file:
        return ", or compress less of it in memory (--memory), so that more is in the file";
      case far::StoreKind::file: break;  // the file takes no memory
    }
    return "";
  };
  print_stderr("tonari far: {}; keep less of the program's data local (--local){}\n",
               job::OutOfMemoryWatch::explanation_for(process), what_else());
}

void FarRun::pass_signals_on() {
  while (const auto signal = signals_.next()) {
    const bool ends = signal->number == SIGINT || signal->number == SIGTERM || signal->number == SIGHUP;
    if (program_ != 0 && !signal->from_terminal) ::kill(program_, signal->number);
    if (program_ == 0 && ends) end_program("stopped, with the processes that the program had left running");
    if (signal->number != SIGTSTP) continue;
    ::raise(SIGSTOP);
    if (program_ != 0 && !signal->from_terminal) ::kill(program_, SIGCONT);  // we were continued
  }
}

bool FarRun::receive_from_keeper() {
  far::Report report;
  const ssize_t bytes = job::receive_message(keeper_, &report, sizeof report, false);
  if (bytes < 0) return false;  // nothing now
  if (bytes != sizeof report) {
    keeper_ = {};
    end_program(fmt::format("the keeper has ended, which served the program's faults{}", where_its_message_is()),
                "a process, probably the keeper");
    return false;
  }
  take_report(report);
  return true;
}

void FarRun::take_report(const far::Report& report) noexcept {
  using What = far::Report::What;
  if (report.what == What::kept) kept_ = true;
  if (report.what == What::advice && !failed_) print_stderr("tonari far: {}\n", report.text.data());
  if (report.what == What::failed) end_program(report.text.data());
  all_gone_ = report.statistics.living == 0;
}

// A process that the kernel has ended for lack of memory left no message.
std::string_view FarRun::where_its_message_is() const {
  return memory_.has_killed() ? "" : "; its message should stand above";
}

void FarRun::end_program(const std::string& why, std::string_view killed) noexcept {
  if (std::exchange(failed_, true)) return;
  print_stderr("tonari far: {}\n", why);
  say_if_memory_was_short(killed);
  if (program_ != 0) ::kill(program_, SIGKILL);
}

std::optional<far::Statistics> FarRun::ask_for_statistics() {
  if (!keeper_) return std::nullopt;
  const far::Order order{.what = far::Order::What::report};
  job::send_message(keeper_, &order, sizeof order);
  for (;;) {
    constexpr int patience_ms = 10'000;
    pollfd wait{keeper_.number(), POLLIN, 0};
    if (::poll(&wait, 1, patience_ms) == 0) {
      keeper_ = {};
      end_program("the keeper has not replied for 10 s: has it been stopped?");
      return std::nullopt;
    }
    far::Report report;
    if (job::receive_message(keeper_, &report, sizeof report, true) != sizeof report) return std::nullopt;
    take_report(report);
    if (report.what == far::Report::What::statistics) return report.statistics;
  }
}

void FarRun::show_progress() {
  std::uint64_t ticks = 0;
  (void)!::read(clock_.number(), &ticks, sizeof ticks);
  if (!kept_) return;
  const auto now = ask_for_statistics();
  if (!now) return;
  print_stderr("tonari far: {}\n", progress_text(*now, seen_));
  seen_ = *now;
}

void FarRun::show_results() {
  const auto statistics = ask_for_statistics();
  if (!statistics) return;
  if (statistics->in_use_peak_bytes == 0 && !failed_) {
    print_stderr("tonari far: {}\n", why_nothing_was_far(statistics->stayed_local != 0));
  }
  if (options_.statistics == FarOptions::Print::text) print_stderr("{}\n", statistics_text(*statistics));
  if (options_.statistics == FarOptions::Print::json) print_stderr("{}\n", statistics_as_json(*statistics));
}

std::string FarRun::why_nothing_was_far(bool some_stayed_local) const {
  constexpr std::string_view nothing = "nothing went to far memory";
  if (some_stayed_local) return fmt::format("{}: a process could have none, as its own message says", nothing);
  const std::string least = job::memory_text(options_.min_bytes);
  const std::string& program = options_.program.front();
  const Statics statics = statics_of(path_of_program(program));
  constexpr std::uint64_t many_bytes = 16 << 20;  // with less, static arrays are hardly what the program is about
  if (statics.bytes >= many_bytes) {
    return fmt::format("{}: {} made no allocation of at least {}, and has {} of static arrays, {}", nothing, program,
                       least, job::memory_text(statics.bytes), why_statics_were_local(statics, options_.min_bytes));
  }
  return fmt::format(
      "{}. Possible reasons: the program makes no allocation of at least {}; a smaller --min-size makes smaller ones "
      "far, too. Or a program that {} starts has the data, and does not load tonari's library: because it is "
      "statically linked, gets rights from its file (setuid), or is started without LD_PRELOAD (env -i, sudo)",
      nothing, least, program);
}

}  // namespace tonari::cli
