#include "../support/shared.hpp"

#include "base/file_descriptor.hpp"
#include "share/share_runtime.hpp"
#include "share/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <thread>

// Tests of shared arrays: contents, homes, copies and multicasts.
namespace tonari {
namespace {

using test::OnEveryWayToShare;

class SharedArrays : public OnEveryWayToShare {};
INSTANTIATE_TEST_SUITE_P(Over, SharedArrays, testing::ValuesIn(test::ways_to_share_and_kernels()), test::name_of);

constexpr std::size_t page_words = 4096 / sizeof(std::uint64_t);

TEST_P(SharedArrays, AreZeroInitially) {
  run(3, [](Job& job) {
    const shared_array<std::uint64_t> array(job, 300 * page_words);

    EXPECT_EQ(std::accumulate(array.begin(), array.end(), std::uint64_t{0}), 0u);
  });
}

TEST_P(SharedArrays, ShowTheWritesOfAllRanksAfterABarrier) {
  run(3, [](Job& job) {
    const shared_array<std::uint64_t> array(job, 100 * page_words);
    const auto self = job.rank().index();
    for (std::uint64_t turn = 1; turn < 20; ++turn) {
      for (std::size_t i = self; i < array.size(); i += 3) array[i] = turn * i;
      ASSERT_EQ(share::barrier(job), Status::ok);

      for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], turn * i) << "in turn " << turn;
      ASSERT_EQ(share::barrier(job), Status::ok);
    }
  });
}

TEST_P(SharedArrays, LetRanksWriteNeighbouringBytes) {
  run(4, [](Job& job) {
    const shared_array<std::uint8_t> array(job, 5 * 4096);
    const auto self = job.rank().index();
    for (std::uint8_t turn = 1; turn < 50; ++turn) {
      for (std::size_t i = self; i < array.size(); i += 4) array[i] = static_cast<std::uint8_t>(turn + i);
      ASSERT_EQ(share::barrier(job), Status::ok);
      for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], static_cast<std::uint8_t>(turn + i));
      ASSERT_EQ(share::barrier(job), Status::ok);
    }
  });
}

