#include "../support/pager.hpp"

#include <tonari/status.hpp>

#include <barrier>
#include <cstring>
#include <memory>

// Many threads read and write a region of which only a part fits into memory. All threads use the same pages, but each
// thread writes its own bytes and compares them with a model in ordinary memory.
namespace tonari {
namespace {

using pager::page_bytes;
using test::between;
using test::Random;

/// The owner of each byte: runs of `grain` bytes belong to the threads in turn. With a small grain the threads share
/// pages.
struct Shares {
  std::size_t threads;
  std::size_t grain;

  [[nodiscard]] std::size_t owner(std::size_t at) const noexcept { return at / grain % threads; }
};

struct Shape {
  std::size_t region_bytes;
  std::size_t limit_bytes;
  std::size_t threads;
  std::size_t grain;
  unsigned movers;
  bool lets_look;
  test::Faults faults = test::Faults::by_pager;
};

class Torture {
 public:
  Torture(const Shape& shape, std::uint64_t seed)
      : shape_(shape),
        seed_(seed),
        paged_(shape.region_bytes, shape.limit_bytes, {.limit_bytes = 0, .movers = shape.movers}, shape.lets_look,
               pager::Contents::zeros, 0, shape.faults),
        model_(std::make_unique<std::byte[]>(shape.region_bytes)),
        discards_(static_cast<std::ptrdiff_t>(shape.threads)) {}

  void run(int steps) {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < shape_.threads; ++thread) {
      threads.emplace_back([this, thread, steps] { work(thread, steps); });
    }
    threads.clear();
    EXPECT_EQ(std::memcmp(paged_.bytes().data(), model_.get(), shape_.region_bytes), 0);
    const auto statistics = paged_.pager.statistics();
    EXPECT_GT(statistics.blocks_taken_out, 0U);
    EXPECT_LE(statistics.resident_bytes, shape_.limit_bytes);
    EXPECT_TRUE(paged_.failures().empty());
  }

 private:
  static constexpr int steps_between_discards = 500;

  void work(std::size_t thread, int steps) {
    Random random(seed_ * 1000 + thread);
    for (int step = 0; step < steps && wrong_ < 10; ++step) {
      if (step % steps_between_discards == steps_between_discards - 1) discard_together(thread, random);
      const std::size_t bytes = size(random);
      const std::size_t at = place(random, thread, bytes);
      if (test::chance(random, 50)) {
        write(thread, at, bytes, static_cast<std::byte>(random()));
      } else {
        check(thread, at, bytes);
      }
    }
    discards_.arrive_and_drop();
  }

  // Returns a size: mostly a few bytes, at times more than a slice.
  static std::size_t size(Random& random) { return between(random, 1, std::size_t{1} << between(random, 0, 17)); }

  // Returns a random place, or one next to the last access: forward and backward streams among random accesses.
  std::size_t place(Random& random, std::size_t thread, std::size_t bytes) {
    const std::size_t last = shape_.region_bytes - bytes;
    std::size_t& next = next_[thread];
    if (test::chance(random, 60)) {
      next = between(random, 0, last);
    } else if (thread % 2 == 1) {
      next -= std::min(next, bytes);
    }
    const std::size_t at = std::min(next, last);
    if (thread % 2 == 0) next = at + bytes;
    return at;
  }

  void write(std::size_t thread, std::size_t at, std::size_t bytes, std::byte value) {
    for (std::size_t i = at; i < at + bytes; ++i) {
      if (shares_.owner(i) != thread) continue;
      model_[i] = value;
      paged_.bytes()[i] = value;
      value = static_cast<std::byte>(static_cast<unsigned>(value) * 5 + 1);
    }
  }

  void check(std::size_t thread, std::size_t at, std::size_t bytes) {
    for (std::size_t i = at; i < at + bytes; ++i) {
      if (shares_.owner(i) != thread || paged_.bytes()[i] == model_[i]) continue;
      ADD_FAILURE() << "seed " << seed_ << ": byte " << i << " of page " << i / page_bytes << " is "
                    << static_cast<int>(paged_.bytes()[i]) << ", expected " << static_cast<int>(model_[i]);
      ++wrong_;
      return;
    }
  }

  // All threads share the pages, so all stop for a discard. One discards; the others keep the pager busy with reads.
  void discard_together(std::size_t thread, Random& random) {
    discards_.arrive_and_wait();
    if (thread == 0) {
      const std::size_t pages = shape_.region_bytes / page_bytes;
      for (int i = 0; i < 3; ++i) {
        const std::size_t count = between(random, 1, std::min<std::size_t>(pages, 1500));
        const std::size_t first = between(random, 0, pages - count);
        EXPECT_EQ(paged_.pager.discard(paged_.memory.start() + first * page_bytes, count * page_bytes), Status::ok);
        std::memset(model_.get() + first * page_bytes, 0, count * page_bytes);
      }
    } else {
      for (int i = 0; i < 20; ++i) {
        (void)*static_cast<volatile std::byte*>(&paged_.bytes()[between(random, 0, shape_.region_bytes - 1)]);
      }
    }
    discards_.arrive_and_wait();
  }

  Shape shape_;
  std::uint64_t seed_;
  Shares shares_{shape_.threads, shape_.grain};
  test::Paged paged_;
  std::unique_ptr<std::byte[]> model_;
  std::array<std::size_t, 16> next_{};
  std::atomic<int> wrong_{0};
  std::barrier<> discards_;
};

constexpr std::size_t mib = 1 << 20;

void torture(const Shape& shape) {
  for (int round = 0; round < test::rounds(2); ++round) {
    Torture(shape, test::seed() + static_cast<std::uint64_t>(round)).run(3000);
    if (testing::Test::HasFailure()) return;
  }
}

struct PagerTorture : test::NeedsPaging, testing::WithParamInterface<test::Faults> {};

TEST_P(PagerTorture, KeepsWritesToNeighbouringBytesOfFewPages) {
  torture({8 * mib, 1 * mib, 4, 1, 1, true, GetParam()});
}
TEST_P(PagerTorture, KeepsWritesToNeighbouringBytesWithMoreRoom) {
  torture({8 * mib, 4 * mib, 3, 3, 2, false, GetParam()});
}
TEST_P(PagerTorture, KeepsWritesToNeighbouringWords) { torture({32 * mib, 6 * mib, 6, 8, 1, false, GetParam()}); }
TEST_P(PagerTorture, KeepsWritesToNeighbouringPages) {
  torture({64 * mib, 8 * mib, 4, page_bytes, 2, true, GetParam()});
}
TEST_P(PagerTorture, KeepsWritesToHugePages) { torture({128 * mib, 40 * mib, 3, 100'000, 2, true, GetParam()}); }
TEST_P(PagerTorture, KeepsWritesWhileOnlyTheFaultThreadMakesRoom) {
  torture({16 * mib, 2 * mib, 4, 5, 0, true, GetParam()});
}
INSTANTIATE_TEST_SUITE_P(Faults, PagerTorture,
                         testing::Values(test::Faults::by_pager, test::Faults::by_pager_in_place,
                                         test::Faults::by_threads),
                         [](const auto& each) {
                           switch (each.param) {
                             case test::Faults::by_pager: return "ByPager";
                             case test::Faults::by_pager_in_place: return "ByPagerInPlace";
                             case test::Faults::by_threads: return "ByThreads";
                           }
                           return "";
                         });

}  // namespace
}  // namespace tonari
