#include "../support/shared.hpp"

#include "share/array/page_block.hpp"
#include "share/heap/free_runs.hpp"
#include "share/heap/size_classes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Tests of objects in shared memory. Ranks are threads here, so links are offsets; tests/system/examples.py uses
// pointers.
namespace tonari {
namespace {

using test::Random;

constexpr std::uint64_t page_bytes = share::page_bytes;

TEST(SizeClasses, AreTheSmallestClassesThatFit) {
  for (std::size_t bytes = 1; bytes <= share::small_bytes_max; ++bytes) {
    const std::size_t chosen = share::class_of(bytes);
    ASSERT_GE(share::bytes_of_class(chosen), bytes);
    if (chosen != 0) {
      ASSERT_LT(share::bytes_of_class(chosen - 1), bytes);
    }
    ASSERT_EQ(share::bytes_of_class(chosen) % 16, 0u);
  }
}

TEST(SizeClasses, HaveAlignedBlocks) {
  for (std::size_t alignment = 1; alignment <= page_bytes; alignment *= 2) {
    for (std::size_t bytes = 1; bytes <= share::small_bytes_max; bytes += 7) {
      const std::size_t block = share::bytes_of_class(share::class_of(bytes, alignment));
      ASSERT_GE(block, bytes);
      ASSERT_EQ(block % alignment, 0u);
    }
  }
}

// The pages have addresses but no memory; they are never accessed.
TEST(FreeRuns, ReturnOnlyFreePagesAndMergeThem) {
  constexpr std::uint64_t pages = 200;
  auto* const start = reinterpret_cast<std::byte*>(page_bytes);
  Random random(test::seed());
  share::FreeRuns runs;
  std::vector<std::pair<std::byte*, std::uint64_t>> taken{{start, pages}};
  std::array<bool, pages> is_free{};
  const auto mark = [&](std::byte* first, std::uint64_t count, bool now_free) {
    const auto page = static_cast<std::uint64_t>(first - start) / page_bytes;
    for (std::uint64_t i = page; i < page + count; ++i) {
      ASSERT_NE(is_free.at(i), now_free);
      is_free.at(i) = now_free;
    }
  };
  const auto give_back_one = [&] {
    std::swap(taken[test::between(random, 0, taken.size() - 1)], taken.back());
    mark(taken.back().first, taken.back().second, true);
    runs.add(taken.back().first, taken.back().second);
    taken.pop_back();
  };

  for (int step = 0; step < 5000; ++step) {
    const std::uint64_t count = test::between(random, 1, 30);
    if (std::byte* const got = runs.take(count)) {
      mark(got, count, false);
      taken.emplace_back(got, count);
    } else {
      give_back_one();
    }
  }
  while (!taken.empty()) give_back_one();

  EXPECT_EQ(runs.take(pages), start);  // all pages have merged into one run
}

class SharedHeap : public test::OnEveryWayToShare {};
INSTANTIATE_TEST_SUITE_P(Over, SharedHeap, testing::ValuesIn(test::ways_to_share()), test::name_of);

void meet(Job& job) { ASSERT_EQ(share::barrier(job), Status::ok); }

struct Node {
  std::uint64_t next;
  std::uint64_t value;
};

TEST_P(SharedHeap, HoldsAListThatAllRanksBuildWalkAndFree) {
  const auto each = static_cast<std::uint64_t>(turns(200));
  run(3, [each](Job& job) {
    shared_heap heap(job, 3 << 20);
    const shared_array<std::uint64_t> first(job, 1);
    share::mutex mutex(job);
    const auto self = static_cast<std::uint64_t>(job.rank().value());
    for (int turn = 0; turn < 3; ++turn) {
      for (std::uint64_t i = 0; i < each; ++i) {
        const auto lock = mutex.lock();
        ASSERT_EQ(lock.status(), Status::ok);
        first[0] = heap.offset_of(new_shared<Node>(heap, first[0], self * each + i));
      }
      meet(job);

      std::set<std::uint64_t> found;
      for (const Node* node = heap.at<Node>(first[0]); node != nullptr; node = heap.at<Node>(node->next)) {
        found.insert(node->value);
      }
      EXPECT_EQ(found.size(), 3 * each);
      EXPECT_EQ(*found.rbegin(), 3 * each - 1);
      meet(job);

      if (job.rank() == turn) {
        while (first[0] != 0)
          delete_shared(heap, heap.at<Node>(std::exchange(first[0], heap.at<Node>(first[0])->next)));
      }
      meet(job);
    }
  });
}

struct Leaf {
  std::uint64_t key;
  std::array<std::uint64_t, 2> below;  // the smaller and the larger child
};

void insert(shared_heap& heap, std::uint64_t& root, std::uint64_t key) {
  std::uint64_t* place = &root;
  while (Leaf* const leaf = heap.at<Leaf>(*place)) place = &leaf->below.at(key < leaf->key ? 0 : 1);
  *place = heap.offset_of(new_shared<Leaf>(heap, Leaf{key, {}}));
}

void collect(const shared_heap& heap, std::uint64_t root, std::vector<std::uint64_t>& keys) {
  const Leaf* const leaf = heap.at<Leaf>(root);
  if (leaf == nullptr) return;
  collect(heap, leaf->below[0], keys);
  keys.push_back(leaf->key);
  collect(heap, leaf->below[1], keys);
}

TEST_P(SharedHeap, HoldsATreeThatAllRanksGrow) {
  const auto each = static_cast<std::size_t>(turns(100));
  run(4, [each](Job& job) {
    shared_heap heap(job, 1 << 20);
    const shared_array<std::uint64_t> root(job, 1);
    share::mutex mutex(job);
    Random random(static_cast<std::uint64_t>(job.rank().value()));
    for (std::size_t i = 0; i < each; ++i) {
      const auto lock = mutex.lock();
      ASSERT_EQ(lock.status(), Status::ok);
      insert(heap, root[0], random());
    }
    meet(job);

    std::vector<std::uint64_t> keys;
    collect(heap, root[0], keys);
    EXPECT_EQ(keys.size(), 4 * each);
    EXPECT_TRUE(std::ranges::is_sorted(keys));
    meet(job);
  });
}

/// A block that one worker hands to another.
struct Handed {
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t alignment;
  std::uint64_t seed;  // of the pattern that fills it
};

/// One thread of one rank. It allocates and frees blocks of random sizes, fills each with a pattern, and hands some to
/// the next worker after each phase.
class Worker {
 public:
  static constexpr std::size_t handed_max = 16;

