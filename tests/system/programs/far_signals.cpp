// A program with far memory that uses signals in ways which disturb faults served in a handler of SIGBUS. Usage:
// far_signals CASE. Prints "ok".

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t bytes = 96 << 20;
constexpr std::size_t page = 4096;
unsigned char* far_memory = nullptr;

unsigned char expected(std::size_t at) { return static_cast<unsigned char>(at / page * 7 + 1); }

void write_all() {
  for (std::size_t at = 0; at < bytes; at += page) far_memory[at] = expected(at);
}

// Goes through the pages so that most are faults, and few follow another.
bool check_scattered(unsigned seed = 1) {
  std::uint64_t random = seed;
  for (int i = 0; i < 10'000; ++i) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::size_t at = (random >> 33) % (bytes / page) * page;
    if (far_memory[at] != expected(at)) return false;
  }
  return true;
}

bool blocks_all_signals() {
  sigset_t all;
  sigfillset(&all);
  sigset_t before;
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0 || !check_scattered()) return false;
  std::atomic<bool> fine{false};
  std::thread([&] { fine = check_scattered(2); }).join();  // inherits the mask
  return pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0 && sigprocmask(SIG_BLOCK, &all, nullptr) == 0 &&
         check_scattered(3) && fine;
}

std::atomic<int> alarms{0};
std::atomic<int> wrong{0};

// Interrupts faults, and meets absent pages itself, with all signals blocked. Stops the timer after some time, because
// the program does not get on if its handlers take longer than the timer.
constexpr int alarms_max = 500;
bool set_handler_that_faults() {
  struct sigaction action {};
  action.sa_handler = [](int) {
    const itimerval never{};
    if (alarms >= alarms_max) setitimer(ITIMER_REAL, &never, nullptr);
    const std::size_t at = static_cast<std::size_t>(alarms.fetch_add(1)) * 7919 % (bytes / page) * page;
    if (far_memory[at] != expected(at)) ++wrong;
  };
  sigfillset(&action.sa_mask);
  return sigaction(SIGALRM, &action, nullptr) == 0;
}

bool faults_in_handlers() {
  const itimerval often{.it_interval = {0, 300}, .it_value = {0, 300}};
  setitimer(ITIMER_REAL, &often, nullptr);
  while (alarms < alarms_max) {
    if (!check_scattered(static_cast<unsigned>(alarms))) return false;
  }
  return wrong == 0;
}

bool has_a_handler_that_faults() { return set_handler_that_faults() && faults_in_handlers(); }

// A handler, and a thread with all signals blocked, that are older than the program's far memory.
std::atomic<int> early_result{-1};
std::atomic<bool> memory_is_written{false};
std::thread early_thread;

void begin_early() {
  if (!set_handler_that_faults()) std::_Exit(1);
  sigset_t all;
  sigfillset(&all);
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  early_thread = std::thread([] {
    memory_is_written.wait(false);
    early_result = check_scattered(9) ? 1 : 0;
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool began_early() {
  memory_is_written = true;
  memory_is_written.notify_all();
  early_thread.join();
  return early_result == 1 && faults_in_handlers();
}

// Threads that are cancelled at any time, also while they serve a fault.
bool cancels_threads() {
  for (unsigned i = 0; i < 25; ++i) {
    pthread_t thread{};
    const auto work = [](void*) -> void* {
      pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
      for (;;) {
        if (!check_scattered(static_cast<unsigned>(gettid()))) ++wrong;
      }
    };
    if (pthread_create(&thread, nullptr, work, nullptr) != 0) return false;
    if (!check_scattered(i)) return false;
    if (pthread_cancel(thread) != 0 || pthread_join(thread, nullptr) != 0) return false;
  }
  for (std::size_t at = 0; at < bytes; at += page) {
    if (far_memory[at] != expected(at)) return false;
  }
  return wrong == 0;
}

// SIGBUS that is sent to the process, whose threads are busy with faults, reaches one of the program's threads.
std::atomic<int> foreign_threads{0};
std::atomic<pid_t> sender{0};
bool is_sent_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) {
    ++alarms;
    if (gettid() != getpid() && gettid() != sender) ++foreign_threads;
  };
  if (sigaction(SIGBUS, &action, nullptr) != 0) return false;
  std::atomic<bool> done{false};
  std::thread other([&] {
    sender = gettid();
    for (int sent = 0; !done; ++sent) {
      kill(getpid(), SIGBUS);
      while (alarms <= sent && !done) std::this_thread::yield();
    }
  });
  bool fine = true;
  for (unsigned i = 0; alarms < 1000; ++i) fine = check_scattered(i) && fine;
  done = true;
  other.join();
  return fine && foreign_threads == 0;
}

// A program that waits for SIGBUS instead of handling it.
bool waits_for_signals() {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGBUS);
  if (pthread_sigmask(SIG_BLOCK, &only, nullptr) != 0) return false;
  for (unsigned i = 0; i < 20; ++i) {
    int got = 0;
    if (kill(getpid(), SIGBUS) != 0 || !check_scattered(i) || sigwait(&only, &got) != 0 || got != SIGBUS) return false;
  }
  return true;
}

