#include "../support/windows.hpp"

#include "job/session.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <set>
#include <thread>

// Tests of windows between hosts; each rank is a host of its own. The other window suites also run between hosts and
// test the promises of all windows. Hosts of several ranks are tested by tests/cluster/windows.py.
namespace tonari {
namespace {

using test::bytes_of;
using test::Killed;
using test::pattern;
using test::Variant;
using test::writable_bytes_of;

class WindowHosts : public test::OnEveryVariant {
 protected:
  static void run(int ranks, const std::function<void(Job&)>& body) { test::as_jobs(ranks, body, GetParam().settings); }
};
INSTANTIATE_TEST_SUITE_P(Over, WindowHosts,
                         testing::Values(Variant{"Network", {"TONARI_APART=network", test::network_setting()}},
                                         Variant{"NetworkNoDirectCopies",
                                                 {"TONARI_APART=network", test::network_setting(),
                                                  "TONARI_DIRECT_COPIES=off"}}),
                         test::name_of);

TEST_P(WindowHosts, AgreeOnAUniqueNumberForEachWindow) {
  constexpr int ranks = 3;
  run(ranks, [](Job& job) {
    Communicator world(job);
    std::vector<Window> windows;
    std::vector<std::uint32_t> numbers;
    for (int turn = 0; turn < 4; ++turn) {
      windows.push_back(Window::alone(job, 10));
      std::array<std::uint32_t, ranks> of_each{};
      ASSERT_EQ(world.all_gather(std::array{windows.back().number()}, of_each), Status::ok);
      numbers.insert(numbers.end(), of_each.begin(), of_each.end());
      windows.emplace_back(
          job,
          turn % 2 == 0 ? Group({JobRank{2}, JobRank{0}, JobRank{1}}) : Group({JobRank{1}, JobRank{2}, JobRank{0}}),
          10);
      ASSERT_EQ(world.all_gather(std::array{windows.back().number()}, of_each), Status::ok);
      ASSERT_EQ(std::set(of_each.begin(), of_each.end()).size(), 1u);
      numbers.push_back(windows.back().number());
    }
    EXPECT_EQ(std::set(numbers.begin(), numbers.end()).size(), numbers.size());
    ASSERT_EQ(world.barrier(), Status::ok);
  });
}

TEST_P(WindowHosts, AccessAPartWhileItsOwnerComputes) {
  std::atomic<bool> over{false};
  run(2, [&over](Job& job) {
    std::vector<std::byte> memory(100'000);
    Window own(job, std::span(memory));
    Window ours(job, memory.size());
    ASSERT_EQ(own.barrier(), Status::ok);
    if (job.rank() == 1) {
      while (!over.load()) std::this_thread::yield();
    }
    for (Window* const window : {&own, &ours}) {
      if (job.rank() == 1) break;
      const auto sent = pattern(memory.size() - 64, 1);
      std::vector<std::byte> got(sent.size());
      EXPECT_EQ(window->push(window->at(JobRank{1}, 64), sent), Status::ok);
      EXPECT_EQ(window->pull(got, window->at(JobRank{1}, 64)), Status::ok);
      EXPECT_TRUE(got == sent);
      EXPECT_EQ(window->fetch_add(window->at(JobRank{1}), std::uint64_t{5}).value, 0u);
      EXPECT_EQ(window->push_notified(window->at(JobRank{1}, 8), bytes_of(1), 0), Status::ok);
      EXPECT_EQ(window->lock(JobRank{1}), Status::ok);
      EXPECT_EQ(window->unlock(JobRank{1}), Status::ok);
      EXPECT_EQ(window->flush(JobRank{1}), Status::ok);
    }
    over.store(true);
    ASSERT_EQ(ours.barrier(), Status::ok);
    if (job.rank() == 1) {
      EXPECT_EQ(own.notified(0), 1u);
      EXPECT_EQ(ours.notified(0), 1u);
    }
  });
}

TEST_P(WindowHosts, LeaveProtectedPagesAlone) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  run(2, [page](Job& job) {
    void* const mapped = ::mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    auto* const memory = static_cast<std::byte*>(mapped);
    {
      Window window(job, std::span(memory, 3 * page));
      ASSERT_EQ(::mprotect(memory + page, page, PROT_READ), 0);
      ASSERT_EQ(::mprotect(memory + 2 * page, page, PROT_NONE), 0);
      ASSERT_EQ(window.barrier(), Status::ok);
      const int other = 1 - job.rank().value();
      const auto sent = pattern(100, 3);
      std::vector<std::byte> got(100);
      EXPECT_EQ(window.push(window.at(JobRank{other}, 8), sent), Status::ok);
      EXPECT_EQ(window.push(window.at(JobRank{other}, page + 8), sent), Status::bad_address);
      EXPECT_EQ(window.push(window.at(JobRank{other}, page + 8), bytes_of(7)), Status::bad_address);
      EXPECT_EQ(window.push_notified(window.at(JobRank{other}, page + 8), sent, 0), Status::bad_address);
      EXPECT_EQ(window.pull(got, window.at(JobRank{other}, page + 8)), Status::ok);
      EXPECT_EQ(window.pull(got, window.at(JobRank{other}, 2 * page + 8)), Status::bad_address);
      EXPECT_EQ(window.fetch_add(window.at(JobRank{other}, page), std::uint64_t{1}).status, Status::bad_address);
      const std::array regions{Region{0, 8}, Region{page, 8}};
      std::vector<std::byte> all(2 * page, std::byte{9});
      EXPECT_EQ(window.push_regions(window.at(JobRank{other}, page), all, regions), Status::bad_address);
      ASSERT_EQ(window.barrier(), Status::ok);
      EXPECT_TRUE(std::all_of(memory + page, memory + 2 * page, [](std::byte each) { return each == std::byte{0}; }));
      EXPECT_EQ(window.notified(0), 0u);
      ASSERT_EQ(window.barrier(), Status::ok);
    }
    ::munmap(mapped, 3 * page);
  });
}

// Two hosts have three ranks each. Rank 3 receives the multicast for its host but may not write to rank 4 itself.
TEST_P(WindowHosts, MulticastThroughOneRankOfAHost) {
  test::Settings settings = GetParam().settings;
  settings.emplace_back("TONARI_APART_RANKS=3");
  test::as_jobs(
      6,
      [](Job& job) {
        constexpr std::size_t bytes = 100'000;
        WindowOptions options;
        if (job.rank() == 4) options.rights_of = {{JobRank{3}, Rights::read}};
        const auto sent = pattern(40'000, 3);
        for (const auto owner : {test::Owner::tonari, test::Owner::program}) {
          test::Part part = test::make_part(job, owner, bytes, options);
          Window& window = part.window;
          if (job.rank() == 0) {
            const std::array targets{window.at(JobRank{5}, 60'000), window.at(JobRank{3}, 1), window.at(JobRank{1}, 2),
                                     window.at(JobRank{4}, 59'999)};
            EXPECT_EQ(window.multicast(targets, sent), Status::ok);
            EXPECT_EQ(window.multicast_to_all(50'000, std::span(sent).first(9'000)), Status::ok);
            EXPECT_EQ(
                window.multicast(std::array{window.at(JobRank{4}), window.at(JobRank{3}, bytes), window.at(JobRank{5})},
                                 bytes_of('x')),
                Status::bounds);
          }
          ASSERT_EQ(window.barrier(), Status::ok);
          std::vector<std::byte> expected(bytes);
          constexpr std::array<std::ptrdiff_t, 6> at{-1, 2, -1, 1, 59'999, 60'000};
          const auto offset = at[job.rank().index()];
          if (offset >= 0) std::ranges::copy(sent, expected.begin() + offset);
          if (job.rank() != 0) std::copy_n(sent.begin(), 9'000, expected.begin() + 50'000);
          if (job.rank() > 3) expected[0] = std::byte{'x'};
          EXPECT_TRUE(std::ranges::equal(window.local(), expected)) << job.rank();
          ASSERT_EQ(window.barrier(), Status::ok);
        }
      },
      settings);
}

TEST_P(WindowHosts, MulticastToAllTargetsThoughOneRefuses) {
  constexpr int ranks = 4;
  run(ranks, [](Job& job) {
    WindowOptions options;
    if (job.rank() == 2) options.rights = Rights::read;
    Window window(job, 300'000, options);
    const auto sent = pattern(290'000, 5);
    std::vector<Region> regions;
    for (std::size_t at = 0; at < sent.size(); at += 1000) regions.push_back({at, at % 3 == 0 ? 999u : 1u});
    if (job.rank() == 0) {
      EXPECT_EQ(window.multicast_to_all(7, sent), Status::denied);
      const std::array targets{window.at(JobRank{1}), window.at(JobRank{2}), window.at(JobRank{3})};
      EXPECT_EQ(window.multicast_regions(targets, pattern(290'000, 6), regions), Status::denied);
    }
    ASSERT_EQ(window.barrier(), Status::ok);
    std::vector<std::byte> expected(300'000);
    if (job.rank() % 2 == 1) {
      std::ranges::copy(sent, expected.begin() + 7);
      const auto other = pattern(290'000, 6);
      for (const Region& each : regions) {
        std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(each.offset), each.bytes,
                    expected.begin() + static_cast<std::ptrdiff_t>(each.offset));
      }
    }
    EXPECT_TRUE(std::ranges::equal(window.local(), expected));
    ASSERT_EQ(window.barrier(), Status::ok);
  });
}

TEST_P(WindowHosts, MeetInBarriersOfAnyNumberOfHosts) {
  for (int ranks = 2; ranks <= 7; ++ranks) {
    run(ranks, [ranks](Job& job) {
      Window window(job, static_cast<std::size_t>(ranks) * 8);
      for (std::uint64_t round = 1; round <= 10; ++round) {
        const auto at = static_cast<std::uint64_t>(job.rank().value()) * 8;
        ASSERT_EQ(window.barrier_with_multicast(at, bytes_of(round)), Status::ok);
        for (int rank = 0; rank < ranks; ++rank) {
          std::uint64_t seen = 0;
          ASSERT_EQ(window.pull(writable_bytes_of(seen), window.at(job.rank(), static_cast<std::uint64_t>(rank) * 8)),
                    Status::ok);
          ASSERT_EQ(seen, rank == job.rank() ? 0 : round);
        }
        ASSERT_EQ(window.barrier(), Status::ok);
      }
    });
  }
}

TEST_P(WindowHosts, PassOnTheLockOfADeadRank) {
  constexpr int victim = 1;
  std::atomic<int> come{0};
  std::atomic<int> told{0};
  const auto body = [&come, &told](Job& job) {
    Window window(job, 64);
    if (job.rank() == victim) {
      ASSERT_EQ(window.lock(JobRank{0}), Status::ok);
    }
    ASSERT_EQ(window.barrier(), Status::ok);
    test::let_die(job, victim, come);
    const Status status = window.lock(JobRank{0});
    EXPECT_TRUE(status == Status::ok || status == Status::holder_died) << to_string(status);
    if (status == Status::holder_died) ++told;
    EXPECT_EQ(window.unlock(JobRank{0}), Status::ok);
    EXPECT_EQ(window.push(window.at(JobRank{victim}), bytes_of(1)), Status::peer_gone);
    EXPECT_EQ(window.fetch_add(window.at(JobRank{victim}), 1u).status, Status::peer_gone);
    EXPECT_EQ(window.lock(JobRank{victim}), Status::peer_gone);
    EXPECT_EQ(window.barrier(), Status::peer_gone);
  };
  EXPECT_THROW(run(4, body), Killed);
  EXPECT_EQ(told, 1);
}

TEST_P(WindowHosts, TellWaitersForALockThatItsHomeHasDied) {
  constexpr int home = 2;
  std::atomic<bool> waits{false};
  const auto body = [&waits](Job& job) {
    Window window(job, 64);
    if (job.rank() == home) {
      ASSERT_EQ(window.lock(JobRank{home}), Status::ok);
    }
    ASSERT_EQ(window.barrier(), Status::ok);
    if (job.rank() == home) {
      while (!waits.load()) std::this_thread::yield();
      throw Killed{};
    }
    std::jthread teller([&] {
      if (job.rank() != 0) return;
      while (job.session().arena().block(0).wait.load() != job::Wait::lock) std::this_thread::yield();
      waits.store(true);
    });
    const Status status = window.lock(JobRank{home});
    // A dying home also frees its part, and this rank may hear of that first.
    EXPECT_TRUE(status == Status::peer_gone || status == Status::bounds) << to_string(status);
    EXPECT_EQ(window.unlock(JobRank{home}), Status::invalid);
  };
  EXPECT_THROW(run(3, body), Killed);
}

// Makes the kernel refuse direct copies to this thread and to the threads that it starts. Returns false if the filter
// cannot be installed.
bool refuse_direct_copies() {
  std::array<sock_filter, 5> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{.len = static_cast<unsigned short>(filter.size()), .filter = filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Some containers filter system calls in this way.
TEST_P(WindowHosts, WorkWhereTheKernelRefusesDirectCopies) {
  bool refused = false;
  std::thread([&] {
    refused = refuse_direct_copies();
    if (!refused) return;
    run(2, [](Job& job) {
      std::vector<std::byte> memory(20'000);
      Window window(job, std::span(memory));
      const auto sent = pattern(memory.size(), 1);
      std::vector<std::byte> got(sent.size());
      if (job.rank() == 0) {
        EXPECT_EQ(window.push(window.at(JobRank{1}), sent), Status::ok);
        EXPECT_EQ(window.pull(got, window.at(JobRank{1})), Status::ok);
        EXPECT_TRUE(got == sent);
      }
      EXPECT_EQ(window.barrier(), Status::ok);
    });
  }).join();
  if (!refused) GTEST_SKIP() << "this system cannot filter system calls";
}

}  // namespace
}  // namespace tonari
