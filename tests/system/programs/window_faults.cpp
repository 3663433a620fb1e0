// Windows that processes can break: which TEST is the first argument.
//
//   pages     accesses to pages that their owner has protected or unmapped return bad_address
//   rights    a part is mapped without the rights that a rank does not have: a store raises a signal
//   computing ranks push to, pull from and apply atomic operations to one that computes all the time
//   pins      pinned windows are in memory as long as they are there
//   limit     and where the system allows no more, all ranks are told
//   room      all ranks are told when one of them cannot map the window
//   forks     a forked child has its own copy of the program's memory, and disturbs nobody
//   memory    the memory of windows that were freed is given back
#include "../../support/random.hpp"
#include "../../support/require.hpp"

#include "job/session.hpp"

#include <tonari/tonari.hpp>

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace tonari;
using test::require;
using test::require_ok;

constexpr std::size_t page = 4096;

void require_status(Status status, Status expected, const std::string& what) {
  require(status == expected,
          what + " returned " + std::string(to_string(status)) + ", not " + std::string(to_string(expected)));
}

/// Memory of the program's, in whole pages.
class Ground {
 public:
  explicit Ground(std::size_t bytes)
      : bytes_(bytes), start_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    require(start_ != MAP_FAILED, "mmap");
  }
  Ground(Ground&&) = delete;
  ~Ground() { ::munmap(start_, bytes_); }
  [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(start_), bytes_}; }
  void protect(std::size_t number, int protection) const {
    require(::mprotect(bytes().data() + number * page, page, protection) == 0, "mprotect");
  }
  void unmap(std::size_t number) const { ::munmap(bytes().data() + number * page, page); }

 private:
  std::size_t bytes_;
  void* start_;
};

// Every primitive on a page, as the protection of it lets them.
void expect_page(Window& window, int rank, std::size_t number, Status reading, Status writing) {
  const std::string where = "page " + std::to_string(number) + ": ";
  for (const auto& [offset, bytes] : {std::pair<std::size_t, std::size_t>{0, 8}, {page - 1, 1}, {8, 4000}, {0, page}}) {
    const GlobalAddress at = window.at(JobRank{rank}, number * page + offset);
    std::vector<std::byte> local(bytes, std::byte{1});
    std::vector<std::byte> twin(bytes, std::byte{2});
    const std::array regions{Region{0, 1}, Region{bytes - 1, 1}, Region{bytes / 2, 0}};
    require_status(window.push(at, local), writing, where + "push");
    require_status(window.push_regions(at, local, regions), writing, where + "push_regions");
    require_status(window.push_diff(at, local, twin).status, writing, where + "push_diff");
    require_status(window.multicast(std::array{at}, local), writing, where + "multicast");
    require_status(window.push_notified(at, local, 0), writing, where + "push_notified");
    require_status(window.pull(local, at), reading, where + "pull");
    require_status(window.pull_with_twin(local, twin, at), reading, where + "pull_with_twin");
    require_status(window.pull_regions(local, at, regions), reading, where + "pull_regions");
  }
  const GlobalAddress word = window.at(JobRank{rank}, number * page + 64);
  require_status(window.fetch_add(word, 1u).status, writing, where + "fetch_add");
  require_status(window.compare_and_swap(word + 8, std::uint64_t{5}, std::uint64_t{6}).status, writing, where + "swap");
}