// Pages of a file in the middle of blocks whose other pages leave and come back.
bool maps_files_in_between() {
  constexpr std::size_t block = 2 << 20;
  const int file = memfd_create("between", 0);
  if (ftruncate(file, page) != 0) return false;
  const auto base = (reinterpret_cast<std::uintptr_t>(far_memory) + block - 1) / block * block;
  const auto place = [&](std::size_t i) { return reinterpret_cast<unsigned char*>(base + i * block + 200 * page); };
  const std::size_t offset = base - reinterpret_cast<std::uintptr_t>(far_memory);
  constexpr std::size_t places = 4;  // pages near them stay local
  for (std::size_t i = 0; i < places; ++i) {
    if (!check_scattered(static_cast<unsigned>(i))) return false;
    if (mmap(place(i), page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) != place(i)) return false;
    *place(i) = expected(offset + i * block + 200 * page);  // as the page before, for check_scattered()
    place(i)[1] = 77;
    // writes to the neighbours, which must not be protected for ever
    for (std::size_t at = 100; at < 300; ++at) {
      if (at != 200) reinterpret_cast<unsigned char*>(base + i * block + at * page)[2] = 5;
    }
  }
  for (unsigned i = 0; i < 5; ++i) {
    if (!check_scattered(i)) return false;
  }
  for (std::size_t i = 0; i < places; ++i) {
    if (place(i)[1] != 77) return false;
    for (std::size_t at = 100; at < 300; ++at) {
      if (at != 200 && reinterpret_cast<unsigned char*>(base + i * block + at * page)[2] != 5) return false;
    }
  }
  return true;
}

// Some pages of blocks stay in memory, while the others leave and come back.
bool locks_pages() {
  for (std::size_t start = 100 * page; start + (1 << 20) < bytes; start += 12 << 20) {
    if (!check_scattered(static_cast<unsigned>(start / page))) return false;
    if (mlock(far_memory + start, 50 * page) != 0) return false;
  }
  for (unsigned i = 0; i < 5; ++i) {
    if (!check_scattered(i)) return false;
  }
  return munlockall() == 0 && check_scattered();
}

// Absent pages beside one that is only read and one that is closed.
bool locks_readable_pages(unsigned char* constant, unsigned char* closed) {
  const auto lock_around = [](unsigned char* at) { return mlock(at - page, 3 * page); };
  return lock_around(constant - 50 * page) == 0 && lock_around(constant) == 0 && lock_around(closed) == -1 &&
         errno == ENOMEM && mlock(closed + page, 50 * page) == 0;
}

bool locks_protected_pages() {
  unsigned char* const constant = far_memory - reinterpret_cast<std::uintptr_t>(far_memory) % page + 1000 * page;
  unsigned char* const closed = constant + 200 * page;
  if (mprotect(constant, page, PROT_READ) != 0 || mprotect(closed, page, PROT_NONE) != 0) return false;
  const auto use_others = [] {
    for (std::size_t at = bytes / 2; at < bytes; at += page) wrong += far_memory[at] != expected(at);
  };
  use_others();
  const pid_t child = fork();
  if (child == 0) _exit(locks_readable_pages(constant, closed) ? 0 : 1);
  int status = -1;
  if (waitpid(child, &status, 0) != child || status != 0) return false;
  if (!locks_readable_pages(constant, closed)) return false;
  use_others();
  return munlockall() == 0 && mprotect(constant, 300 * page, PROT_READ | PROT_WRITE) == 0 && check_scattered() &&
         wrong == 0;
}

// Pages are given back and written again while their neighbours are read in order, and everything leaves.
bool gives_pages_back() {
  std::atomic<bool> done{false};
  std::thread giver([&] {
    const std::size_t skipped = page - reinterpret_cast<std::uintptr_t>(far_memory) % page;  // to a whole page
    std::uint64_t random = 3;
    while (!done) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      const std::size_t at = (random >> 33) % (bytes / page / 8 - 1) * 8 * page + skipped;
      far_memory[at + 3 * page] = 9;
      if (madvise(far_memory + at + 3 * page, page, MADV_DONTNEED) != 0 || far_memory[at + 3 * page + 5] != 0) ++wrong;
    }
  });
  bool fine = true;
  for (int round = 0; round < 4; ++round) {
    for (std::size_t at = 0; at < bytes; at += page) {
      const std::size_t number = at / page % 8;  // far_memory is not aligned: the giver's page overlaps two
      if (number == 3 || number == 4) continue;
      if (far_memory[at] != expected(at)) fine = false;
    }
  }
  done = true;
  giver.join();
  return fine && wrong == 0;
}

