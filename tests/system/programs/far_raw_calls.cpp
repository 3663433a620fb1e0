// A program that knows nothing of tonari: system calls that no wrapper of libc's functions sees. They are raw
// instructions, or made by libc for itself, with all that they read and write in large memory. Prints "ok", or says
// what went wrong.
//   far_raw_calls CASE [SEED]

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t all_bytes = 48 << 20;
std::mt19937_64 random_numbers;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::_Exit(1);
}
void check(bool condition, const char* what) {
  if (!condition) fail(what);
}

// A system call as a program without libc makes it.
template <class... Words>
long raw(long number, Words... words) {
  const std::array<long, 6> all{(long)words...};
#if defined(__x86_64__)
  long result = number;
  register long fourth asm("r10") = all[3];
  register long fifth asm("r8") = all[4];
  register long sixth asm("r9") = all[5];
  asm volatile("syscall"
               : "+a"(result)
               : "D"(all[0]), "S"(all[1]), "d"(all[2]), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  return result;
#else
  register long which asm("x8") = number;
  register long result asm("x0") = all[0];
  register long second asm("x1") = all[1];
  register long third asm("x2") = all[2];
  register long fourth asm("x3") = all[3];
  register long fifth asm("x4") = all[4];
  register long sixth asm("x5") = all[5];
  asm volatile("svc #0"
               : "+r"(result)
               : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
               : "memory");
  return result;
#endif
}

bool is_reserved_first = false;

char* allocate_far_memory() {
  if (!is_reserved_first) return static_cast<char*>(std::aligned_alloc(page, all_bytes));
  void* const start = ::mmap(nullptr, 2 * all_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(start != MAP_FAILED && ::mprotect(start, all_bytes, PROT_READ | PROT_WRITE) == 0, "mmap and mprotect");
  return static_cast<char*>(start);
}
/// Large memory whose pages leave when others are used.
char* far_memory() {
  static char* const start = allocate_far_memory();
  return start;
}
/// A random place in it with room for `bytes`, in a part that only this caller uses: there are `parts`.
char* place(std::size_t bytes, std::size_t part, std::size_t parts) {
  const std::size_t part_bytes = all_bytes / parts;
  return far_memory() + part * part_bytes + random_numbers() % (part_bytes - bytes) / 64 * 64;
}
void sweep() {
  static volatile char* const others = static_cast<char*>(std::malloc(all_bytes));
  for (std::size_t i = 0; i < all_bytes; i += page) others[i] = 1;
}

void write_and_read() {
  std::array<int, 2> ends;
  check(::pipe(ends.data()) == 0, "pipe");
  for (int round = 0; round < 300; ++round) {
    const std::size_t bytes = 1 + random_numbers() % 30'000;
    char* const from = place(bytes, 0, 4);
    char* const to = place(bytes, 1, 4);
    for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<char>(random_numbers());
    const std::string model(from, bytes);
    if (round % 50 == 0) sweep();
    check(raw(SYS_write, ends[1], from, bytes) == static_cast<long>(bytes), "write");
    check(raw(SYS_read, ends[0], to, bytes) == static_cast<long>(bytes), "read");
    check(std::string_view(to, bytes) == model, "the bytes that were read");
    auto* const parts = reinterpret_cast<iovec*>(place(2 * sizeof(iovec), 2, 4));
    parts[0] = {to, bytes / 2};
    parts[1] = {to + bytes / 2, bytes - bytes / 2};
    if (round % 50 == 1) sweep();
    check(raw(SYS_writev, ends[1], parts, 2) == static_cast<long>(bytes), "writev");
    check(raw(SYS_readv, ends[0], parts, 2) == static_cast<long>(bytes), "readv");
    check(std::string_view(to, bytes) == model, "the bytes that were read into two parts");
    check(raw(SYS_vmsplice, ends[1], parts, 2, 0) == static_cast<long>(bytes), "vmsplice");
    check(raw(SYS_readv, ends[0], parts, 2) == static_cast<long>(bytes), "readv");
    check(std::string_view(to, bytes) == model, "the bytes that were spliced");
  }
}

// The first far memory of the program is address space that it has reserved.
void reserved() {
  std::array<int, 2> ends;
  check(::pipe(ends.data()) == 0, "pipe");
  for (std::size_t at = 0; at < all_bytes; at += 16 * page) {
    far_memory()[at] = 'a';
    check(raw(SYS_write, ends[1], far_memory() + (at + all_bytes / 2) % all_bytes, 8) == 8, "write");
    check(raw(SYS_read, ends[0], far_memory() + at, 8) == 8, "read");
  }
}

void texts_and_structures() {
  for (int round = 0; round < 100; ++round) {
    char* const path = place(page, 0, 4);
    std::strcpy(path, "/proc/self/status");
    auto* const name = new (place(sizeof(utsname), 1, 4)) utsname{};
    char* const folder = place(page, 2, 4);
    if (round % 20 == 0) sweep();
    const long file = raw(SYS_openat, AT_FDCWD, path, O_RDONLY);
    check(file >= 0, "openat");
    ::close(static_cast<int>(file));
    check(raw(SYS_uname, name) == 0 && std::strcmp(name->sysname, "Linux") == 0, "uname");
    check(raw(SYS_getcwd, folder, page) > 0 && folder[0] == '/', "getcwd");
    check(raw(SYS_openat, AT_FDCWD, folder, O_WRONLY) == -EISDIR, "openat of a folder for writing");
  }
  check(raw(SYS_openat, AT_FDCWD, far_memory() + (std::size_t{1} << 42), O_RDONLY) == -EFAULT, "openat of no memory");
}

// libc fills a stream's buffer by itself.
void streams() {
  std::FILE* const file = std::tmpfile();
  check(file != nullptr, "tmpfile");
  for (std::uint64_t i = 0; i < 100'000; ++i) std::fwrite(&i, sizeof i, 1, file);
  std::FILE* const again = ::fdopen(::dup(::fileno(file)), "r");
  std::fflush(file);
  std::rewind(again);
  std::setvbuf(again, place(page, 0, 4), _IOFBF, page);
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    std::uint64_t found = ~i;
    if (i % 20'000 == 0) sweep();
    check(std::fread(&found, sizeof found, 1, again) == 1 && found == i, "fread");
  }
}

// Locks in memory that leaves and comes all the time: threads wait in the kernel for words of absent pages.
struct Guarded {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  std::uint64_t count = 0;
};
void locks() {
  constexpr std::size_t threads = 8;
  constexpr std::size_t guarded = 64;
  constexpr int rounds = 6000;
  std::vector<Guarded*> all;
  for (std::size_t i = 0; i < guarded; ++i) all.push_back(new (place(sizeof(Guarded), i, guarded)) Guarded);
  std::vector<std::thread> running;
  for (std::size_t t = 0; t < threads; ++t) {
    running.emplace_back([&all, seed = random_numbers()] {
      std::mt19937_64 mine(seed);
      for (int i = 0; i < rounds; ++i) {
        Guarded& one = *all[mine() % 4 + 4 * (static_cast<std::size_t>(i) / 200 % (guarded / 4))];
        pthread_mutex_lock(&one.lock);
        ++one.count;
        if (mine() % 8 == 0) std::this_thread::yield();
        pthread_mutex_unlock(&one.lock);
        if (mine() % 16 == 0) far_memory()[mine() % (all_bytes / page) * page + page - 1] = 1;
      }
    });
  }
  for (std::thread& each : running) each.join();
  std::uint64_t sum = 0;
  for (const Guarded* each : all) sum += each->count;
  check(sum == threads * rounds, "the sum of the counts");
}

void semaphores() {
  auto* const there = new (place(sizeof(sem_t), 0, 2)) sem_t;
  auto* const back = new (place(sizeof(sem_t), 1, 2)) sem_t;
  sem_init(there, 0, 0);
  sem_init(back, 0, 0);
  std::thread other([=] {
    for (int i = 0; i < 2000; ++i) {
      while (sem_wait(there) != 0) check(errno == EINTR, "sem_wait");
      sem_post(back);
    }
  });
  for (int i = 0; i < 2000; ++i) {
    if (i % 200 == 0) sweep();
    sem_post(there);
    while (sem_wait(back) != 0) check(errno == EINTR, "sem_wait");
  }
  other.join();
}

std::atomic<int> alarms{0};

// A call that waits for data is interrupted, or goes on, as the signal's action says.
void interruptions() {
  std::array<int, 2> ends;
  check(::pipe(ends.data()) == 0, "pipe");
  struct sigaction action {};
  action.sa_handler = [](int) { alarms.fetch_add(1); };
  check(::sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
  char* const to = place(page, 0, 2);
  std::atomic<bool> is_done{false};
  const pthread_t reader = pthread_self();
  std::thread interrupter([&] {
    while (!is_done.load()) pthread_kill(reader, SIGUSR1), std::this_thread::yield();
  });
  check(raw(SYS_read, ends[0], to, 8) == -EINTR, "read that is interrupted");
  is_done.store(true);
  interrupter.join();

  action.sa_flags = SA_RESTART;
  check(::sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
  const int before = alarms.load();
  std::thread writer([&] {
    while (alarms.load() < before + 20) pthread_kill(reader, SIGUSR1), std::this_thread::yield();
    check(::write(ends[1], "restored", 8) == 8, "write");
  });
  check(raw(SYS_read, ends[0], to, 8) == 8 && std::string_view(to, 8) == "restored", "read that goes on");
  writer.join();
}

void cancellation() {
  std::array<int, 2> ends;
  check(::pipe(ends.data()) == 0, "pipe");
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> begins{false};
    struct Work {
      int file;
      char* to;
      std::atomic<bool>* begins;
    } work{ends[0], place(page, 0, 2), &begins};
    pthread_t thread;
    const auto run = [](void* given) -> void* {
      const Work mine = *static_cast<Work*>(given);
      mine.begins->store(true);
      (void)!::read(mine.file, mine.to, page);
      return nullptr;
    };
    check(pthread_create(&thread, nullptr, run, &work) == 0, "pthread_create");
    while (!begins.load()) std::this_thread::yield();
    void* result = nullptr;
    check(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0, "pthread_cancel");
    check(result == PTHREAD_CANCELED, "the result of a cancelled thread");
  }
}

void children() {
  char* const text = place(page, 0, 2);
  std::strcpy(text, "/proc/self/stat");
  sweep();
  const pid_t child = ::fork();
  check(child >= 0, "fork");
  if (child == 0) {
    const long file = raw(SYS_openat, AT_FDCWD, text, O_RDONLY);
    check(file >= 0 && raw(SYS_read, file, text, page) > 0, "open and read in a child");
    std::_Exit(::atoi(text) == ::getpid() ? 0 : 1);
  }
  int status = -1;
  check(::waitpid(child, &status, 0) == child && status == 0, "a child");
  check(std::string_view(text) == "/proc/self/stat", "the text that the child has overwritten");
  check(std::system("cat /proc/self/stat > /dev/null") == 0, "system");
}

std::atomic<int> own_stops{0};

// The program filters a system call itself, and handles SIGSYS.
void own_filter() {
  far_memory()[0] = 1;
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    if (info->si_syscall == SYS_getppid) own_stops.fetch_add(1);
  };
  check(::sigaction(SIGSYS, &action, nullptr) == 0, "sigaction");
  struct sigaction found {};
  check(::sigaction(SIGSYS, nullptr, &found) == 0 && found.sa_sigaction == action.sa_sigaction, "sigaction to read");
  std::array filter{sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                    sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_getppid},
                    sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP},
                    sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  sock_fprog program{filter.size(), filter.data()};
  check(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "prctl");
  check(raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0, "seccomp");
  raw(SYS_getppid);
  check(own_stops.load() == 1, "the program's own handler of SIGSYS");
  write_and_read();
}

// Calls with wrong counts, and one with a far pointer in a register that it does not use, are as the kernel says.
void wrong_counts() {
  auto* const part = new (place(sizeof(iovec), 0, 4)) iovec{place(64, 1, 4), 64};
  const int file = ::open("/dev/null", O_WRONLY);
  check(::writev(file, part, 0) == 0 && raw(SYS_writev, file, part, 0) == 0, "writev of nothing");
  check(raw(SYS_writev, file, part, 100'000) == -EINVAL, "writev of too many parts");
  check(raw(SYS_write, file, far_memory() + (std::size_t{1} << 42), 10) == 10, "write of any address to /dev/null");
  auto* const message = new (place(sizeof(msghdr), 2, 4)) msghdr{};
  std::array<int, 2> ends;
  check(::socketpair(AF_UNIX, SOCK_DGRAM, 0, ends.data()) == 0, "socketpair");
  message->msg_iov = part;
  message->msg_iovlen = 100'000;
  check(raw(SYS_sendmsg, ends[0], message, 0) == -EMSGSIZE, "sendmsg of too many parts");
  check(raw(SYS_sendmmsg, ends[0], message, 0, 0) == 0, "sendmmsg of no message");
}

// Results that the kernel gives only once, although the page of a structure leaves while the call waits.
void results_given_once() {
  std::array<int, 2> ends;
  check(::pipe(ends.data()) == 0, "pipe");
  for (int round = 0; round < 20; ++round) {
    auto* const rest = new (place(sizeof(timespec), 0, 4)) timespec{};
    auto* const time = new (place(sizeof(timespec), 1, 4)) timespec{.tv_sec = 1000, .tv_nsec = 0};
    std::atomic<bool> is_done{false};
    const pthread_t sleeper = pthread_self();
    std::thread interrupter([&] {
      sweep();
      while (!is_done.load()) pthread_kill(sleeper, SIGUSR2), std::this_thread::yield();
    });
    check(raw(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, time, rest) == -EINTR && rest->tv_sec > 900, "clock_nanosleep");
    is_done.store(true);
    interrupter.join();

    const pid_t child = ::fork();
    if (child == 0) {
      char go = 0;
      (void)!::read(ends[0], &go, 1);
      std::_Exit(round);
    }
    auto* const found = new (place(sizeof(siginfo_t), 2, 4)) siginfo_t{};
    std::thread waker([&] {
      sweep();
      check(::write(ends[1], "x", 1) == 1, "write");
    });
    check(raw(SYS_waitid, P_PID, child, found, WEXITED, nullptr) == 0 && found->si_status == round, "waitid");
    waker.join();
  }
}

// A trapped call changes the mask of the thread, not only that of the handler.
void masks() {
  auto* const set = new (place(sizeof(sigset_t), 0, 4)) sigset_t;
  struct Jump {
    sigjmp_buf to;
  };
  auto* const jump = new (place(sizeof(Jump), 1, 4)) Jump;
  const auto is_blocked = [] {
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
    return sigismember(&now, SIGUSR1) == 1;
  };
  sigemptyset(set);
  sigaddset(set, SIGUSR1);
  for (int round = 0; round < 50; ++round) {
    if (sigsetjmp(jump->to, 1) == 0) {
      check(raw(SYS_rt_sigprocmask, SIG_BLOCK, set, nullptr, 8) == 0 && is_blocked(), "rt_sigprocmask to block");
      if (round % 10 == 0) sweep();
      siglongjmp(jump->to, 1);
    }
    check(!is_blocked(), "the mask that siglongjmp restores");
    check(raw(SYS_rt_sigprocmask, SIG_BLOCK, set, set, 8) == 0 && sigismember(set, SIGUSR1) == 0, "the old mask");
    check(raw(SYS_rt_sigprocmask, SIG_SETMASK, set, nullptr, 8) == 0 && !is_blocked(), "rt_sigprocmask to set");
    sigaddset(set, SIGUSR1);
  }
}

// A program that is executed later inherits the filter of this one, but no handler.
void executed() {
  far_memory()[0] = 1;
  ::execl("/proc/self/exe", "far_raw_calls", "data", static_cast<char*>(nullptr));
  fail("execl");
}

std::atomic<const char*> stack_of_handler{nullptr};

// Signals arrive on a stack in large memory, and a thread has such a stack.
void stacks() {
  stack_t own{.ss_sp = place(1 << 20, 6, 8), .ss_flags = 0, .ss_size = 1 << 20};
  stack_t found{};
  check(::sigaltstack(&own, nullptr) == 0 && ::sigaltstack(nullptr, &found) == 0, "sigaltstack");
  check(found.ss_sp == own.ss_sp && found.ss_size == own.ss_size, "the stack that sigaltstack returns");
  struct sigaction action {};
  action.sa_flags = SA_ONSTACK;
  action.sa_handler = [](int) {
    const char here = 0;
    stack_of_handler.store(&here);
  };
  check(::sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
  sweep();
  const char here = 0;
  check(::raise(SIGUSR1) == 0 && std::abs(stack_of_handler.load() - &here) > (1 << 20), "a handler on its own stack");
  write_and_read();

  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  check(pthread_attr_setstack(&attributes, place(4 << 20, 7, 8), 4 << 20) == 0, "pthread_attr_setstack");
  pthread_t thread;
  const auto run = [](void*) -> void* {
    std::array<volatile char, 1 << 20> deep;
    for (std::size_t i = 0; i < deep.size(); i += 64) deep[i] = static_cast<char>(i);
    sweep();
    write_and_read();
    for (std::size_t i = 0; i < deep.size(); i += 64) check(deep[i] == static_cast<char>(i), "a thread's stack");
    return nullptr;
  };
  check(pthread_create(&thread, &attributes, run, nullptr) == 0, "pthread_create");
  check(pthread_join(thread, nullptr) == 0, "pthread_join");
}

// Memory that the program has protected is as the kernel says, and nothing is lost.
void protected_memory() {
  auto* const start = static_cast<char*>(std::aligned_alloc(page, all_bytes));
  char* const constant = start + all_bytes / 2;
  char* const closed = constant + page;
  std::strcpy(constant, "/proc/self/exe");
  check(::mprotect(constant, page, PROT_READ) == 0 && ::mprotect(closed, page, PROT_NONE) == 0, "mprotect");
  std::array<int, 2> ends;
  check(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0 && ::write(ends[1], "12345678", 8) == 8, "socketpair");
  for (char* const room : {constant, closed}) {
    sweep();
    check(raw(SYS_read, ends[0], room, 8) == -EFAULT, "read");
    check(raw(SYS_uname, room) == -EFAULT && raw(SYS_getcwd, room, page) == -EFAULT, "uname and getcwd");
    const pid_t child = ::fork();
    if (child == 0) std::_Exit(7);
    check(raw(SYS_waitid, P_PID, child, room, WEXITED | WNOWAIT, nullptr) == -EFAULT, "waitid");
    check(raw(SYS_wait4, child, room, 0, nullptr) == -EFAULT, "wait4");
    check(raw(SYS_wait4, child, nullptr, 0, nullptr) == -ECHILD, "wait4 again");
  }
  for (const long call : {SYS_write, SYS_writev, SYS_sendmsg})
    check(raw(call, ends[1], closed, 1) == -EFAULT, "a call");
  for (const long call : {SYS_readv, SYS_recvmsg}) check(raw(call, ends[0], closed, 1) == -EFAULT, "another call");
  std::array<char, 100> to{};
  check(raw(SYS_read, ends[0], to.data(), 100) == 8 && std::string_view(to.data()) == "12345678", "what was written");
  sweep();
  check(raw(SYS_openat, AT_FDCWD, constant, O_RDONLY) >= 0, "openat");
  check(raw(SYS_openat, AT_FDCWD, closed, O_RDONLY) == -EFAULT, "openat of a closed page");
  check(raw(SYS_write, ends[1], constant, 8) == 8 && raw(SYS_read, ends[0], to.data(), 8) == 8, "write");
}

void rings() {
  far_memory()[0] = 1;
  std::array<char, 256> parameters{};
  std::printf("io_uring: %ld\n", raw(SYS_io_uring_setup, 4, parameters.data()));
}

const std::map<std::string_view, std::function<void()>> cases{
    {"data", write_and_read},
    {"texts", texts_and_structures},
    {"streams", streams},
    {"locks", locks},
    {"semaphores", semaphores},
    {"interruptions", interruptions},
    {"cancellation", cancellation},
    {"children", children},
    {"filter", own_filter},
    {"executed", executed},
    {"counts", wrong_counts},
    {"once", results_given_once},
    {"masks", masks},
    {"reserved", reserved},
    {"stacks", stacks},
    {"rings", rings},
    {"protected", protected_memory},
};

}  // namespace

int main(int count, char** words) {
  const auto found = count > 1 ? cases.find(words[1]) : cases.end();
  if (found == cases.end()) {
    std::fprintf(stderr, "far_raw_calls: name a case\n");
    return 2;
  }
  const std::uint64_t seed = count > 2 ? std::strtoull(words[2], nullptr, 0) : std::random_device{}();
  std::fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(seed));
  random_numbers.seed(seed);
  is_reserved_first = found->first == "reserved";
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGUSR2, &action, nullptr);
  std::memset(far_memory(), 1, all_bytes);
  found->second();
  std::puts("ok");
}