void pages(Job& job) {
  constexpr std::size_t count = 8;
  const Ground ground(count * page);
  Window window(job, ground.bytes());
  if (job.rank() == 0) {
    ground.protect(1, PROT_NONE);
    ground.protect(3, PROT_READ);
    ground.unmap(5);
  }
  require_ok(window.barrier());
  if (job.rank() == 1) {
    for (const std::size_t good : {0, 2, 4, 6}) expect_page(window, 0, good, Status::ok, Status::ok);
    for (int turn = 0; turn < 3; ++turn) {
      expect_page(window, 0, 1, Status::bad_address, Status::bad_address);
      expect_page(window, 0, 3, Status::ok, Status::bad_address);
      expect_page(window, 0, 5, Status::bad_address, Status::bad_address);
    }
    // Long ones that begin in good pages.
    std::vector<std::byte> local(count * page, std::byte{1});
    require_status(window.push(window.at(JobRank{0}), local), Status::bad_address, "a push of all");
    require_status(window.pull(local, window.at(JobRank{0})), Status::bad_address, "a pull of all");
    for (const std::size_t good : {0, 2, 4, 6}) expect_page(window, 0, good, Status::ok, Status::ok);
    // This side's memory.
    const Ground here(2 * page);
    here.protect(1, PROT_NONE);
    require_status(window.push(window.at(JobRank{0}), here.bytes().first(page)), Status::ok, "a push");
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{24}, std::size_t{25}, page}) {
      const auto bad = here.bytes().subspan(page, bytes);
      require_status(window.push(window.at(JobRank{0}), bad), Status::bad_address, "a push of unreadable memory");
      require_status(window.pull(bad, window.at(JobRank{0})), Status::bad_address, "a pull to unwritable memory");
    }
  }
  require_ok(window.barrier());
  if (job.rank() == 0) {  // and back to good ones
    ground.protect(1, PROT_READ | PROT_WRITE);
    ground.protect(3, PROT_READ | PROT_WRITE);
    require(ground.bytes()[3 * page + 64] == std::byte{0}, "a page that cannot be written was written");
  }
  require_ok(window.barrier());
  if (job.rank() == 1) {
    for (const std::size_t good : {1, 3}) expect_page(window, 0, good, Status::ok, Status::ok);
  }
  require_ok(window.barrier());
}

sigjmp_buf back;  // NOLINT: a signal handler has no other way

// True if the access raises a signal.
template <class Touch>
bool is_refused(Touch touch) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { siglongjmp(back, 1); };
  ::sigaction(SIGSEGV, &action, &before);
  volatile bool refused = true;
  if (sigsetjmp(back, 1) == 0) {
    touch();
    refused = false;
  }
  ::sigaction(SIGSEGV, &before, nullptr);
  return refused;
}

void rights(Job& job) {
  for (const Rights given : {Rights::none, Rights::read, Rights::write, Rights::atomic, Rights::read | Rights::write,
                             Rights::read | Rights::atomic, Rights::all}) {
    for (const std::size_t bytes : {std::size_t{100}, 3 * page + 1, std::size_t{5} << 20}) {
      WindowOptions options;
      options.rights = Rights::all;
      if (job.rank() == 0) options.rights_of = {{JobRank{1}, given}};
      Window window(job, bytes, options);
      if (job.rank() == 1) {
        volatile std::byte* const there = window.direct(window.at(JobRank{0}), bytes);
        require((there == nullptr) == (given == Rights::none), "direct() of a part with some rights");
        const bool writable = includes(given, Rights::write) || includes(given, Rights::atomic);
        if (there != nullptr) {
          for (const std::size_t place : {std::size_t{0}, bytes - 1}) {
            require(is_refused([&] { there[place] = std::byte{1}; }) != writable, "a store against the rights");
            require(!is_refused([&] { (void)there[place]; }), "a load");
          }
        }
      }
      require_ok(window.barrier());
      // Each rank may do everything with its own part, and so may others that have rights.
      window.local()[0] = std::byte{5};
      require_ok(window.barrier());
      if (job.rank() == 2) {
        std::byte* const there = window.direct(window.at(JobRank{0}), bytes);
        require(there != nullptr && *there == std::byte{5}, "direct() of a part with all rights");
        there[bytes - 1] = std::byte{3};
      }
      require_ok(window.barrier());
      require(job.rank() != 0 || window.local()[bytes - 1] == std::byte{3}, "a store through direct()");
    }
  }
}

// Rank 0 never calls the library while it computes.
void computing(Job& job) {
  std::vector<std::byte> memory(1 << 20);
  const Ground flags(page);
  Window own(job, std::span(memory));
  Window ours(job, memory.size());
  Window done(job, page);
  require_ok(done.barrier());
  if (job.rank() == 0) {
    const auto* const count = reinterpret_cast<std::uint32_t*>(done.local().data());
    while (std::atomic_ref(*const_cast<std::uint32_t*>(count)).load() != 2) {
    }
  } else {
    const auto number = static_cast<std::uint64_t>(job.rank().value());
    for (Window* const window : {&own, &ours}) {
      for (std::size_t turn = 0; turn < 50; ++turn) {
        const std::size_t bytes = turn % 2 == 0 ? 100 * turn : 300'000;
        const GlobalAddress at = window->at(JobRank{0}, number * 400'000 - 400'000 + 64);
        const auto sent = test::pattern(bytes, turn + number);
        std::vector<std::byte> got(bytes);
        require_ok(window->push(at, sent));
        require_ok(window->pull(got, at));
        require(got == sent, "what was pulled is not what was pushed");
        require_ok(window->fetch_add(window->at(JobRank{0}), std::uint64_t{1}).status);
      }
    }
    require_ok(done.fetch_add(done.at(JobRank{0}), 1u).status);
  }
  require_ok(done.barrier());
  for (Window* const window : {&own, &ours}) {
    require(window->fetch_add(window->at(JobRank{0}), std::uint64_t{0}).value == 100, "atomic operations were lost");
  }
  require_ok(done.barrier());
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;  // then mlock() does nothing, too
#else
constexpr bool sanitized = false;
#endif

std::size_t locked_kib() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmLck:")) return std::strtoull(line.c_str() + 6, nullptr, 10);
  }
  return ~std::size_t{0};
}