  Worker(shared_heap& heap, std::uint64_t number) : heap_(heap), number_(number), random_(test::seed() + number) {}

  void work(int steps) {
    for (int step = 0; step < steps; ++step) {
      if (blocks_.empty() || test::chance(random_, 55)) {
        allocate();
      } else {
        free_one();
      }
    }
  }
  void hand_over(std::span<Handed> mail) {
    for (Handed& each : mail) {
      each = {};
      if (blocks_.empty()) continue;
      each = blocks_.back();
      blocks_.pop_back();
    }
  }
  void take_over(std::span<const Handed> mail) {
    for (const Handed& each : mail) {
      if (each.offset != 0) blocks_.push_back(each);
    }
  }
  void free_all() {
    while (!blocks_.empty()) free_one();
  }

 private:
  void allocate() {
    const std::size_t largest = test::chance(random_, 80) ? 300 : 40'000;
    const std::size_t bytes = test::between(random_, 1, largest);
    const std::size_t alignment = std::size_t{1} << (test::chance(random_, 80) ? 3 : test::between(random_, 0, 12));
    void* const block = heap_.try_allocate(bytes, alignment);
    if (block == nullptr) return free_all();
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
    const std::uint64_t seed = ++made_ * 1000 + number_;
    std::ranges::copy(test::pattern(bytes, seed), static_cast<std::byte*>(block));
    blocks_.push_back({heap_.offset_of(block), bytes, alignment, seed});
  }
  void free_one() {
    std::swap(blocks_[test::between(random_, 0, blocks_.size() - 1)], blocks_.back());
    const Handed block = blocks_.back();
    blocks_.pop_back();
    auto* const bytes = heap_.at<std::byte>(block.offset);
    ASSERT_TRUE(std::ranges::equal(std::span(bytes, block.bytes), test::pattern(block.bytes, block.seed)))
        << block.bytes << " bytes at " << block.offset;
    heap_.deallocate(bytes, block.bytes, block.alignment);
  }

