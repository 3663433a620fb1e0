#include "../support/window_model.hpp"
#include "../support/windows.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Tests the copies and notifications of windows, with ranks that are threads. Multicasts, atomic operations, rights and
// memory order are tested in window_multicast.cpp, window_atomics.cpp, window_protection.cpp and window_order.cpp.
namespace tonari {
namespace {

using test::between;
using test::bytes_of;
using test::pattern;

class Windows : public test::OnEveryWindow {};
INSTANTIATE_TEST_SUITE_P(Each, Windows, test::windows_of(test::variants_and_network()), test::name_of_window);

constexpr std::size_t part_bytes = 120'000;
constexpr std::array<std::size_t, 21> sizes{0,  1,  2,   3,    4,    7,    8,     9,     15,    16,    63,
                                            64, 65, 255, 4095, 4096, 4097, 16383, 16384, 16385, 100000};
constexpr std::array<std::size_t, 5> offsets{0, 1, 7, 8, 4093};

/// The contents that a part should have.
class Model : public test::WindowModel {
 public:
  explicit Model(std::size_t bytes = part_bytes) : WindowModel(bytes) {}
};

std::vector<Region> random_regions(test::Random& random, std::size_t count, std::size_t bytes) {
  std::vector<Region> regions;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t length = test::chance(random, 20) ? 0 : between(random, 0, std::min<std::size_t>(bytes, 300));
    regions.push_back({between(random, 0, bytes - length), length});
  }
  return regions;
}

// Copies.

TEST_P(Windows, StorePushesOfEverySizeAtOddOffsets) {
  run(2, part_bytes, [](Job& job, Window& window) {
    Model model;
    std::size_t seed = 0;
    for (const std::size_t offset : offsets) {
      for (const std::size_t bytes : sizes) {
        const auto sent = pattern(bytes, ++seed);
        model.write(offset, sent);
        if (job.rank() != 0) continue;
        ASSERT_EQ(window.push(window.at(JobRank{1}, offset), sent), Status::ok) << bytes << " at " << offset;
      }
      if (job.rank() == 0) {
        ASSERT_NO_FATAL_FAILURE(model.expect_at(window, 1)) << "at " << offset;
      }
    }
    ASSERT_EQ(window.barrier(), Status::ok);
    if (job.rank() == 1) {
      ASSERT_NO_FATAL_FAILURE(model.expect_here(window));
    }
  });
}

TEST_P(Windows, ReturnPullsOfEverySizeAtOddOffsets) {
  run(2, part_bytes, [](Job& job, Window& window) {
    constexpr std::byte guard{0xa5};
    const auto all = pattern(part_bytes, 1);
    std::ranges::copy(all, window.local().begin());
    ASSERT_EQ(window.barrier(), Status::ok);
    if (job.rank() != 0) return;
    for (const std::size_t offset : offsets) {
      for (const std::size_t bytes : sizes) {
        const auto expected = std::span(all).subspan(offset, bytes);
        std::vector<std::byte> to(bytes + 16, guard);
        std::vector<std::byte> twin(bytes + 16, guard);
        ASSERT_EQ(window.pull(std::span(to).subspan(8, bytes), window.at(JobRank{1}, offset)), Status::ok);
        ASSERT_TRUE(std::ranges::equal(std::span(to).subspan(8, bytes), expected)) << bytes << " at " << offset;
        std::ranges::fill(std::span(to).subspan(8, bytes), guard);
        ASSERT_EQ(window.pull_with_twin(std::span(to).subspan(8, bytes), std::span(twin).subspan(8, bytes),
                                        window.at(JobRank{1}, offset)),
                  Status::ok);
        ASSERT_TRUE(std::ranges::equal(std::span(to).subspan(8, bytes), expected)) << bytes << " at " << offset;
        ASSERT_TRUE(to == twin);
        for (std::size_t i = 0; i < 8; ++i) ASSERT_TRUE(to[i] == guard && to[bytes + 8 + i] == guard);
      }
    }
  });
}

TEST_P(Windows, CopyToAndFromTheirOwnRank) {
  run(1, part_bytes, [](Job&, Window& window) {
    const auto sent = pattern(1000, 3);
    ASSERT_EQ(window.push(window.at(JobRank{0}, 77), sent), Status::ok);
    std::vector<std::byte> got(1000);
    ASSERT_EQ(window.pull(got, window.at(JobRank{0}, 77)), Status::ok);
    ASSERT_TRUE(got == sent);
    ASSERT_EQ(window.multicast_to_all(0, sent), Status::ok);  // there is no other rank
    ASSERT_EQ(window.local()[0], std::byte{0});
  });
}

TEST_P(Windows, CompletePushesWhileTheOwnerHelpsAtTimes) {
  constexpr std::size_t long_part_bytes = 1'200'000;
  run(2, long_part_bytes, [](Job& job, Window& window) {
    test::Random random(test::seed());
    Model model(long_part_bytes);
    for (int turn = 0; turn < turns(40); ++turn) {
      const std::size_t bytes = between(random, 20'000, turn % 2 == 0 ? 100'000 : long_part_bytes);
      const std::size_t offset = between(random, 0, long_part_bytes - bytes);
      const auto sent = pattern(bytes, static_cast<std::size_t>(turn));
      const std::size_t computing = between(random, 0, 20'000);
      if (job.rank() == 0) {
        model.write(offset, sent);
        ASSERT_EQ(window.push(window.at(JobRank{1}, offset), sent), Status::ok);
        ASSERT_NO_FATAL_FAILURE(model.expect_at(window, 1));
      } else {
        for (std::atomic<std::size_t> i = 0; i < computing; ++i) {
        }
      }
      ASSERT_EQ(window.barrier(), Status::ok);  // rank 1 waits here and may copy chunks
    }
  });
}

TEST_P(Windows, WriteTheNamedRegionsAndNothingElse) {
  run(2, part_bytes, [](Job& job, Window& window) {
    test::Random random(test::seed());
    Model model;
    for (std::size_t turn = 0; turn < static_cast<std::size_t>(test::rounds(20)); ++turn) {
      const std::size_t bytes = between(random, 1, 20'000);
      const std::size_t offset = between(random, 0, part_bytes - bytes);
      const auto from = pattern(bytes, turn + 1);
      // More regions than one system call takes. They overlap and some are empty.
      auto regions = random_regions(random, between(random, 0, 200), bytes);
      if (turn % 4 == 0) regions.push_back({bytes, 0});
      model.write(offset, from, regions);
      if (job.rank() != 0) continue;
      ASSERT_EQ(window.push_regions(window.at(JobRank{1}, offset), from, regions), Status::ok);
      regions.push_back({bytes, 1});  // outside the data
      const auto other = pattern(bytes, 1000 + turn);
      ASSERT_EQ(window.push_regions(window.at(JobRank{1}, offset), other, regions), Status::bounds);
      ASSERT_NO_FATAL_FAILURE(model.expect_at(window, 1));
    }
    ASSERT_EQ(window.barrier(), Status::ok);
    if (job.rank() == 1) {
      ASSERT_NO_FATAL_FAILURE(model.expect_here(window));
    }
  });
}

TEST_P(Windows, ReadTheNamedRegionsAndNothingElse) {
  run(2, part_bytes, [](Job& job, Window& window) {
    const auto all = pattern(part_bytes, 5);
    std::ranges::copy(all, window.local().begin());
    ASSERT_EQ(window.barrier(), Status::ok);
    if (job.rank() != 0) return;
    test::Random random(test::seed());
    for (int turn = 0; turn < test::rounds(20); ++turn) {
      const std::size_t bytes = between(random, 1, 20'000);
      const std::size_t offset = between(random, 0, part_bytes - bytes);
      auto regions = random_regions(random, between(random, 0, 200), bytes);
      std::vector<std::byte> to = pattern(bytes, 99);
      Model expected(bytes);
      expected.write(0, to);
      expected.write(0, std::span(all).subspan(offset, bytes), regions);
      ASSERT_EQ(window.pull_regions(to, window.at(JobRank{1}, offset), regions), Status::ok);
      ASSERT_TRUE(std::ranges::equal(to, expected.bytes()));
      regions.push_back({1, bytes});
      ASSERT_EQ(window.pull_regions(to, window.at(JobRank{1}, offset), regions), Status::bounds);
      ASSERT_TRUE(std::ranges::equal(to, expected.bytes()));
    }
  });
}

TEST_P(Windows, RefuseRegionsWhoseBoundsOverflow) {
  run(2, 4096, [](Job& job, Window& window) {
    if (job.rank() != 0) return;
    constexpr std::uint64_t end = ~std::uint64_t{0};
    std::vector<std::byte> local(4096, std::byte{1});
    for (const Region& bad : {Region{end, 1}, Region{1, end}, Region{end, end}, Region{end - 8, 16}, Region{4096, 1},
                              Region{0, 4097}, Region{4097, 0}, Region{end / 2 + 1, end / 2 + 1}}) {
      const std::array regions{Region{0, 8}, bad};
      EXPECT_EQ(window.push_regions(window.at(JobRank{1}), local, regions), Status::bounds)
          << bad.offset << ' ' << bad.bytes;
      EXPECT_EQ(window.pull_regions(local, window.at(JobRank{1}), regions), Status::bounds)
          << bad.offset << ' ' << bad.bytes;
      EXPECT_EQ(window.multicast_regions(std::array{window.at(JobRank{1})}, local, regions), Status::bounds);
    }
    Model(4096).expect_at(window, 1);
    EXPECT_EQ(local, std::vector<std::byte>(4096, std::byte{1}));
  });
}

// Differences.

TEST_P(Windows, StoreTheBytesThatDifferAndNoOthers) {
  run(2, part_bytes, [](Job& job, Window& window) {
    test::Random random(test::seed());
    Model model;
    for (std::size_t turn = 0; turn < static_cast<std::size_t>(test::rounds(40)); ++turn) {
      const std::size_t bytes = turn == 0 ? 0 : between(random, 1, test::chance(random, 80) ? 700 : 30'000);
      const std::size_t offset = between(random, 0, part_bytes - bytes);
      const auto twin = pattern(bytes, 2 * turn);
      auto from = twin;
      const unsigned percent = turn % 5 == 0 ? 0 : turn % 5 == 1 ? 100 : static_cast<unsigned>(between(random, 1, 99));
      std::uint64_t differing = 0;
      for (std::size_t i = 0; i < bytes; ++i) {
        if (!test::chance(random, percent)) continue;
        from[i] ^= std::byte{static_cast<unsigned char>(between(random, 1, 255))};
        model.write(offset + i, std::span(from).subspan(i, 1));
        ++differing;
      }
      if (job.rank() != 0) continue;
      const auto kept = twin;
      const Result<std::uint64_t> difference = window.push_diff(window.at(JobRank{1}, offset), from, twin);
      ASSERT_EQ(difference.status, Status::ok);
      ASSERT_EQ(difference.value, differing);
      ASSERT_TRUE(twin == kept);
      ASSERT_NO_FATAL_FAILURE(model.expect_at(window, 1));
    }
    ASSERT_EQ(window.barrier(), Status::ok);
    if (job.rank() == 1) {
      ASSERT_NO_FATAL_FAILURE(model.expect_here(window));
    }
  });
}

// Returns which of `ranks` ranks writes byte i. Neighbouring bytes have random writers; in some turns stretches have
// one writer.
int writer_of(std::size_t i, std::size_t turn, int ranks) {
  const std::uint64_t grain = turn % 3 == 0 ? i : turn % 3 == 1 ? i / 3 : i / 40;
  std::uint64_t word = (grain + 1) * 0x9e3779b97f4a7c15 ^ (turn + test::seed()) * 0xbf58476d1ce4e5b9;
  word ^= word >> 29;
  return static_cast<int>(word * 0x94d049bb133111eb >> 33) % ranks;
}

TEST_P(Windows, LoseNoUpdateOfSeveralWritersOfOneLine) {
  constexpr int ranks = 4;
  constexpr std::size_t bytes = 600;
  run(ranks, bytes, [](Job& job, Window& window) {
    Model model(bytes);
    std::vector<std::byte> mine(bytes);
    std::vector<std::byte> twin(bytes);
    for (std::size_t turn = 0; turn < static_cast<std::size_t>(Windows::turns(10)); ++turn) {
      const int home = static_cast<int>(turn % 2);  // the home writes, too
      ASSERT_EQ(window.pull_with_twin(mine, twin, window.at(JobRank{home})), Status::ok);
      ASSERT_EQ(window.barrier(), Status::ok);  // all ranks have pulled the old contents
      std::vector<Region> regions;
      Model next(bytes);
      next.write(0, twin);
      for (std::size_t i = 0; i < bytes; ++i) {
        const std::byte value{static_cast<unsigned char>(i * 7 + turn * 13 + 1)};
        const int writer = writer_of(i, turn, ranks + 1);  // some bytes have no writer
        if (writer < ranks) next.write(i, std::span(&value, 1));
        if (writer != job.rank()) continue;
        mine[i] = value;
        regions.push_back({i, 1});
      }
      if (turn % 2 == 0 || job.rank() != 1) {
        ASSERT_EQ(window.push_diff(window.at(JobRank{home}), mine, twin).status, Status::ok);
      } else {
        ASSERT_EQ(window.push_regions(window.at(JobRank{home}), mine, regions), Status::ok);
      }
      ASSERT_EQ(window.barrier(), Status::ok);
      if (job.rank() == home) {
        ASSERT_NO_FATAL_FAILURE(next.expect_here(window)) << turn;
      } else if (job.rank() == 3) {
        ASSERT_NO_FATAL_FAILURE(next.expect_at(window, home)) << turn;
      }
      ASSERT_EQ(window.barrier(), Status::ok);
    }
  });
}

// Wrong arguments.

TEST_P(Windows, RefuseNullBuffersAndTwinsOfAnotherLength) {
  run(2, 4096, [](Job& job, Window& window) {
    if (job.rank() != 0) return;
    std::vector<std::byte> local(100, std::byte{1});
    std::vector<std::byte> twin(99);
    const std::span<std::byte> null(static_cast<std::byte*>(nullptr), 100);
    const GlobalAddress at = window.at(JobRank{1});
    EXPECT_EQ(window.pull(null, at), Status::invalid);
    EXPECT_EQ(window.push(at, null), Status::invalid);
    EXPECT_EQ(window.pull_with_twin(local, null, at), Status::invalid);
    EXPECT_EQ(window.pull_with_twin(null, local, at), Status::invalid);
    EXPECT_EQ(window.pull_with_twin(local, twin, at), Status::invalid);
    EXPECT_EQ(window.push_diff(at, local, twin).status, Status::invalid);
    EXPECT_EQ(window.push_diff(at, null, local).status, Status::invalid);
    EXPECT_EQ(window.push_diff(at, local, null).status, Status::invalid);
    EXPECT_EQ(window.pull_regions(null, at, {}), Status::invalid);
    EXPECT_EQ(window.push_regions(at, null, {}), Status::invalid);
    EXPECT_EQ(window.multicast(std::array{at}, null), Status::invalid);
    EXPECT_EQ(window.multicast_to_all(0, null), Status::invalid);
    EXPECT_EQ(window.multicast_regions(std::array{at}, null, {}), Status::invalid);
    EXPECT_EQ(window.push_notified(at, null, 0), Status::invalid);
    EXPECT_EQ(window.pull({}, at), Status::ok);  // an empty span may have no address
    EXPECT_EQ(window.push(at, {}), Status::ok);
    EXPECT_EQ(window.push_diff(at, {}, {}).status, Status::ok);
    Model(4096).expect_at(window, 1);
  });
}

TEST_P(Windows, ServeManyThreadsAtOnce) {
  constexpr int threads = 4;
  constexpr std::size_t slice = 20'000;
  run(2, 2 * threads * slice, [](Job& job, Window& window) {
    const int other = 1 - job.rank().value();
    test::in_threads(threads, [&](int number) {
      const auto index = static_cast<std::size_t>(number);
      test::Random random(test::seed() + index);
      std::uint64_t pushed = 0;
      for (std::size_t turn = 0; turn < static_cast<std::size_t>(test::rounds(15)); ++turn) {
        const std::size_t bytes = between(random, 0, test::chance(random, 80) ? 5000 : slice);
        const std::uint64_t offset = index * slice + between(random, 0, slice - bytes);
        const auto sent = pattern(bytes, turn * 10 + index);
        std::vector<std::byte> got(bytes);
        std::vector<std::byte> twin(bytes);
        ASSERT_EQ(window.push(window.at(JobRank{other}, offset), sent), Status::ok);
        ASSERT_EQ(window.pull_with_twin(got, twin, window.at(JobRank{other}, offset)), Status::ok);
        ASSERT_TRUE(got == sent && twin == sent);
        if (bytes == 0) continue;
        got[bytes / 2] ^= std::byte{1};
        ASSERT_EQ(window.push_diff(window.at(JobRank{other}, offset), got, twin).value, 1u);
        ASSERT_EQ(window.pull(twin, window.at(JobRank{other}, offset)), Status::ok);
        ASSERT_TRUE(got == twin);
        ASSERT_EQ(window.push_notified(window.at(JobRank{other}, offset), got, static_cast<std::uint32_t>(number)),
                  Status::ok);
        ++pushed;
      }
      // The thread of the same number at the other rank has pushed as often.
      ASSERT_EQ(window.wait_notified(static_cast<std::uint32_t>(number), pushed), Status::ok);
      ASSERT_EQ(window.notified(static_cast<std::uint32_t>(number)), pushed);
    });
  });
}

TEST_P(Windows, CountNotificationsOnTheNamedCounter) {
  WindowOptions options;
  options.notifications = 3;
  run(
      2, 64,
      [](Job& job, Window& window) {
        if (job.rank() == 0) {
          for (int i = 0; i < 5; ++i) ASSERT_EQ(window.push_notified(window.at(JobRank{1}), {}, 2), Status::ok);
          ASSERT_EQ(window.push_notified(window.at(JobRank{1}), bytes_of(1), 0), Status::ok);
          ASSERT_EQ(window.push_notified(window.at(JobRank{1}, 61), bytes_of(1), 0),
                    Status::bounds);  // refused pushes are neither counted
          ASSERT_NE(window.push_notified(window.at(JobRank{1}, 8), bytes_of(1), 3),
                    Status::ok);  // nor written to memory
        }
        ASSERT_EQ(window.barrier(), Status::ok);
        EXPECT_EQ(window.notified(0), job.rank() == 1 ? 1u : 0u);
        EXPECT_EQ(window.notified(1), 0u);
        EXPECT_EQ(window.notified(2), job.rank() == 1 ? 5u : 0u);
        EXPECT_EQ(window.notified(3), 0u);
        EXPECT_EQ(window.wait_notified(3, 0), Status::bounds);
        EXPECT_EQ(window.wait_notified(2, 0), Status::ok);
        EXPECT_EQ(window.local()[8], std::byte{0});
      },
      options);
}

}  // namespace
}  // namespace tonari