void pins(Job& job) {
  const std::size_t before = locked_kib();
  const auto expect_pages = [before](std::size_t count, const std::string& what) {
    const std::size_t kib = locked_kib() - before;
    require(kib == count * 4, what + ": " + std::to_string(kib) + " KiB are locked");
  };
  WindowOptions pinned;
  pinned.pinned = true;
  const Ground ground(20 * page);
  {
    std::optional<Window> all(Window(job, ground.bytes(), pinned));
    expect_pages(20, "one of 20 pages");
    // Two that overlap in a page, and within the first.
    std::optional<Window> front(Window(job, ground.bytes().subspan(page, 5 * page + 1), pinned));
    std::optional<Window> behind(Window(job, ground.bytes().subspan(6 * page + 8, 3 * page), pinned));
    expect_pages(20, "three that overlap");
    all.reset();
    expect_pages(9, "two that overlap");
    front.reset();
    expect_pages(4, "the last");
    Window again(job, ground.bytes().subspan(6 * page + 8, 3 * page), pinned);
    Window loose(job, ground.bytes());
    expect_pages(4, "the same twice");
    behind.reset();
    expect_pages(4, "the same once");
  }
  expect_pages(0, "none");
  {
    const Window ours(job, 3 * page, pinned);
    expect_pages(3, "tonari's memory");
    const Window nothing(job, 0, pinned);
  }
  expect_pages(0, "none of tonari's");
}

void limit(Job& job) {
  // Without the privilege to lock as much as it likes.
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  require(::syscall(SYS_capget, &header, data.data()) == 0, "capget");
  data[0].effective &= ~(1u << CAP_IPC_LOCK);
  require(::syscall(SYS_capset, &header, data.data()) == 0, "capset");
  const rlimit memlock{64 << 10, 64 << 10};
  require(::setrlimit(RLIMIT_MEMLOCK, &memlock) == 0, "setrlimit");

  const std::size_t before = locked_kib();
  for (const int culprit : {0, 1, 2}) {  // 2: both
    for (const bool own : {false, true}) {
      WindowOptions options;
      options.pinned = culprit == 2 || culprit == job.rank();
      std::vector<std::byte> memory(1 << 20);
      try {
        const Window window = own ? Window(job, std::span(memory), options) : Window(job, memory.size(), options);
        require(false, "a window larger than the limit was made");
      } catch (const SetupError& error) {
        const std::string what = error.what();
        require(!options.pinned ||
                    (what.find("64 KiB") != std::string::npos && what.find("ulimit -l") != std::string::npos),
                what);
      }
      require(locked_kib() == before, "some stay locked");
      Window next(job, 8 * page, options);
      require_ok(next.barrier());
    }
  }
  try {
    WindowOptions options;
    options.pinned = true;
    const Window alone = Window::alone(job, 1 << 20, options);
    require(false, "a window alone, larger than the limit");
  } catch (const SetupError& error) {
    require(std::string(error.what()).find("64 KiB") != std::string::npos, error.what());
  }
}

void room(Job& job) {
  for (int culprit = 0; culprit < job.size(); ++culprit) {
    rlimit before{};
    require(::getrlimit(RLIMIT_AS, &before) == 0, "getrlimit");
    if (job.rank() == culprit) {
      std::size_t pages_now = 0;
      std::ifstream("/proc/self/statm") >> pages_now;
      const rlimit little{pages_now * page + (8 << 20), before.rlim_max};
      require(::setrlimit(RLIMIT_AS, &little) == 0, "setrlimit");
    }
    try {
      const Window window(job, 64 << 20);
      require(false, "a window that a rank has no room for");
    } catch (const SetupError&) {
    }
    require(::setrlimit(RLIMIT_AS, &before) == 0, "setrlimit");
    Window next(job, 64 << 20);
    require_ok(next.barrier());
  }
}

