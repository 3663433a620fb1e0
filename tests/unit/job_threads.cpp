// Ranks as threads of one process. So ThreadSanitizer sees joining, leaving and deaths.

#include "job/session.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tonari {
namespace {

using job::Session;

// Waits until other threads have made the condition true. Returns false when they do not in time.
template <class Condition>
bool eventually(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// An attachment, as the layers above have them. It records the deaths that it is told of.
class Recorder final : public Session::Attachment {
 public:
  void serve() noexcept override { served.fetch_add(1); }
  bool died(int rank) noexcept override {
    const std::lock_guard guard(mutex_);
    dead_.push_back(rank);
    return true;
  }
  bool left(int) noexcept override { return true; }
  void settle() noexcept override {}
  [[nodiscard]] bool has_died(int rank) {
    const std::lock_guard guard(mutex_);
    EXPECT_LE(std::ranges::count(dead_, rank), 1) << "a death must be told once only";
    return std::ranges::count(dead_, rank) == 1;
  }

  std::atomic<int> served{0};

 private:
  std::mutex mutex_;
  std::vector<int> dead_;
};

Recorder& recorder_of(Job& job) {
  return job.session().attached<Recorder>([] { return std::make_unique<Recorder>(); });
}

TEST(Threads, EachThreadIsARank) {
  std::vector<int> seen(5);

  run_as_threads(5, [&](Job& job) {
    EXPECT_EQ(job.size(), 5);
    EXPECT_TRUE(job.session().threads());
    EXPECT_TRUE(job.session().direct_copies());
    seen[job.rank().index()] += 1;
  });

  EXPECT_EQ(seen, std::vector<int>(5, 1));
}

TEST(Threads, JoinAndLeaveManyTimes) {
  for (int round = 0; round < 100; ++round) {
    run_as_threads(4, [](Job& job) { EXPECT_TRUE(job.alive((job.rank() + 1) % 4)); });
  }
}

TEST(Threads, LeavingWaitsForTheLastRank) {
  std::atomic<bool> last_has_left{false};
  std::atomic<int> early{0};

  run_as_threads(3, [&](Job& job) {
    if (job.rank() == 2) {
      // Both other ranks are in their destructors once the arena shows that they leave.
      auto& arena = job.session().arena();
      EXPECT_TRUE(eventually(
          [&] { return arena.block(0).phase == job::Phase::leaving && arena.block(1).phase == job::Phase::leaving; }));
      EXPECT_EQ(arena.block(0).wait, job::Wait::leave);
      last_has_left = true;
    }
    struct Probe final : Session::Attachment {  // destroyed after every rank has left
      Probe(std::atomic<bool>& left, std::atomic<int>& count) : left_(left), count_(count) {}
      ~Probe() override { count_ += left_ ? 0 : 1; }
      void serve() noexcept override {}
      bool died(int) noexcept override { return true; }
      bool left(int) noexcept override { return true; }
      void settle() noexcept override {}
      std::atomic<bool>& left_;
      std::atomic<int>& count_;
    };
    job.session().attached<Probe>([&] { return std::make_unique<Probe>(last_has_left, early); });
  });

  EXPECT_EQ(early, 0);
}

TEST(Threads, ServiceRunsWhileARankComputes) {
  run_as_threads(2, [](Job& job) {
    Recorder& recorder = recorder_of(job);
    EXPECT_TRUE(eventually([&] { return recorder.served > 0; }));
  });
}

TEST(Threads, ServiceCanBeTurnedOff) {
  run_as_threads(1,
                 [](Job& job) {
                   Recorder& recorder = recorder_of(job);
                   auto& doorbell = job.session().block().service_doorbell;
                   for (int i = 0; i < 10; ++i) {
                     doorbell.fetch_add(1);
                     std::this_thread::yield();
                   }
                   EXPECT_EQ(recorder.served, 0);
                 },
                 {"TONARI_SERVICE_THREAD=off"});
}

/// Counts how often one rank's service thread looked for deaths, and how often it rested.
struct Counts {
  std::atomic<int> looks{0};
  std::atomic<int> rests{0};
  std::atomic<int> rests_while_leaving{0};
};

class Counter final : public Session::Attachment {
 public:
  explicit Counter(Counts& counts) : counts_(counts) {}
  void serve() noexcept override {}
  bool died(int) noexcept override {
    counts_.looks.fetch_add(1);
    return false;  // so the next look tells of the death again
  }
  bool left(int) noexcept override { return true; }
  void settle() noexcept override { leaves_ = true; }
  bool rest(std::uint32_t, std::chrono::nanoseconds) noexcept override {
    (leaves_ ? counts_.rests_while_leaving : counts_.rests).fetch_add(1);
    return false;
  }

 private:
  Counts& counts_;
  std::atomic<bool> leaves_{false};
};

TEST(Threads, DisabledServiceSleepsInTheNetworkWhileItsRankLeaves) {
  Counts counts;

  const auto run = [&] {
    run_as_threads(3,
                   [&](Job& job) {
                     if (job.rank() == 2) throw std::runtime_error("a death that the service looks for");
                     if (job.rank() == 1) {
                       EXPECT_TRUE(eventually([&] { return counts.rests_while_leaving > 0; }));
                       return;
                     }
                     job.session().attached<Counter>([&] { return std::make_unique<Counter>(counts); });
                     EXPECT_TRUE(eventually([&] {
                       job.session().arena().ring_service_doorbell(0);
                       return counts.looks > 2;
                     }));
                     EXPECT_EQ(counts.rests, 0);
                   },
                   {"TONARI_SERVICE_THREAD=off"});
  };

  EXPECT_THROW(run(), std::runtime_error);
}

TEST(Threads, ExceptionOfARankIsRethrownAndCountsAsItsDeath) {
  std::atomic<int> told{0};

  const auto run = [&] {
    run_as_threads(3, [&](Job& job) {
      if (job.rank() == 1) throw std::runtime_error("the cause");
      Recorder& recorder = recorder_of(job);
      EXPECT_TRUE(eventually([&] { return recorder.has_died(1); }));
      EXPECT_FALSE(job.alive(JobRank{1}));
      ++told;
      throw std::logic_error("a consequence");
    });
  };

  EXPECT_THROW(run(), std::runtime_error);
  EXPECT_EQ(told, 2);
}

TEST(Threads, DeathHandlerIsCalledOncePerDeath) {
  std::mutex mutex;
  std::vector<Death> heard;
  std::latch dead{3};

  const auto run = [&] {
    run_as_threads(4, [&](Job& job) {
      if (job.rank() != 0) throw std::runtime_error("rank " + to_string(job.rank()));
      job.on_death([&](const Death& death) {
        {
          const std::lock_guard guard(mutex);
          heard.push_back(death);
        }
        dead.count_down();
      });
      dead.wait();
    });
  };
  EXPECT_THROW(run(), std::runtime_error);

  ASSERT_EQ(heard.size(), 3U);
  for (const Death& death : heard) {
    EXPECT_GT(death.rank, 0);
    EXPECT_EQ(death.signal, 0);
    EXPECT_EQ(death.exit_status, 1);
    EXPECT_FALSE(death.host.empty());
  }
}

TEST(Threads, HandlerSetAfterADeathIsCalledForIt) {
  std::latch heard{1};

  const auto run = [&] {
    run_as_threads(2, [&](Job& job) {
      if (job.rank() == 1) throw std::runtime_error("early");
      EXPECT_TRUE(eventually([&] { return !job.alive(JobRank{1}); }));
      job.on_death([&](const Death&) { heard.count_down(); });
      heard.wait();
    });
  };

  EXPECT_THROW(run(), std::runtime_error);
}

TEST(Threads, SettingsHoldForOneJob) {
  run_as_threads(2,
                 [](Job& job) {
                   EXPECT_EQ(job.session().arena().header().ring_slots, 64);
                   EXPECT_EQ(job.hosts(), 2);
                   EXPECT_EQ(job.host(JobRank{1}), 1);
                 },
                 {"TONARI_RING_SLOTS=64", "TONARI_APART=memory"});
  run_as_threads(2, [](Job& job) {
    EXPECT_EQ(job.hosts(), 1);
    EXPECT_EQ(job.host(JobRank{1}), 0);
  });
}

TEST(Threads, RefuseInvalidNumbersOfRanksAndInvalidSettings) {
  const auto nothing = [](Job&) {};

  EXPECT_THROW(run_as_threads(0, nothing), SetupError);
  EXPECT_THROW(run_as_threads(-3, nothing), SetupError);
  EXPECT_THROW(run_as_threads(2, nothing, {"TONARI_NETWORK=pigeons"}), SetupError);
  EXPECT_THROW(run_as_threads(2, nothing, {"TONARI_NO_SUCH_SETTING=1"}), SetupError);
}

TEST(Job, AloneHasOneRankAndSeveralCanCoexist) {
  const Job first;
  const Job second;

  EXPECT_EQ(first.rank(), 0);
  EXPECT_EQ(first.size(), 1);
  EXPECT_EQ(second.size(), 1);
  EXPECT_TRUE(first.alive(JobRank{0}));
  EXPECT_EQ(first.statistics().messages_sent, 0);
}

TEST(Job, DestroyingItInAForkedChildLeavesTheParentsIntact) {
  auto job = std::make_unique<Job>();

  const pid_t child = ::fork();
  if (child == 0) {
    job.reset();
    ::_exit(5);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5);
  EXPECT_TRUE(job->alive(JobRank{0}));
  EXPECT_EQ(job->session().block().phase, job::Phase::running);
}

}  // namespace
}  // namespace tonari
