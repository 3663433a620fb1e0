#include "job/host_rendezvous.hpp"

#include "job/ending.hpp"
#include "job/process_watch.hpp"

#include <tonari/status.hpp>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

namespace tonari::job {
namespace {

// A child process that waits for a word from its parent. So the parent knows its process id before it does anything.
class Child {
 public:
  explicit Child(const std::function<void(int go)>& body) {
    if (::pipe(ends_.data()) != 0) throw_failure();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends_[1]);
      body(ends_[0]);
      ::_exit(0);
    }
    ::close(ends_[0]);
  }
  Child(Child&&) = delete;
  ~Child() {
    ::close(ends_[1]);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void tell(const void* what, std::size_t bytes) const {
    ASSERT_EQ(::write(ends_[1], what, bytes), static_cast<ssize_t>(bytes));
  }
  // Returns the child's exit status once it has ended. The child is not reaped, so no other process gets its id.
  [[nodiscard]] int status() const {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
    return info.si_status;
  }

 private:
  [[noreturn]] static void throw_failure() { throw std::runtime_error("pipe"); }

  std::array<int, 2> ends_{};
  pid_t pid_ = 0;
};

using Ranks = std::array<BusinessCard, 2>;
constexpr std::array<int, 2> both{0, 1};

Settings patient() { return read_settings(); }

// Runs rank 1 in its process. Returns 0 when it has got the arena, 1 when it was refused.
int follow(const Ranks& ranks, const BusinessCard& self) {
  try {
    HostRendezvous meeting{1, self};
    const auto met = meeting.meet(ranks, both, patient());
    return met.arena->block(1).pid.load() == ::getpid() && met.neighbours.size() == 1 ? 0 : 2;
  } catch (const SetupError&) {
    return 1;
  }
}

// Like follow(), with the business cards that the parent sends. `change` alters them first.
std::function<void(int)> follower(const std::function<void(Ranks&)>& change = [](Ranks&) {}) {
  return [change](int go) {
    Ranks ranks;
    if (::read(go, static_cast<void*>(&ranks), sizeof ranks) != sizeof ranks) ::_exit(3);
    change(ranks);
    ::_exit(follow(ranks, ranks[1]));
  };
}

Ranks introduce(pid_t other) {
  Ranks ranks{make_business_card(0), make_business_card(1)};
  ranks[1].pid = other;
  return ranks;
}

std::string refusal_of(HostRendezvous& meeting, const Ranks& ranks, const Settings& settings = patient()) {
  try {
    meeting.meet(ranks, both, settings);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "none";
}

TEST(HostRendezvous, GivesAllRanksOfAHostOneArena) {
  const Child other{follower()};
  const Ranks ranks = introduce(other.pid());
  HostRendezvous meeting{0, ranks[0]};
  other.tell(&ranks, sizeof ranks);

  const HostRendezvous::Outcome met = meeting.meet(ranks, both, patient());

  EXPECT_EQ(other.status(), 0);
  EXPECT_EQ(met.arena->ranks(), 2);
  EXPECT_EQ(met.arena->block(0).pid.load(), ::getpid());
  EXPECT_EQ(met.arena->block(1).pid.load(), other.pid());
  EXPECT_EQ(met.arena->block(1).phase.load(), Phase::joined);
  ASSERT_EQ(met.neighbours.size(), 1U);
  EXPECT_EQ(met.neighbours[0].rank, 1);
}

TEST(HostRendezvous, IsNotDelayedByASilentStranger) {
  const Child other{follower()};
  const Ranks ranks = introduce(other.pid());
  HostRendezvous meeting{0, ranks[0]};
  const Child stranger{[&](int go) {
    const FileDescriptor connection = try_connect(listener_name(ranks[0]));
    char byte = 0;
    static_cast<void>(!::read(go, &byte, 1));  // blocks until the parent ends this process
  }};
  other.tell(&ranks, sizeof ranks);

  EXPECT_EQ(refusal_of(meeting, ranks), "none");
  EXPECT_EQ(other.status(), 0);
}

TEST(HostRendezvous, RefusesAProcessThatDoesNotKnowTheSecret) {
  const Child other{follower([](Ranks& ranks) { ranks[0].secret[0] ^= std::byte{1}; })};
  const Ranks ranks = introduce(other.pid());
  HostRendezvous meeting{0, ranks[0]};
  other.tell(&ranks, sizeof ranks);

  EXPECT_EQ(refusal_of(meeting, ranks), "rank 1, on the same host, ended while the ranks of this host joined");
  EXPECT_EQ(other.status(), 1);
}

TEST(HostRendezvous, NamesTheRankThatEndedInsteadOfComing) {
  const Child other{[](int) {}};
  const Ranks ranks = introduce(other.pid());
  HostRendezvous meeting{0, ranks[0]};

  EXPECT_EQ(refusal_of(meeting, ranks), "rank 1, on the same host, ended while the ranks of this host joined");
}

TEST(HostRendezvous, EndsAfterItsTimeout) {
  const Child other{follower()};  // its parent never tells it to go on
  const Ranks ranks = introduce(other.pid());
  HostRendezvous meeting{0, ranks[0]};
  Settings settings = patient();
  settings.join_seconds = 1;

  EXPECT_EQ(refusal_of(meeting, ranks, settings),
            "rank 1, on the same host, did not connect while the ranks of this host joined");
}

TEST(HostRendezvous, FailsWhenTheFirstRankIsGone) {
  const Child other{follower()};
  const Ranks ranks = introduce(other.pid());
  other.tell(&ranks, sizeof ranks);  // but no rank listens

  EXPECT_EQ(other.status(), 1);
}

// ---- After the rendezvous: the process watch ----

Neighbour neighbour(int rank, const Child& child) {
  return {.rank = rank, .pid = child.pid(), .process = open_process(child.pid())};
}

void wait_for_end(int go) {
  char byte = 0;
  static_cast<void>(!::read(go, &byte, 1));
  ::_exit(5);
}

TEST(ProcessWatch, RecordsHowNeighboursEnded) {
  const auto arena = std::make_shared<Arena>(Arena::create(4, patient()));
  const Child killed{wait_for_end};
  const Child returning{wait_for_end};
  const Child leaver{wait_for_end};
  std::vector<Neighbour> neighbours;
  neighbours.push_back(neighbour(1, leaver));  // the watch looks at this one first
  neighbours.push_back(neighbour(2, killed));
  neighbours.push_back(neighbour(3, returning));
  for (int rank = 0; rank < 4; ++rank) arena->advance(rank, Phase::running);
  const ProcessWatch watch{arena, std::move(neighbours)};

  arena->advance(1, Phase::left);
  leaver.tell("", 1);
  EXPECT_EQ(leaver.status(), 5);
  ::kill(killed.pid(), SIGKILL);
  returning.tell("", 1);
  while (arena->header().deaths.load(std::memory_order_acquire) < 2) std::this_thread::yield();

  EXPECT_EQ(arena->block(1).phase.load(), Phase::left);
  EXPECT_EQ(arena->block(2).death_signal.load(), SIGKILL);
  EXPECT_EQ(arena->block(3).death_signal.load(), 0);
  EXPECT_EQ(arena->block(3).death_status.load(), 5);
}

TEST(ProcessWatch, RecordsNoDeathOnceAllRanksLeave) {
  const auto arena = std::make_shared<Arena>(Arena::create(2, patient()));
  const Child leaver{wait_for_end};
  std::vector<Neighbour> neighbours;
  neighbours.push_back(neighbour(1, leaver));
  arena->mark_leaving(0);
  arena->mark_leaving(1);
  {
    const ProcessWatch watch{arena, std::move(neighbours)};
    leaver.tell("", 1);
    EXPECT_EQ(leaver.status(), 5);
  }  // the watch looks for ended processes once more before it stops

  EXPECT_EQ(arena->block(1).phase.load(), Phase::leaving);
}

}  // namespace
}  // namespace tonari::job