void forks(std::unique_ptr<Job> job) {
  const Ground ground(4 * page);
  auto window = std::make_unique<Window>(*job, ground.bytes());
  auto ours = std::make_unique<Window>(*job, page);
  WindowOptions options;
  options.pinned = true;
  auto pinned = std::make_unique<Window>(*job, ground.bytes().first(page), options);
  const bool owner = job->rank() == 0;
  for (const bool destroys : {false, true}) {
    for (const bool exits : {false, true}) {
      ground.bytes()[0] = std::byte{1};
      require_ok(window->barrier());
      pid_t child = 0;
      std::array<int, 2> pipe{};
      require(::pipe(pipe.data()) == 0, "pipe");
      if (owner) {
        child = ::fork();
        if (child == 0) {
          char go = 0;
          ground.bytes()[0] = std::byte{77};  // its own copy
          if (::read(pipe[0], &go, 1) != 1) ::_exit(1);
          if (ground.bytes()[0] != std::byte{77} || ground.bytes()[1] != std::byte{0}) ::_exit(2);
          if (destroys) {
            window.reset();
            ours.reset();
            pinned.reset();
            job.reset();
          }
          if (exits && !sanitized) std::exit(0);  // a leak checker has much to say about forked children
          ::_exit(0);
        }
        require(child > 0, "fork");
      }
      require_ok(window->barrier());
      if (!owner) {
        const auto sent = std::array{std::byte{9}, std::byte{8}};
        require_ok(window->push(window->at(JobRank{0}), sent));
        require_ok(window->fetch_add(window->at(JobRank{0}, 8), 1u).status);
        require_ok(ours->push(ours->at(JobRank{0}), sent));
      }
      require_ok(window->barrier());
      if (owner) {
        require(::write(pipe[1], "g", 1) == 1, "write");
        int status = 0;
        require(::waitpid(child, &status, 0) == child && WIFEXITED(status), "waitpid");
        require(WEXITSTATUS(status) == 0, "the child ended with " + std::to_string(WEXITSTATUS(status)));
        require(ground.bytes()[0] == std::byte{9} && ours->local()[0] == std::byte{9}, "what was pushed is not here");
        ground.bytes()[1] = std::byte{0};
      }
      ::close(pipe[0]);
      ::close(pipe[1]);
      require_ok(ours->barrier());
    }
  }
}

// Returns the total size of the job's memory, in KiB.
std::size_t taken_kib(Job& job) {
  struct stat state {};
  require(::fstat(job.session().arena().memory().number(), &state) == 0, "fstat");
  return static_cast<std::size_t>(state.st_blocks) / 2;
}

void memory(Job& job) {
  constexpr std::size_t bytes = 4 << 20;
  Communicator world(job);
  std::size_t before = 0;
  for (int turn = 0; turn < 30; ++turn) {
    {
      Window window(job, bytes);
      std::ranges::fill(window.local(), std::byte{1});
      Window alone = Window::alone(job, bytes);
      std::ranges::fill(alone.local(), std::byte{1});
      WindowOptions wrong;
      if (job.rank() == turn % job.size()) wrong.rights_of = {{JobRank{99}, Rights::all}};
      try {
        const Window never(job, bytes, wrong);
      } catch (const SetupError&) {
      }
      GlobalAddress others = alone.at(job.rank());
      require_ok(world.broadcast(others, Rank{0}));
      if (job.rank() != 0) {
        Window reached = Window::reach(job, others);
        require_ok(reached.push(others, std::as_bytes(std::span(&turn, 1))));
      }
      require_ok(window.barrier());
    }
    require_ok(world.barrier());
    if (turn == 4) before = taken_kib(job);
    require(before == 0 || taken_kib(job) < before + 1024,
            std::to_string(taken_kib(job)) + " KiB are taken, after " + std::to_string(before));
    require_ok(world.barrier());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string test = argc > 1 ? argv[1] : "";
  if (sanitized && (test == "pins" || test == "limit")) {
    std::puts("cannot be tried");
    return 0;
  }
  try {
    auto job = std::make_unique<Job>();
    const int rank = job->rank().value();
    if (test == "pages") pages(*job);
    if (test == "rights") rights(*job);
    if (test == "computing") computing(*job);
    if (test == "pins") pins(*job);
    if (test == "limit") limit(*job);
    if (test == "room") room(*job);
    if (test == "memory") memory(*job);
    if (test == "forks") forks(std::move(job));
    std::printf("rank %d did it\n", rank);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
