#include "../support/shared.hpp"

#include "base/file_descriptor.hpp"
#include "job/session.hpp"
#include "share/share_runtime.hpp"
#include "share/shared_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

// Tests of the pages of shared arrays: homes, copies, multicasts and write notices.
namespace tonari {
namespace {

using test::OnEveryWayToShare;

class SharedPages : public OnEveryWayToShare {};
INSTANTIATE_TEST_SUITE_P(Over, SharedPages, testing::ValuesIn(test::ways_to_share_and_kernels()), test::name_of);

constexpr std::size_t page_words = 4096 / sizeof(std::uint64_t);

TEST_P(SharedPages, HaveHomesWhereTheirPlacementSays) {
  run(3, [](Job& job) {
    const auto home_at = [&](Placement placement, std::size_t page) {
      ArrayOptions options;
      options.placement = placement;
      options.cyclic_bytes = 8192;
      options.home = [](std::uint64_t offset) { return JobRank{offset / 4096 * 7 % 3}; };
      const shared_array<std::uint64_t> array(job, 12 * page_words, options);
      return array.home_of(page * page_words);
    };
    EXPECT_EQ(home_at(Placement::block, 3), 0);
    EXPECT_EQ(home_at(Placement::block, 4), 1);
    EXPECT_EQ(home_at(Placement::block, 11), 2);
    EXPECT_EQ(home_at(Placement::cyclic, 1), 0);
    EXPECT_EQ(home_at(Placement::cyclic, 2), 1);
    EXPECT_EQ(home_at(Placement::cyclic, 6), 0);
    EXPECT_EQ(home_at(Placement::by_function, 5), 2);
  });
}

TEST_P(SharedPages, WorkUnderEveryPlacementWhileHomesMove) {
  for (const Placement placement :
       {Placement::block, Placement::cyclic, Placement::first_touch, Placement::by_function}) {
    run(3, [placement](Job& job) {
      ArrayOptions options;
      options.placement = placement;
      options.cyclic_bytes = 4096;
      options.home = [](std::uint64_t offset) { return JobRank{offset / 4096 % 2 == 0 ? 2 : 1}; };
      const shared_array<std::uint64_t> array(job, 90 * page_words, options);
      for (std::uint64_t turn = 1; turn < 12; ++turn) {
        // The writer of a page changes every four turns.
        const auto writer = static_cast<std::uint64_t>(job.rank().value()) + turn / 4;
        for (std::size_t i = 0; i < array.size(); ++i) {
          if (i / page_words % 3 == writer % 3) array[i] += turn + i;
        }
        ASSERT_EQ(share::barrier(job), Status::ok);
        const std::uint64_t sum = turn * (turn + 1) / 2;
        for (std::size_t i = 0; i < array.size(); i += 7) ASSERT_EQ(array[i], sum + turn * i);
        ASSERT_EQ(share::barrier(job), Status::ok);
      }
    });
  }
}

/// Returns whether this rank is the home of a page of the job's first array. On one host pages have no home.
bool is_home(Job& job, std::uint64_t page) {
  bool is = false;
  share::ShareRuntime::of(job.session()).sharing()->with(0, [&](share::Array& array) { is = array.is_home(page); });
  return is;
}

TEST_P(SharedPages, MoveTheirHomeToTheirOnlyWriter) {
  for (const bool homes_move : {true, false}) {
    run(2, [homes_move](Job& job) {
      ArrayOptions options;
      options.homes_move = homes_move;
      const shared_array<std::uint64_t> array(job, 4 * page_words, options);  // the home of pages 0 and 1 is rank 0
      for (std::uint64_t turn = 1; turn <= 4; ++turn) {
        if (job.rank() == 1) array[0] = turn;
        array[page_words + job.rank().index()] = turn;  // both ranks write page 1
        ASSERT_EQ(share::barrier(job), Status::ok);
      }
      if (job.hosts() > 1) {
        EXPECT_EQ(is_home(job, 0), job.rank() == (homes_move ? 1 : 0));
      }
      ASSERT_EQ(share::barrier(job), Status::ok);
      EXPECT_EQ(array[0], 4u);
      EXPECT_EQ(array[page_words], 4u);
      EXPECT_EQ(array[page_words + 1], 4u);
      ASSERT_EQ(share::barrier(job), Status::ok);
    });
  }
}

TEST_P(SharedPages, HaveTheirHomeAtTheRankThatTouchesThemFirst) {
  run(2, [](Job& job) {
    ArrayOptions options;
    options.placement = Placement::first_touch;
    const shared_array<std::uint64_t> array(job, 8 * page_words, options);
    for (std::size_t page = 0; page < 8; ++page) {
      if (static_cast<int>(page % 2) != job.rank()) continue;
      array[page * page_words] = page;
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
    for (std::size_t page = 0; page < 8 && job.hosts() > 1; ++page) {
      EXPECT_EQ(is_home(job, page), static_cast<int>(page % 2) == job.rank()) << page;
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

// Each rank multicasts a part that begins and ends within pages. The elements behind it are written, but not multicast.
TEST_P(SharedPages, AreMulticastToAllRanksInABarrier) {
  run(4, [](Job& job) {
    for (const bool named : {false, true}) {
      ArrayOptions options;
      options.placement = Placement::cyclic;
      options.cyclic_bytes = 4096;
      options.writes_are_named = named;
      const shared_array<std::uint64_t> array(job, 70 * page_words, options);
      for (std::uint64_t turn = 1; turn < 20; ++turn) {
        const share::Part own = share::part_of(array.size(), job.rank(), job.size());
        for (std::size_t i = own.first; i < own.first + own.count; ++i) array[i] = turn * i;
        const std::size_t kept = turn % 3 == 0 ? own.count / 2 : 100;
        array.wrote(own.first + own.count - kept, kept);
        ASSERT_EQ(array.barrier_with_multicast(own.first, own.count - kept), Status::ok);

        for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], turn * i) << "in turn " << turn;
        ASSERT_EQ(share::barrier(job), Status::ok);
      }
    }
  });
}

/// Returns whether the page of `byte` is mapped, so that an access does not fault.
bool is_mapped(const void* byte) {
  const FileDescriptor map{::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)};
  std::uint64_t page = 0;
  const auto place = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(byte) / 4096 * sizeof page);
  return ::pread(map.number(), &page, sizeof page, place) == sizeof page && page >> 63 != 0;
}

TEST_P(SharedPages, AreMulticastByOneRankAndCanBeWrittenByOthersAfterwards) {
  run(5, [](Job& job) {
    Communicator world(job);
    const shared_array<std::uint64_t> array(job, 200 * page_words);
    for (std::uint64_t turn = 0; turn < 20; ++turn) {
      const auto root = turn % 5;
      const bool is_root = static_cast<std::uint64_t>(job.rank().value()) == root;
      if (is_root) std::ranges::fill(array.span(), turn);
      ASSERT_EQ(array.barrier_with_multicast(0, is_root ? array.size() : 0), Status::ok);
      for (std::size_t page = 0; job.hosts() > 1 && page < 200; ++page) {
        if (array.home_of(page * page_words) == job.rank())
          continue;  // on older kernels a home maps its page at the first access
        ASSERT_TRUE(is_mapped(&array[page * page_words])) << "page " << page << " at rank " << job.rank();
      }
      // On older kernels the first access by the home ends the copies at its next barrier. A rank that is still in the
      // acquire of this one would end its copy before it has looked.
      ASSERT_EQ(world.barrier(), Status::ok);
      ASSERT_TRUE(std::ranges::all_of(array.span(), [&](std::uint64_t each) { return each == turn; }));
      ASSERT_EQ(share::barrier(job), Status::ok);
    }
  });
}

// The page is mapped before its next writer accesses it. This ends once the rank has had a turn without a write.
TEST_P(SharedPages, AreBroughtToTheirNextWriterWhileTheyMigrate) {
  constexpr std::uint64_t writing = 8;  // in these turns both ranks write; then rank 1 only reads
  run(2, [](Job& job) {
    ArrayOptions options;
    options.homes_move = false;
    const shared_array<std::uint64_t> array(job, 2 * page_words, options);
    std::uint64_t& word = array[0];  // its home is rank 0
    share::flag ended(job);
    for (auto turn = static_cast<std::uint64_t>(job.rank().value()); turn < writing + 4; turn += 2) {
      ASSERT_EQ(ended.wait(turn), Status::ok);
      if (job.hosts() > 1 && job.rank() == 1 && turn > 4) {
        EXPECT_EQ(is_mapped(&word), turn <= writing + 1) << "in turn " << turn;
      }
      EXPECT_EQ(word, job.rank() == 0 && turn > writing ? turn - 1 : turn);
      if (job.rank() == 0 || turn < writing) word = turn + 1;
      ASSERT_EQ(ended.set(turn + 1), Status::ok);
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

TEST_P(SharedPages, KeepTheirCopiesOnlyIfWritesUpdateThem) {
  run(2, [](Job& job) {
    for (const bool updates : {false, true}) {
      ArrayOptions options;
      options.writes_are_named = true;
      options.updates = updates;
      const shared_array<int> array(job, 2 * page_words, options);
      EXPECT_EQ(array[0], 0);
      ASSERT_EQ(share::barrier(job), Status::ok);
      if (array.home_of(0) == job.rank()) {
        array[0] = 7;
        array.wrote(0, 1);
      }
      ASSERT_EQ(share::barrier(job), Status::ok);

      const bool is_copy = job.rank() == 1 && job.hosts() > 1;
      EXPECT_EQ(is_mapped(&array[0]), !is_copy || updates);
      EXPECT_EQ(array[0], 7);
      ASSERT_EQ(share::barrier(job), Status::ok);
    }
  });
}

TEST_P(SharedPages, AreReadAheadForASequentialReader) {
  run(2, [](Job& job) {
    ArrayOptions options;
    options.placement = Placement::by_function;
    options.home = [](std::uint64_t) { return JobRank{0}; };
    const shared_array<std::uint64_t> array(job, 64 * page_words, options);
    if (job.rank() == 1) {
      for (std::size_t page = 0; page < 2; ++page) EXPECT_EQ(array[page * page_words], 0U);
      while (job.hosts() > 1 && !is_mapped(&array[3 * page_words])) std::this_thread::yield();
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

TEST_P(SharedPages, HaveTheirWriteNoticesSentToManyReadersDownATree) {
  if (GetParam().name == "ApartOldKernel") GTEST_SKIP() << "on old kernels an access by the home may end the copies";
  auto settings = GetParam().settings;
  settings.emplace_back("TONARI_SHARE_BYTES=64M");
  std::atomic<int> passed_on{0};
  const auto body = [&](Job& job) {
    const shared_array<int> array(job, 1);
    EXPECT_EQ(array[0], 0);
    ASSERT_EQ(share::barrier(job), Status::ok);
    if (job.rank() == 0) array[0] = 7;
    ASSERT_EQ(share::barrier(job), Status::ok);
    EXPECT_EQ(array[0], 7);
    if (share::ShareRuntime::of(job.session()).sharing()->notice_tree().most_at_once() != 0) ++passed_on;
    ASSERT_EQ(share::barrier(job), Status::ok);
    // Three of the 11 readers each pass the write notices on to another reader.
    EXPECT_EQ(passed_on, job.hosts() > 1 ? 3 : 0);
  };
  test::as_jobs(12, body, settings);
}

TEST_P(SharedPages, AreNotMulticastBeyondTheEndOfTheArray) {
  run(3, [](Job& job) {
    const shared_array<int> array(job, 5000);
    if (job.rank() == 0) array[0] = 7;
    const bool wrong = job.rank() == 1;
    EXPECT_EQ(array.barrier_with_multicast(0, job.rank() == 0 ? 1
                                              : wrong         ? 5001
                                                              : 0),
              wrong ? Status::bounds : Status::ok);
    EXPECT_EQ(array[0], 7);
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

// There are more readers than one rank tells itself, and more ranks than the copyset has bits, so write notices go down
// a tree.
TEST_P(SharedPages, ShowWritesToManyReaders) {
  auto settings = GetParam().settings;
  settings.emplace_back("TONARI_SHARE_BYTES=64M");  // all ranks share one process, and sanitizers need addresses, too
  for (const int ranks : {12, 70}) {
    if (ranks == 70 && GetParam().name == "ApartNetwork") continue;  // they would open thousands of connections
    for (const bool updates : {false, true}) {
      const auto body = [updates](Job& job) {
        ArrayOptions options;
        options.updates = updates;
        options.writes_are_named = updates;
        const shared_array<std::uint64_t> array(job, 8 * page_words, options);
        const auto size = static_cast<std::uint64_t>(job.size());
        for (std::uint64_t turn = 1; turn < 8; ++turn) {
          const auto writer = static_cast<int>(
              turn * 67 % size);  // a home of some pages or of no page, with its own copyset bit or a shared one
          for (std::size_t page = 0; job.rank() == writer && page < 8; page += 1 + turn % 2) {
            array[page * page_words + turn] = turn;
            array.wrote(page * page_words + turn, 1);
          }
          ASSERT_EQ(share::barrier(job), Status::ok);
          for (std::size_t page = 0; page < 8; page += 1 + turn % 2) {
            for (std::uint64_t each = 1; each <= turn; ++each) {
              const bool written = page % (1 + each % 2) == 0;
              ASSERT_EQ(array[page * page_words + each], written ? each : 0) << "page " << page << ", turn " << turn;
            }
          }
          ASSERT_EQ(share::barrier(job), Status::ok);
        }
      };
      test::as_jobs(ranks, body, settings);
    }
  }
}

// Among twelve ranks, rank 1 passes the notices of rank 0's writes on to rank 2. Among seventy it also tells rank 65,
// which shares its copyset bit.
TEST_P(SharedPages, HaveTheirWriteNoticesSentPastADeadRank) {
  const bool all_have_copies =
      GetParam().name != "ApartOldKernel";  // there an access by the home may have ended the copies
  auto settings = GetParam().settings;
  settings.emplace_back("TONARI_SHARE_BYTES=64M");
  for (const int ranks : {12, 70}) {
    if (ranks == 70 && GetParam().name == "ApartNetwork") continue;  // they would open thousands of connections
    std::atomic<int> come{0};
    std::atomic<bool> released{false};
    std::atomic<int> seen{0};
    const auto body = [&](Job& job) {
      job.on_death([](const Death&) {});
      const shared_array<int> array(job, 1);
      ASSERT_EQ(share::barrier(job), Status::ok);
      EXPECT_EQ(array[0], 0);
      ASSERT_EQ(share::barrier(job), Status::ok);
      test::let_die(job, 1, come);
      if (job.rank() == 0) {
        test::wait_until(job, [&] { return !job.alive(JobRank{1}); });
        array[0] = 7;
        const Status told = share::release(job);
        if (all_have_copies) {
          EXPECT_EQ(told, job.hosts() > 1 ? Status::peer_gone : Status::ok);
        }
        released.store(true);
      }
      test::wait_until(job, [&] { return released.load(); });
      EXPECT_EQ(share::acquire(job), Status::ok);
      EXPECT_EQ(array[0], 7) << "at rank " << job.rank();
      seen.fetch_add(1);
      test::wait_until(job, [&] { return seen.load() == ranks - 1; });
    };
    EXPECT_THROW(test::as_jobs(ranks, body, settings), test::Killed);
  }
}

}  // namespace
}  // namespace tonari
