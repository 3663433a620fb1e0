// Three ranks, of which rank 1 dies in the PHASE given as first argument; rank 0 and 2 say what they see of it.
//
//   holding     it has a lock of rank 0 alone, for which the others wait
//   reading     it has that lock shared, for which the others wait
//   waiting     it waits for a lock of rank 0 that rank 0 has, and behind it waits rank 2
//   barrier     the others are in a barrier
//   notice      the others wait for a notification that only it could give
//   owner       it owns the window of its own memory that the others push to all the time
//   short       it owns memory of tonari, with which the others do short accesses all the time
//   pushing     it is in the middle of a push to rank 0's own memory, who frees its part then
//   making      the others make a window that it never makes
//
// With `live` as second argument the others have a death handler: they say "rank R saw STATUS", go on with a window of
// the two of them, and say "rank R went on".
#include "../../support/random.hpp"

#include <tonari/tonari.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace tonari;

constexpr int victim = 1;
constexpr std::size_t long_bytes = std::size_t{256} << 20;

void say(int rank, std::string_view what) {
  std::printf("rank %d %.*s\n", rank, static_cast<int>(what.size()), what.data());
  std::fflush(stdout);
}

[[noreturn]] void wait_for_death() {
  for (;;) ::pause();
}

/// Zeroed memory of the program's that nobody has touched yet.
class Ground {
 public:
  explicit Ground(std::size_t bytes)
      : bytes_(bytes),
        start_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  Ground(Ground&&) = delete;
  ~Ground() { ::munmap(start_, bytes_); }
  [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(start_), bytes_}; }

 private:
  std::size_t bytes_;
  void* start_;
};

// The first of two waiters is told of the holder's death, and has the lock; so is nobody after it.
Status lock_after_death(Communicator& world, Window& window) {
  const Status status = window.lock(JobRank{0});
  if (status != Status::ok && status != Status::holder_died) return status;
  if (window.unlock(JobRank{0}) != Status::ok) return Status::invalid;
  Status of_other = Status::ok;
  const int other = 2 - world.rank().value();
  if (const Status sent = world.send(static_cast<int>(status), Rank{other}, Tag{1}); sent != Status::ok) return sent;
  int received = 0;
  if (const Status got = world.receive(received, Rank{other}, Tag{1}).status; got != Status::ok) return got;
  of_other = static_cast<Status>(received);
  return (status == Status::ok) == (of_other == Status::ok) ? Status::invalid : Status::holder_died;
}

// The part of the other ranks while rank 1 dies.
Status survive(const std::string& phase, Job& job, Communicator& world, std::optional<Window>& window, Ground& ground) {
  if (phase == "holding") return lock_after_death(world, *window);
  if (phase == "reading") {
    const Status status = window->lock(JobRank{0});  // the dead reader has left no data half written
    return status != Status::ok ? status : window->unlock(JobRank{0});
  }
  if (phase == "waiting") {
    if (world.rank() == 0) {
      while (job.alive(JobRank{victim})) std::this_thread::yield();
      return window->unlock(JobRank{0});
    }
    const Status status = window->lock(JobRank{0});
    return status != Status::ok ? status : window->unlock(JobRank{0});
  }
  if (phase == "barrier") return window->barrier();
  if (phase == "notice") return window->wait_notified(0, 1);
  if (phase == "owner") {
    const std::vector<std::byte> bytes(1'000'000, std::byte{1});
    for (;;) {
      Status status = window->push(window->at(JobRank{victim}), bytes);
      if (status == Status::ok) status = window->fetch_add(window->at(JobRank{victim}), 1u).status;
      if (status != Status::ok) return status;
    }
  }
  if (phase == "short") {
    const GlobalAddress there = window->at(JobRank{victim}, 8);
    std::uint64_t word = 1;
    for (;;) {
      const bool is_mapped = window->direct(there, sizeof word) != nullptr;
      Status status = window->push(there, std::as_bytes(std::span(&word, 1)));
      if (status == Status::ok) status = window->pull(std::as_writable_bytes(std::span(&word, 1)), there);
      if (status == Status::ok) status = window->fetch_add(there, std::uint64_t{1}).status;
      if (status != Status::ok) return window->direct(there, sizeof word) == nullptr ? status : Status::invalid;
      if (!is_mapped) return Status::invalid;  // it was still alive afterwards
    }
  }
  if (phase == "making") {
    try {
      const Window never(job, 100);
    } catch (const SetupError&) {
      return Status::peer_gone;
    }
    return Status::ok;
  }
  if (phase == "pushing" && world.rank() == 0) {
    pid_t pid = 0;
    if (const Status status = world.receive(pid, Rank{victim}, Tag{1}).status; status != Status::ok) return status;
    const volatile std::byte* first = ground.bytes().data();  // written by the kernel
    while (*first == std::byte{0}) {
    }
    ::kill(pid, SIGKILL);
    window.reset();  // waits for the push, which nobody will end
    ground.bytes()[0] = std::byte{2};
    while (job.alive(JobRank{victim})) std::this_thread::yield();
    return *first == std::byte{2} ? Status::peer_gone : Status::invalid;
  }
  while (job.alive(JobRank{victim})) std::this_thread::yield();
  return Status::peer_gone;
}