// A stack for handlers that has room for one of them.
bool has_a_small_alternate_stack() {
  std::vector<std::byte> stack(static_cast<std::size_t>(sysconf(_SC_SIGSTKSZ)));
  const stack_t alternate{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  return sigaltstack(&alternate, nullptr) == 0 && check_scattered();
}

bool has_alternate_stacks_in_all_threads() {
  std::array<std::atomic<bool>, 4> fine{};
  std::vector<std::thread> threads;
  for (auto& each : fine) threads.emplace_back([&] { each = has_a_small_alternate_stack(); });
  for (std::thread& each : threads) each.join();
  return std::ranges::all_of(fine, [](const auto& each) { return each.load(); });
}

std::atomic<void*> met{nullptr};
std::atomic<int> code{0};
sigjmp_buf back;

void own_handler(int, siginfo_t* info, void*) {
  met = info->si_addr;
  code = info->si_code;
  siglongjmp(back, 1);
}

// The program's own SIGBUS, from a file that is shorter than its mapping, and from kill().
bool has_its_own_handler() {
  struct sigaction action {};
  action.sa_sigaction = own_handler;
  action.sa_flags = SA_SIGINFO;
  struct sigaction before {};
  if (sigaction(SIGBUS, &action, &before) != 0 || before.sa_handler != SIG_DFL) return false;
  struct sigaction now {};
  if (sigaction(SIGBUS, nullptr, &now) != 0 || now.sa_sigaction != own_handler) return false;

  const int file = memfd_create("short", 0);
  auto* const mapped = static_cast<unsigned char*>(mmap(nullptr, page, PROT_READ, MAP_SHARED, file, 0));
  if (sigsetjmp(back, 1) == 0) {
    (void)*static_cast<volatile unsigned char*>(mapped + 5);
    return false;
  }
  if (met != mapped + 5 || code != BUS_ADRERR || !check_scattered()) return false;
  if (sigsetjmp(back, 1) == 0) {
    raise(SIGBUS);
    return false;
  }
  return code == SI_TKILL && check_scattered(2) && signal(SIGBUS, SIG_IGN) != SIG_ERR && raise(SIGBUS) == 0 &&
         check_scattered(3);
}

// Pages leave although some of their block cannot be read for a while.
bool protects_pages() {
  constexpr std::size_t hole = 5 << 20;  // ends within a block
  for (std::size_t start = 3 * page; start + hole < bytes; start += bytes / 6) {
    const std::size_t first = start / page * page;
    if (mprotect(far_memory - reinterpret_cast<std::uintptr_t>(far_memory) % page + first, hole, PROT_NONE) != 0)
      return false;
    std::uint64_t random = start;
    for (int i = 0; i < 20'000; ++i) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      const std::size_t at = (random >> 33) % (bytes / page) * page;
      if (at + page >= first && at <= first + hole) continue;
      if (far_memory[at] != expected(at)) return false;
    }
    if (mprotect(far_memory - reinterpret_cast<std::uintptr_t>(far_memory) % page + first, hole,
                 PROT_READ | PROT_WRITE) != 0) {
      return false;
    }
    if (!check_scattered(static_cast<unsigned>(start))) return false;
  }
  return true;
}

bool closes_all_descriptors() {
  close_range(3, ~0U, 0);
  const bool fine = check_scattered();
  // a file of the program with the number of a descriptor that it has closed
  for (int i = 0; i < 1100; ++i) (void)!open("/dev/null", O_RDWR);
  return check_scattered(2) && fine;
}

bool waits_with_signals_blocked() {
  sigset_t all;
  sigfillset(&all);
  sigdelset(&all, SIGALRM);
  struct sigaction action {};
  action.sa_handler = [](int) {
    ++alarms;
    if (!check_scattered(static_cast<unsigned>(alarms))) ++wrong;  // runs with the mask of sigsuspend()
  };
  sigset_t alarm_only;
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  if (sigaction(SIGALRM, &action, nullptr) != 0 || sigprocmask(SIG_BLOCK, &alarm_only, nullptr) != 0) return false;
  const itimerval often{.it_interval = {0, 20'000}, .it_value = {0, 20'000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  while (alarms < 5) sigsuspend(&all);
  return wrong == 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::map<std::string, std::function<bool()>> cases{{"blocked", blocks_all_signals},
                                                           {"handler", has_a_handler_that_faults},
                                                           {"alternate", has_a_small_alternate_stack},
                                                           {"alternates", has_alternate_stacks_in_all_threads},
                                                           {"own", has_its_own_handler},
                                                           {"protected", protects_pages},
                                                           {"descriptors", closes_all_descriptors},
                                                           {"suspended", waits_with_signals_blocked},
                                                           {"early", began_early},
                                                           {"cancelled", cancels_threads},
                                                           {"sent", is_sent_signals},
                                                           {"waited", waits_for_signals},
                                                           {"files", maps_files_in_between},
                                                           {"locked", locks_pages},
                                                           {"constant", locks_protected_pages},
                                                           {"given", gives_pages_back}};
  const auto found = cases.find(count > 1 ? arguments[1] : "");
  if (found == cases.end()) return 2;
  if (found->first == "early") begin_early();
  far_memory = static_cast<unsigned char*>(std::malloc(bytes));
  write_all();
  const bool fine = found->second();
  if (fine) std::puts("ok");
  return fine ? 0 : 1;
}
