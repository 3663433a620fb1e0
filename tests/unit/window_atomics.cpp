#include "../support/window_model.hpp"
#include "../support/windows.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

// Tests of the atomic operations of windows.
namespace tonari {
namespace {

using test::bytes_of;
using test::writable_bytes_of;

class WindowAtomics : public test::OnEveryWindow {};
INSTANTIATE_TEST_SUITE_P(Each, WindowAtomics, test::windows_of(test::variants_and_network()), test::name_of_window);

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

TEST_P(WindowAtomics, ApplyEveryAtomicOperationToEveryKindOfWord) {
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

TEST_P(WindowAtomics, RefuseAtomicOperationsOnWordsThatAreNotAligned) {
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
      test::WindowModel(64).expect_at(window, rank);
    }
  });
}

TEST_P(WindowAtomics, LoseNoAtomicOperationOfAllRanksAndThreads) {
  constexpr int ranks = 3;
  constexpr int threads = 2;
  const int turns = WindowAtomics::turns(80, true);
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

}  // namespace
}  // namespace tonari