TEST_P(SharedArrays, LoseNoIncrementUnderAMutex) {
  constexpr int ranks = 3;
  const int each = turns(300);
  run(ranks, [each](Job& job) {
    const shared_array<std::uint64_t> array(job, 2 * page_words);
    share::mutex mutex(job);
    for (int turn = 0; turn < each; ++turn) {
      const auto lock = mutex.lock();
      ASSERT_EQ(lock.status(), Status::ok);
      ++array[0];
      array[page_words] += array[0];
    }
    ASSERT_EQ(share::barrier(job), Status::ok);

    const auto all = static_cast<std::uint64_t>(ranks * each);
    EXPECT_EQ(array[0], all);
    EXPECT_EQ(array[page_words], all * (all + 1) / 2);
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

TEST_P(SharedArrays, ShowWritesMadeBeforeAFlagWasSet) {
  const auto last = static_cast<std::uint64_t>(turns(200));
  run(2, [last](Job& job) {
    const shared_array<std::uint64_t> array(job, 4 * page_words);
    share::flag there(job);
    share::flag back(job);
    for (std::uint64_t turn = 1; turn <= last; ++turn) {
      if (job.rank() == 0) {
        array[page_words + turn % page_words] = turn;
        ASSERT_EQ(there.set(turn), Status::ok);
        ASSERT_EQ(back.wait(turn), Status::ok);
        ASSERT_EQ(array[3 * page_words], turn);
      } else {
        ASSERT_EQ(there.wait(turn), Status::ok);
        ASSERT_EQ(array[page_words + turn % page_words], turn);
        array[3 * page_words] = turn;
        ASSERT_EQ(back.set(turn), Status::ok);
      }
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

TEST_P(SharedArrays, AreVisitedByTheirHomesAndPrefetched) {
  run(2, [](Job& job) {
    const shared_array<std::uint64_t> array(job, 20 * page_words + 1);
    array.for_each_own([](std::size_t i, std::uint64_t& each) { each += i + 1; });
    ASSERT_EQ(share::barrier(job), Status::ok);

    array.prefetch(0, array.size());
    for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], i + 1);
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

TEST_P(SharedArrays, ReleaseWritesWhileOtherRanksCompute) {
  std::atomic<bool> released{false};
  run(3, [&released](Job& job) {
    const shared_array<std::uint64_t> array(job, 20 * page_words);
    std::uint64_t sum = 0;
    for (const std::uint64_t each : array) sum += each;
    ASSERT_EQ(sum, 0U);
    ASSERT_EQ(share::barrier(job), Status::ok);
    if (job.rank() == 0) {
      for (std::uint64_t& each : array) each = 7;  // some pages have their home here; all ranks have copies
      ASSERT_EQ(share::release(job, share::Others::will_come), Status::ok);
      released = true;
    }
    while (!released) std::this_thread::yield();
    ASSERT_EQ(share::barrier(job), Status::ok);
    for (const std::uint64_t each : array) ASSERT_EQ(each, 7U);
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

TEST_P(SharedArrays, AreGuardedByAMutexThatCanBeTried) {
  run(2, [](Job& job) {
    const shared_array<int> array(job, 1);
    share::mutex mutex(job);
    std::optional<share::mutex::Lock> lock;
    if (job.rank() == 0) {
      lock.emplace(mutex.lock());
      ASSERT_EQ(lock->status(), Status::ok);
      array[0] = 7;
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
    if (job.rank() == 1) {
      EXPECT_EQ(mutex.try_lock().status(), Status::again);
      EXPECT_EQ(mutex.try_lock_shared().status(), Status::again);
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
    if (job.rank() == 0) {
      ASSERT_EQ(lock->release(), Status::ok);
      EXPECT_FALSE(*lock);
      EXPECT_EQ(lock->release(), Status::ok) << "a second release must return ok";
    } else {
      while (!mutex.try_lock_shared()) std::this_thread::yield();
      const auto shared = mutex.lock_shared();
      ASSERT_TRUE(shared);
      EXPECT_EQ(array[0], 7);
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

TEST_P(SharedArrays, HaveHomesWhereTheirPlacementSays) {
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

TEST_P(SharedArrays, WorkUnderEveryPlacementWhileHomesMove) {
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

TEST_P(SharedArrays, MoveAHomeToTheOnlyWriterOfItsPage) {
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

TEST_P(SharedArrays, PlaceAHomeAtTheRankThatTouchesThePageFirst) {
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

TEST_P(SharedArrays, ShowNamedWrites) {
  run(3, [](Job& job) {
    ArrayOptions options;
    options.writes_are_named = true;
    const shared_array<std::uint32_t> array(job, 40'000, options);
    const auto self = job.rank().index();
    for (std::uint32_t turn = 1; turn < 20; ++turn) {
      for (std::size_t first = self * 100; first < array.size(); first += 300) {
        for (std::size_t i = first; i < first + 100; ++i) array[i] = turn + static_cast<std::uint32_t>(i);
        array.wrote(first, 100);
      }
      ASSERT_EQ(share::barrier(job), Status::ok);
      for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], turn + i);
      ASSERT_EQ(share::barrier(job), Status::ok);
    }
  });
}

TEST_P(SharedArrays, ShowNamedWritesIfCopiesAreUpdated) {
  run(3, [](Job& job) {
    ArrayOptions options;
    options.writes_are_named = true;
    options.updates = true;
    const shared_array<std::uint32_t> array(job, 40'000, options);
    const auto self = job.rank().index();
    for (std::uint32_t turn = 1; turn < 30; ++turn) {
      for (std::size_t i = self; i < array.size(); i += 300) {
        array[i] = turn;
        array.wrote(i, 1);
      }
      ASSERT_EQ(share::barrier(job), Status::ok);
      for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], i % 300 < 3 ? turn : 0);
      ASSERT_EQ(share::barrier(job), Status::ok);
    }
  });
}

// Each rank multicasts a part that begins and ends within pages. The elements behind it are written, but not multicast.
TEST_P(SharedArrays, DeliverMulticastsOfABarrierToAllRanks) {
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

TEST_P(SharedArrays, MulticastFromOneRankAndCanBeWrittenByOthersAfterwards) {
  run(5, [](Job& job) {
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

      ASSERT_TRUE(std::ranges::all_of(array.span(), [&](std::uint64_t each) { return each == turn; }));
      ASSERT_EQ(share::barrier(job), Status::ok);
    }
  });
}

// The page is mapped before its next writer accesses it. This ends once the rank has had a turn without a write.
TEST_P(SharedArrays, BringAMigratoryPageToItsNextWriter) {
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

TEST_P(SharedArrays, KeepOnlyCopiesThatAreUpdated) {
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

TEST_P(SharedArrays, ReadAheadOfASequentialReader) {
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

TEST_P(SharedArrays, SendWriteNoticesToManyReadersDownATree) {
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

TEST_P(SharedArrays, EndABarrierWhenARankHasLeft) {
  run(3, [](Job& job) {
    ASSERT_EQ(share::barrier(job), Status::ok);
    if (job.rank() == 1) return;
    EXPECT_EQ(share::barrier(job), Status::peer_gone);
  });
}

TEST_P(SharedArrays, RefuseToMulticastBeyondTheirEnd) {
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
TEST_P(SharedArrays, ShowWritesToManyReaders) {
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
TEST_P(SharedArrays, SendWriteNoticesPastADeadRank) {
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

TEST_P(SharedArrays, CanBeMadeAndDestroyedRepeatedly) {
  run(2, [](Job& job) {
    for (int turn = 0; turn < 5; ++turn) {
      const shared_array<int> first(job, 10'000);
      const shared_array<int> second(job, 100);
      if (job.rank() == turn % 2) first[9'999] = second[99] = turn;
      ASSERT_EQ(share::barrier(job), Status::ok);
      EXPECT_EQ(first[9'999], turn);
      EXPECT_EQ(second[99], turn);
    }
  });
}

TEST_P(SharedArrays, CanBeReadAndWrittenBySystemCalls) {
  run(2, [](Job& job) {
    const shared_array<std::uint64_t> array(job, 64 * page_words);
    if (job.rank() == 1) std::iota(array.begin(), array.end(), std::uint64_t{1});
    ASSERT_EQ(share::barrier(job), Status::ok);
    const int file = ::memfd_create("copy", 0);
    const auto bytes = static_cast<ssize_t>(array.size() * sizeof array[0]);
    if (job.rank() == 0) {
      EXPECT_EQ(::pwrite(file, array.data(), array.size() * sizeof array[0], 0), bytes);
      array[5] = 0;
      EXPECT_EQ(::pread(file, array.data(), array.size() * sizeof array[0], 0), bytes);
    }
    ::close(file);
    ASSERT_EQ(share::barrier(job), Status::ok);
    for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], i + 1);
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

}  // namespace
}  // namespace tonari
