#include "../support/windows.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <latch>
#include <numeric>
#include <optional>
#include <type_traits>

// Tests the operations on windows, with ranks that are threads. Rights are tested in window_protection.cpp, memory
// order in window_order.cpp.
namespace tonari {
namespace {

using test::between;
using test::bytes_of;
using test::Owner;
using test::Part;
using test::pattern;
using test::writable_bytes_of;

class Windows : public test::OnEveryWindow {};
INSTANTIATE_TEST_SUITE_P(Each, Windows, test::windows_of(test::variants_and_network()), test::name_of_window);

constexpr std::size_t part_bytes = 120'000;
constexpr std::array<std::size_t, 21> sizes{0,  1,  2,   3,    4,    7,    8,     9,     15,    16,    63,
                                            64, 65, 255, 4095, 4096, 4097, 16383, 16384, 16385, 100000};
constexpr std::array<std::size_t, 5> offsets{0, 1, 7, 8, 4093};

/// The contents that a part should have, kept in ordinary memory.
class Model {
 public:
  explicit Model(std::size_t bytes = part_bytes) : bytes_(bytes) {}

  void write(std::size_t offset, std::span<const std::byte> from) {
    std::ranges::copy(from, bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  void write(std::size_t offset, std::span<const std::byte> from, std::span<const Region> regions) {
    for (const Region& each : regions) write(offset + each.offset, from.subspan(each.offset, each.bytes));
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  void expect_at(Window& window, int rank) const {
    std::vector<std::byte> there(bytes_.size());
    ASSERT_EQ(window.pull(there, window.at(JobRank{rank})), Status::ok);
    ASSERT_TRUE(there == bytes_);
  }
  void expect_here(const Window& window) const { ASSERT_TRUE(std::ranges::equal(window.local(), bytes_)); }

 private:
  std::vector<std::byte> bytes_;
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
  TONARI_TRACE_SEED();
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
  TONARI_TRACE_SEED();
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
  TONARI_TRACE_SEED();
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
  TONARI_TRACE_SEED();
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
  TONARI_TRACE_SEED();
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

// Multicast.

TEST_P(Windows, MulticastToEveryTargetThatTakesIt) {
  constexpr int ranks = 5;
  run(ranks, [](Job& job) {
    WindowOptions options;
    if (job.rank() == 2) options.rights_of = {{JobRank{0}, Rights::read}};
    Part part = test::make_part(job, owner(), 70'000, options);
    Window& window = part.window;
    const auto sent = pattern(50'000, 1);
    if (job.rank() == 0) {
      const std::array targets{window.at(JobRank{1}, 3), window.at(JobRank{2}, 3), window.at(JobRank{3}, 40'000),
                               window.at(JobRank{4}, 3)};
      // Rank 2 denies the write, and the data do not fit into rank 3's part. The call returns the first target's
      // status.
      ASSERT_EQ(window.multicast(targets, sent), Status::denied);
      ASSERT_EQ(window.multicast(std::span(targets).subspan(2), sent), Status::bounds);
      ASSERT_EQ(window.multicast(std::array{targets[0], targets[3]}, std::span(sent).first(100)), Status::ok);
      ASSERT_EQ(window.multicast(std::span<const GlobalAddress>(), sent), Status::ok);
    }
    ASSERT_EQ(window.barrier(), Status::ok);
    Model expected(70'000);
    if (job.rank() == 1 || job.rank() == 4) expected.write(3, sent);
    ASSERT_NO_FATAL_FAILURE(expected.expect_here(window));
    ASSERT_EQ(window.barrier(), Status::ok);
  });
}

TEST_P(Windows, MulticastToTheSameOffsetOfAllOthers) {
  constexpr int ranks = 4;
  run(ranks, 70'000, [](Job& job, Window& window) {
    for (int root = 0; root < ranks; ++root) {
      const auto sent = pattern(16'385, static_cast<std::size_t>(root) + 1);
      const std::uint64_t offset = 17'001 * static_cast<std::uint64_t>(root);
      if (job.rank() == root) {
        ASSERT_EQ(window.multicast_to_all(offset, sent), Status::ok);
        ASSERT_EQ(window.multicast_to_all(70'000, {}), Status::ok);
        ASSERT_EQ(window.multicast_to_all(53'616, sent), Status::bounds);
      }
    }
    ASSERT_EQ(window.barrier(), Status::ok);
    Model expected(70'000);
    for (int root = 0; root < ranks; ++root) {
      if (root == job.rank()) continue;
      expected.write(17'001 * static_cast<std::size_t>(root), pattern(16'385, static_cast<std::size_t>(root) + 1));
    }
    ASSERT_NO_FATAL_FAILURE(expected.expect_here(window));
  });
}

TEST_P(Windows, MulticastRegionsToEveryTargetThatTakesThem) {
  run(4, 8192, [](Job& job, Window& window) {
    const auto sent = pattern(5000, 1);
    const std::array regions{Region{0, 10}, Region{4999, 1}, Region{100, 3000}, Region{200, 0}};
    if (job.rank() == 0) {
      const std::array targets{window.at(JobRank{1}, 1), window.at(JobRank{2}, 5000), window.at(JobRank{3}, 77)};
      ASSERT_EQ(window.multicast_regions(targets, sent, regions), Status::bounds);
    }
    ASSERT_EQ(window.barrier(), Status::ok);
    Model expected(8192);
    if (job.rank() == 1) expected.write(1, sent, regions);
    if (job.rank() == 3) expected.write(77, sent, regions);
    ASSERT_NO_FATAL_FAILURE(expected.expect_here(window));
  });
}

TEST_P(Windows, ExchangeTheDataOfEachRankInABarrier) {
  constexpr int ranks = 4;
  run(ranks, 8192, [](Job& job, Window& window) {
    for (std::size_t turn = 0; turn < 10; ++turn) {
      const auto offset_of = [turn](int rank) { return static_cast<std::uint64_t>(rank) * 2000 + turn; };
      const auto sent = pattern(turn * 100, turn * 10 + job.rank().index());
      const bool gives = (job.rank().index() + turn) % 3 != 0;
      ASSERT_EQ(window.barrier_with_multicast(offset_of(job.rank().value()),
                                              gives ? std::span(sent) : std::span(sent).first(0)),
                Status::ok);
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank == job.rank() || (static_cast<std::size_t>(rank) + turn) % 3 == 0) continue;
        const auto expected = pattern(turn * 100, turn * 10 + static_cast<std::size_t>(rank));
        ASSERT_TRUE(std::ranges::equal(window.local().subspan(offset_of(rank), expected.size()), expected));
      }
      ASSERT_EQ(window.barrier(), Status::ok);
    }
  });
}

TEST_P(Windows, CompleteABarrierThoughTheDataOfOneRankDoNotFit) {
  run(3, 100, [](Job& job, Window& window) {
    const std::byte value{7};
    const Status status = window.barrier_with_multicast(
        job.rank() == 1 ? 100 : 5 + static_cast<std::uint64_t>(job.rank().value()), std::span(&value, 1));
    EXPECT_EQ(status, job.rank() == 1 ? Status::bounds : Status::ok);
    EXPECT_EQ(window.local()[5], job.rank() == 0 ? std::byte{0} : value);
    EXPECT_EQ(window.local()[6], std::byte{0});
    EXPECT_EQ(window.local()[7], job.rank() == 2 ? std::byte{0} : value);
  });
}

// Atomic operations.

template <class T>
void expect_atomics(Window& window, GlobalAddress at, T first, T second) {
  SCOPED_TRACE(sizeof(T));
  ASSERT_EQ(window.push(at, bytes_of(first)), Status::ok);
  const auto expect = [&](Result<T> fetched, T before, T after) {
    ASSERT_EQ(fetched.status, Status::ok);
    ASSERT_EQ(std::memcmp(&fetched.value, &before, sizeof before), 0);
    T now{};
    ASSERT_EQ(window.pull(writable_bytes_of(now), at), Status::ok);
    ASSERT_EQ(std::memcmp(&now, &after, sizeof now), 0);
  };
  expect(window.swap(at, second), first, second);
  expect(window.compare_and_swap(at, first, first), second, second);  // `first` is not the current value
  expect(window.compare_and_swap(at, second, first), second, first);
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    const auto sum = static_cast<T>(static_cast<Unsigned>(first) + static_cast<Unsigned>(second));
    expect(window.fetch_add(at, second), first, sum);
    expect(window.swap(at, first), sum, first);
    expect(window.fetch_and(at, second), first, static_cast<T>(first & second));
    expect(window.swap(at, first), static_cast<T>(first & second), first);
    expect(window.fetch_or(at, second), first, static_cast<T>(first | second));
    expect(window.swap(at, first), static_cast<T>(first | second), first);
    expect(window.fetch_xor(at, second), first, static_cast<T>(first ^ second));
  }
}

TEST_P(Windows, ApplyEveryAtomicOperationToEveryKindOfWord) {
  run(2, 256, [](Job& job, Window& window) {
    std::ranges::fill(window.local(), std::byte{0xee});
    ASSERT_EQ(window.barrier(), Status::ok);
    if (job.rank() == 0) {
      for (const int rank : {1, 0}) {
        expect_atomics<std::uint32_t>(window, window.at(JobRank{rank}, 4), 0xfffffff0, 0x0ff00021);
        expect_atomics<std::int32_t>(window, window.at(JobRank{rank}, 12), -5, -2'000'000'000);
        expect_atomics<std::uint64_t>(window, window.at(JobRank{rank}, 64), 0xffff'ffff'ffff'fff0,
                                      0x0ff0'0000'0000'0021);
        expect_atomics<std::int64_t>(window, window.at(JobRank{rank}, 72), -5,
                                     std::int64_t{-9'000'000'000'000'000'000});
        expect_atomics<float>(window, window.at(JobRank{rank}, 252), -0.0F, 1.5e30F);
        expect_atomics<double>(window, window.at(JobRank{rank}, 248 - 8), 0.1, -1e300);
      }
    }
    ASSERT_EQ(window.barrier(), Status::ok);
    for (const std::size_t beside : {0, 3, 8, 11, 16, 63, 80, 239, 248, 251}) {
      ASSERT_EQ(window.local()[beside], std::byte{0xee}) << beside;
    }
  });
}

TEST_P(Windows, RefuseAtomicOperationsOnWordsThatAreNotAligned) {
  run(2, 64, [](Job& job, Window& window) {
    if (job.rank() != 0) return;
    for (const int rank : {0, 1}) {
      for (const std::uint64_t offset : {1, 2, 3, 5, 6, 7, 9}) {
        EXPECT_EQ(window.fetch_add(window.at(JobRank{rank}, offset), std::uint32_t{1}).status, Status::invalid)
            << offset;
        EXPECT_EQ(window.swap(window.at(JobRank{rank}, offset), 1.0F).status, Status::invalid) << offset;
        EXPECT_EQ(window.fetch_add(window.at(JobRank{rank}, offset), std::uint64_t{1}).status, Status::invalid)
            << offset;
      }
      EXPECT_EQ(window.swap(window.at(JobRank{rank}, 4), 1.0).status, Status::invalid);
      EXPECT_EQ(window.fetch_add(window.at(JobRank{rank}, 61), std::uint32_t{1}).status, Status::bounds);
      EXPECT_EQ(window.fetch_add(window.at(JobRank{rank}, 60), std::uint64_t{1}).status, Status::bounds);
      Model(64).expect_at(window, rank);
    }
  });
}

TEST_P(Windows, LoseNoAtomicOperationOfAllRanksAndThreads) {
  constexpr int ranks = 3;
  constexpr int threads = 2;
  const int turns = Windows::turns(80, true);
  run(ranks, 64, [turns](Job& job, Window& window) {
    constexpr int home = 1;
    std::array<std::atomic<std::uint64_t>, 2> seen{};  // sums of the tokens that this rank has swapped out
    test::in_threads(threads, [&](int number) {
      for (int turn = 0; turn < turns; ++turn) {
        ASSERT_EQ(window.fetch_add(window.at(JobRank{home}, 0), std::uint64_t{1}).status, Status::ok);
        ASSERT_EQ(window.fetch_add(window.at(JobRank{home}, 8), std::int32_t{-1}).status, Status::ok);
        // Each thread adds one by compare-and-swap, and repeats it until it succeeds.
        for (std::uint32_t expected = 0;;) {
          const auto fetched = window.compare_and_swap(window.at(JobRank{home}, 12), expected, expected + 1);
          ASSERT_EQ(fetched.status, Status::ok);
          if (fetched.value == expected) break;
          expected = fetched.value;
        }
        const std::uint32_t bit = std::uint32_t{1} << (job.rank().value() * threads + number);
        const std::uint32_t before = window.fetch_xor(window.at(JobRank{home}, 16), bit).value;
        ASSERT_EQ((before & bit) != 0, turn % 2 != 0);
        ASSERT_EQ(window.fetch_or(window.at(JobRank{home}, 20), bit).value & bit, 0u);
        ASSERT_EQ(window.fetch_and(window.at(JobRank{home}, 20), ~bit).value & bit, bit);
        // Each thread swaps a token in and takes the previous one out.
        const std::uint64_t token = static_cast<std::uint64_t>(job.rank().value() * threads + number) * 1'000'000 +
                                    static_cast<std::uint64_t>(turn) + 1;
        const auto swapped = window.swap(window.at(JobRank{home}, 24), token);
        ASSERT_EQ(swapped.status, Status::ok);
        seen[0] += token;
        seen[1] += swapped.value;
      }
    });
    const std::uint64_t in_minus_out = seen[0].load() - seen[1].load();
    ASSERT_EQ(window.fetch_add(window.at(JobRank{home}, 32), in_minus_out).status, Status::ok);
    ASSERT_EQ(window.barrier(), Status::ok);
    const auto count = static_cast<std::uint64_t>(ranks * threads * turns);
    EXPECT_EQ(window.fetch_add(window.at(JobRank{home}, 0), std::uint64_t{0}).value, count);
    EXPECT_EQ(window.fetch_add(window.at(JobRank{home}, 8), std::int32_t{0}).value, -static_cast<std::int32_t>(count));
    EXPECT_EQ(window.fetch_or(window.at(JobRank{home}, 12), std::uint32_t{0}).value, count);
    EXPECT_EQ(window.fetch_or(window.at(JobRank{home}, 20), std::uint32_t{0}).value, 0u);
    // Each token that was swapped in was swapped out again, except the last one.
    EXPECT_EQ(window.fetch_or(window.at(JobRank{home}, 32), std::uint64_t{0}).value,
              window.fetch_or(window.at(JobRank{home}, 24), std::uint64_t{0}).value);
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