  shared_heap& heap_;
  const std::uint64_t number_;
  Random random_;
  std::uint64_t made_ = 0;
  std::vector<Handed> blocks_;
};

TEST_P(SharedHeap, AllocatesNoByteTwiceUnderRandomUse) {
  constexpr int ranks = 3;
  constexpr int threads = 2;
  const int steps = turns(300);
  run(ranks, [steps](Job& job) {
    shared_heap heap(job, 3 << 20);
    const shared_array<Handed> mail(job, ranks * threads * Worker::handed_max);
    std::barrier together(threads);
    const auto meet_all = [&](int thread) {
      together.arrive_and_wait();
      if (thread == 0) meet(job);
      together.arrive_and_wait();
    };
    test::in_threads(threads, [&](int thread) {
      const auto number = static_cast<std::size_t>(job.rank().value() * threads + thread);
      const auto box = [&](std::size_t of) {
        return mail.span().subspan(of % (ranks * threads) * Worker::handed_max, Worker::handed_max);
      };
      Worker worker(heap, number);
      for (int phase = 0; phase < 6; ++phase) {
        worker.work(steps);
        worker.hand_over(box(number));
        meet_all(thread);
        worker.take_over(box(number + 1));
        meet_all(thread);
      }
      worker.free_all();
      meet_all(thread);
    });
  });
}

TEST_P(SharedHeap, AllocatesAllItsBytesAndReportsWhenItIsFull) {
  run(2, [](Job& job) {
    constexpr std::size_t pages = 64;
    shared_heap heap(job, pages * page_bytes);
    if (job.rank() == 1) {
      for (int turn = 0; turn < 2; ++turn) {
        std::set<void*> blocks;
        while (void* const block = heap.try_allocate(page_bytes)) blocks.insert(block);
        EXPECT_EQ(blocks.size(), pages);
        EXPECT_EQ(try_new_shared<int>(heap), nullptr);
        try {
          (void)new_shared<Node>(heap);
          ADD_FAILURE() << "an allocation succeeded in a full heap";
        } catch (const std::bad_alloc& error) {
          EXPECT_STREQ(
              error.what(),
              "rank 1 has no free block of 16 bytes aligned to 8 in a shared heap of 256 KiB, of which 0 bytes were "
              "never used; no block can be larger than 128 KiB, a rank's part: make the heap larger");
        }
        for (void* const block : blocks) heap.deallocate(block, page_bytes);
      }
    }
    meet(job);
  });
}

TEST_P(SharedHeap, ReusesLargeBlocksForSmallOnes) {
  run(2, [](Job& job) {
    shared_heap heap(job, 64 * page_bytes);
    if (job.rank() == 0) {
      for (int turn = 0; turn < 2; ++turn) {
        std::array<void*, 2> parts{heap.allocate(32 * page_bytes), heap.allocate(32 * page_bytes)};
        EXPECT_THROW((void)heap.allocate(1), HeapFull);
        for (void* const part : parts) heap.deallocate(part, 32 * page_bytes);
      }
      std::vector<Node*> nodes;
      while (auto* const node = try_new_shared<Node>(heap)) nodes.push_back(node);
      EXPECT_EQ(nodes.size(), 64 * page_bytes / sizeof(Node));
    }
    meet(job);
  });
}

TEST_P(SharedHeap, RefusesBlocksThatNoPartCanHold) {
  run(2, [](Job& job) {
    shared_heap heap(job, 1 << 20);
    EXPECT_EQ(heap.try_allocate((1 << 19) + 1), nullptr);
    EXPECT_EQ(heap.try_allocate(~std::size_t{0}), nullptr);
    EXPECT_EQ(heap.try_allocate(16, 48), nullptr);
    EXPECT_EQ(heap.try_allocate(16, 8192), nullptr);
    EXPECT_THROW((void)new_shared_array<double>(heap, heap.bytes().size() << 42), HeapFull);
    for (const std::size_t alignment : {std::size_t{0}, std::size_t{48}, std::size_t{8192}}) {
      try {
        (void)heap.allocate(16, alignment);
        ADD_FAILURE() << "the heap accepted alignment " << alignment;
      } catch (const std::invalid_argument& error) {
        EXPECT_EQ(error.what(), "16 bytes of a shared heap were asked for with alignment " + std::to_string(alignment) +
                                    ": it must be a power of two, 4096 at most");
      }
    }
    EXPECT_THROW(shared_heap(job, ~std::uint64_t{0}), SetupError);
    EXPECT_THROW(shared_heap(job, std::uint64_t{1} << 50), SetupError);
    meet(job);
  });
}

struct alignas(256) Aligned {
  std::uint8_t byte;
};

TEST_P(SharedHeap, ConstructsAlignedObjectsAndArrays) {
  run(2, [](Job& job) {
    shared_heap heap(job, 4 << 20);
    for (int turn = 0; turn < 3; ++turn) {  // later turns reuse freed blocks
      Aligned* const aligned = new_shared<Aligned>(heap, std::uint8_t{7});
      const std::span<Aligned> several = new_shared_array<Aligned>(heap, 5);
      const std::span<std::uint64_t> numbers = new_shared_array<std::uint64_t>(heap, 10'000);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 256, 0u);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(several.data()) % 256, 0u);
      EXPECT_EQ(aligned->byte, 7);
      EXPECT_EQ(*new_shared<int>(heap), 0);
      EXPECT_EQ(std::ranges::count(numbers, 0u), 10'000);
      std::ranges::fill(numbers, 1);
      delete_shared(heap, aligned);
      delete_shared_array(heap, several);
      delete_shared_array(heap, numbers);
    }
    const std::span<int> none = new_shared_array<int>(heap, 0);
    EXPECT_TRUE(none.empty());
    delete_shared_array(heap, none);
    delete_shared(heap, static_cast<int*>(nullptr));
    meet(job);
  });
}

struct Thrower {
  explicit Thrower(bool now) {
    if (now) throw std::runtime_error("not now");
  }
  std::array<std::byte, 100> bytes{};
};

TEST_P(SharedHeap, LosesNothingWhenAConstructorThrows) {
  run(1, [](Job& job) {
    shared_heap heap(job, 16 * page_bytes);
    for (int turn = 0; turn < 10'000; ++turn) EXPECT_THROW((void)new_shared<Thrower>(heap, true), std::runtime_error);
    EXPECT_NE(try_new_shared<Thrower>(heap, false), nullptr);
  });
}

TEST_P(SharedHeap, AllocatesFromThePartOfTheCallingRank) {
  run(3, [](Job& job) {
    shared_heap heap(job, 3 << 20);
    const std::size_t part = heap.bytes().size() / 3;
    const std::uint64_t offset = heap.offset_of(new_shared<Node>(heap)) - heap.offset_of(heap.bytes().data());
    EXPECT_EQ(offset / part, static_cast<std::uint64_t>(job.rank().value()));
    meet(job);
  });
}

TEST_P(SharedHeap, ServesRanksAfterTheDeathOfAnother) {
  std::atomic<int> come{0};
  const auto body = [&come](Job& job) {
    job.on_death([](const Death&) {});
    shared_heap heap(job, 3 << 20);
    meet(job);
    test::let_die(job, 2, come);
    EXPECT_EQ(share::barrier(job), Status::peer_gone);
    // The rank's own part at least is usable, and no other part is accessed.
    for (int i = 0; i < 10'000; ++i) ASSERT_EQ(*new_shared<int>(heap, i), i);
  };
  EXPECT_THROW(run(3, body), test::Killed);
}

void misuse(const test::Variant& variant, const std::function<void(shared_heap&, Job&)>& act) {
  test::as_jobs(
      2,
      [&act](Job& job) {
        shared_heap heap(job, 1 << 20);
        if (job.rank() == 0) act(heap, job);
        meet(job);
      },
      variant.settings);
}

void free_what_is_not_its_own(shared_heap& heap, Job&) {
  int local = 5;
  delete_shared(heap, &local);
  delete_shared(heap, reinterpret_cast<int*>(heap.bytes().data() + heap.bytes().size()));
}

#ifdef NDEBUG
TEST(SharedHeapMisuse, IgnoresFreeingForeignMemory) {
  for (const auto& variant : test::ways_to_share()) misuse(variant, free_what_is_not_its_own);
}
#else
TEST(SharedHeapMisuseDeathTest, IsReported) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto free_twice = [](shared_heap& heap, Job&) {
    int* const number = new_shared<int>(heap, 1);
    delete_shared(heap, number);
    delete_shared(heap, number);
  };
  const auto free_pages_twice = [](shared_heap& heap, Job&) {
    const auto numbers = new_shared_array<int>(heap, 10'000);
    delete_shared_array(heap, numbers);
    delete_shared_array(heap, numbers);
  };
  const auto write_after = [](shared_heap& heap, Job&) {
    Node* const node = new_shared<Node>(heap);
    delete_shared(heap, node);
    node->value = 0x1234;
    (void)new_shared<Node>(heap);
  };
  const auto ways = test::ways_to_share();
  const auto free_with = [&ways](std::size_t offset, std::size_t bytes, std::size_t alignment, std::size_t made) {
    misuse(ways[0], [=](shared_heap& heap, Job&) {
      auto* const block = static_cast<std::byte*>(heap.allocate(made));
      heap.deallocate(block + offset, bytes, alignment);
    });
  };
  EXPECT_DEATH(free_with(0, 100, 16, 40), "100 bytes of a shared heap, at .*, are freed where blocks have 48");
  EXPECT_DEATH(free_with(0, 20'000, 16, 40), "20000 bytes of a shared heap, at .*, are freed where blocks have 48");
  EXPECT_DEATH(free_with(16, 40, 16, 40), "40 bytes of a shared heap, at .*, are freed in the middle of a block");
  EXPECT_DEATH(free_with(8, 40, 16, 40), "no block of that size begins there");
  EXPECT_DEATH(free_with(512, 20'000, 16, 20'000), "no block of that size begins there");
  EXPECT_DEATH(free_with(0, 40, 48, 40), "are freed with alignment 48, which no block has");
  for (const auto& variant : {ways[0], ways[1]}) {
    EXPECT_DEATH(misuse(variant, free_what_is_not_its_own), "rank 0: 4 bytes at .* that are not of this shared heap");
    EXPECT_DEATH(misuse(variant, free_twice), "rank 0: 16 bytes of a shared heap, at .*, are freed twice");
    EXPECT_DEATH(misuse(variant, free_pages_twice), "bytes of a shared heap, at .*, are freed twice");
    EXPECT_DEATH(misuse(variant, write_after),
                 "16 bytes of a shared heap, at .*, were written after they were freed: there is 0x1234 at byte 8");
  }
}

TEST_P(SharedHeap, ReportsFreeingABlockThatAnotherRankFreed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto free_what_was_freed = [] {
    run(2, [](Job& job) {
      shared_heap heap(job, 1 << 20);
      const shared_array<std::uint64_t> block(job, 1);
      if (job.rank() == 0) block[0] = heap.offset_of(new_shared<Node>(heap));
      meet(job);
      if (job.rank() == 1) delete_shared(heap, heap.at<Node>(block[0]));
      meet(job);
      if (job.rank() == 0) delete_shared(heap, heap.at<Node>(block[0]));
      meet(job);
    });
  };
  EXPECT_DEATH(free_what_was_freed(), "rank 0: 16 bytes of a shared heap, at .*, are freed twice");
}
#endif

}  // namespace
}  // namespace tonari