[[noreturn]] void die(const std::string& phase, Communicator& world, Window& window) {
  if (phase == "waiting") (void)window.lock(JobRank{0});
  if (phase == "pushing") {
    const std::vector<std::byte> bytes(long_bytes, std::byte{1});
    if (world.send(::getpid(), Rank{0}, Tag{1}) == Status::ok) {
      for (;;) (void)window.push(window.at(JobRank{0}), bytes);
    }
  }
  wait_for_death();
}

Status go_on(Job& job, int rank) {
  try {
    Window window(job, Group({JobRank{0}, JobRank{2}}), 4096);
    const int other = 2 - rank;
    for (std::uint64_t i = 1; i <= 2000; ++i) {
      Status status = window.push_notified(window.at(JobRank{other}), std::as_bytes(std::span(&i, 1)), 0);
      if (status == Status::ok) status = window.wait_notified(0, i);
      if (status == Status::ok) status = window.lock(JobRank{0});
      if (status == Status::ok) status = window.unlock(JobRank{0});
      if (status != Status::ok) return status;
    }
    return window.barrier();
  } catch (const SetupError& failure) {
    say(rank, failure.what());
    return Status::invalid;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string phase = argc > 1 ? argv[1] : "";
  Job job;
  Communicator world(job);
  if (argc > 2) job.on_death([](const Death&) {});
  std::printf("%d is %d\n", world.rank().value(), ::getpid());
  const bool own = phase == "owner" || phase == "pushing";
  Ground ground(long_bytes);
  std::optional<Window> window;
  if (own) {
    window.emplace(job, ground.bytes());
  } else {
    window.emplace(job, 4096);
  }
  const auto check = [](Status status) {
    if (status != Status::ok) std::exit(1);
  };
  // On several hosts no connection is half made when rank 1 dies: UCX 1.13 would end the others.
  for (int rank = 0; rank < world.size(); ++rank) check(window->fetch_add(window->at(JobRank{rank}), 0u).status);
  if (phase == "holding" && world.rank() == victim) check(window->lock(JobRank{0}));
  if (phase == "reading" && world.rank() == victim) check(window->lock(JobRank{0}, 0, LockMode::shared));
  if (phase == "waiting" && world.rank() == 0) check(window->lock(JobRank{0}));
  check(world.barrier());
  say(world.rank().value(), "is ready");
  if (world.rank() == victim) die(phase, world, *window);

  say(world.rank().value(), "saw " + std::string(to_string(survive(phase, job, world, window, ground))));
  if (const Status status = go_on(job, world.rank().value()); status != Status::ok) {
    say(world.rank().value(), "could not go on: " + std::string(explain(status)));
    return 1;
  }
  say(world.rank().value(), "went on");
}
