// The order in which ranks of several hosts get a lock. The first argument names the check. Each rank prints "rank R
// did it" after success.
//
//   order   ranks ask one after the other, and get it one after the other
//   fair    ranks ask for it again and again: while one waits, each of the others gets it once at most
//   home    its home, rank 2 of four, dies while rank 0 of another host has it, and rank 1 there and rank 3 beside the
//           home wait for it. Says "R is PID", then "rank R is ready", then the statuses of the waiting ranks
#include "../../support/rank.hpp"
#include "../../support/require.hpp"

#include <tonari/tonari.hpp>

#include <unistd.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace tonari;
using test::name;
using test::require;
using test::require_ok;
using test::say;

/// Asks for a rank's lock, and returns when the lock's home knows.
class Asked {
 public:
  Asked(Window& window, int home) : queue_(window), lock_(Descriptor::lock(JobRank{home})) {
    require_ok(queue_.post(lock_));
    require_ok(window.fetch_add(window.at(JobRank{home}), std::uint64_t{0}).status);  // comes there behind it
  }
  [[nodiscard]] bool complete() const { return lock_.complete(); }
  Status wait() {
    require(queue_.wait() == &lock_, "the queue returned another descriptor");
    return lock_.status;
  }

 private:
  Queue queue_;
  Descriptor lock_;
};

/// Adds to a word at a lock's home; returns the value before.
std::uint64_t count(Window& window, int home, std::uint64_t one = 1) {
  const auto counted = window.fetch_add(window.at(JobRank{home}), one);
  require_ok(counted.status);
  return counted.value;
}

void order(Job& job) {
  Communicator world(job);
  const int ranks = job.size();
  for (int home = 0; home < ranks; ++home) {
    Window window(job, 8);
    // Rank 0 has it; then they ask from the first to the last, or the other way round.
    const int place = home % 2 == 0 ? job.rank().value() : (ranks - job.rank().value()) % ranks;
    const auto rank_at = [&](int at) { return home % 2 == 0 ? at % ranks : (ranks - at) % ranks; };
    int token = 0;
    if (place == 0) {
      require_ok(window.lock(JobRank{home}));
      require_ok(world.send(token, Rank{rank_at(1)}));
      require_ok(world.receive(token, Rank{rank_at(ranks - 1)}).status);
      require(count(window, home) == 0, "another got the lock, which rank 0 has");
    } else {
      require_ok(world.receive(token, Rank{rank_at(place - 1)}).status);
      Asked asked(window, home);
      require_ok(world.send(token, Rank{rank_at(place + 1)}));
      require_ok(asked.wait());
      require(count(window, home) == static_cast<std::uint64_t>(place), "it was another's turn");
    }
    require_ok(window.unlock(JobRank{home}));
    require_ok(window.barrier());
  }
}

void fair(Job& job) {
  constexpr int turns = 30;
  Window window(job, 16);
  const auto others = static_cast<std::uint64_t>(job.size()) - 1;
  for (const int home : {0, job.size() - 1}) {
    const GlobalAddress satisfied = window.at(JobRank{home}, 8);
    std::uint64_t over = 0;
    for (int turn = 1; over <= others; ++turn) {  // all are active until all have had theirs
      Asked asked(window, home);
      const std::uint64_t before = count(window, home, 0);
      require_ok(asked.wait());
      const std::uint64_t overtaken = count(window, home) - before;
      require_ok(window.unlock(JobRank{home}));
      require(overtaken <= others, "overtaken " + std::to_string(overtaken) + " times");
      const auto told = window.fetch_add(satisfied, std::uint64_t{turn == turns ? 1U : 0U});
      require_ok(told.status);
      over = told.value + (turn == turns ? 1 : 0);
    }
    require_ok(window.barrier());
  }
}

void home(Job& job) {
  constexpr int victim = 2;
  job.on_death([](const Death&) {});
  Window window(job, 8);
  say(to_string(job.rank()) + " is " + std::to_string(::getpid()));
  if (job.rank() == 0) require_ok(window.lock(JobRank{victim}));
  require_ok(window.barrier());
  if (job.rank() == 0 || job.rank() == victim) {
    say(name(job.rank().value()) + " is ready");
    while (job.alive(JobRank{victim})) std::this_thread::yield();
    require_ok(window.unlock(JobRank{victim}));
  } else {
    Asked asked(window, victim);
    require(!asked.complete(), "rank 0 has it");
    say(name(job.rank().value()) + " is ready");
    const Status status = asked.wait();
    say(name(job.rank().value()) + " was told " + std::string(to_string(status)));
    if (status == Status::holder_died) require_ok(window.unlock(JobRank{victim}));
    while (job.alive(JobRank{victim})) std::this_thread::yield();
  }
  require(window.lock(JobRank{victim}) == Status::peer_gone, "its home is gone");
  Window next(job, Group({JobRank{0}, JobRank{1}, JobRank{3}}), 8);
  require_ok(next.lock(JobRank{3}));
  require_ok(next.unlock(JobRank{3}));
  require_ok(next.barrier());
}

void act(Job& job, const std::vector<std::string>& arguments) {
  const std::string& what = arguments.at(0);
  if (what == "order") return order(job);
  if (what == "fair") return fair(job);
  if (what == "home") return home(job);
  throw std::invalid_argument("window_locks does not know the word " + what);
}

}  // namespace

int main(int argc, char** argv) { return test::run_rank(argc, argv, act); }
