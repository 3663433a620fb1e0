#include "window/local/diff.hpp"

#include "../support/random.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tonari::window {
namespace {

using test::Random;
using Bytes = std::vector<std::byte>;
using Runs = std::vector<std::pair<std::size_t, std::size_t>>;

constexpr std::size_t page_bytes = 4096;

void change(std::byte& byte) { byte ^= std::byte{0x5a}; }

/// The model: finds the runs of differing bytes one byte at a time.
Runs runs_of(const std::byte* data, const std::byte* twin, std::size_t bytes) {
  Runs runs;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (data[i] == twin[i]) continue;
    if (runs.empty() || runs.back().first + runs.back().second != i) runs.emplace_back(i, 0);
    ++runs.back().second;
  }
  return runs;
}

/// Memory between two inaccessible pages: an access outside it raises SIGSEGV.
class Fenced {
 public:
  explicit Fenced(std::size_t pages) : mapped_((pages + 2) * page_bytes) {
    auto* const start = ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) std::abort();
    start_ = static_cast<std::byte*>(start);
    if (::mprotect(begin(), pages * page_bytes, PROT_READ | PROT_WRITE) != 0) std::abort();
  }
  Fenced(Fenced&&) = delete;
  ~Fenced() { ::munmap(start_, mapped_); }

  /// Returns `bytes` bytes that touch the page at the end, or the one at the beginning.
  [[nodiscard]] std::byte* bytes(std::size_t bytes, bool at_end) const noexcept {
    return at_end ? start_ + mapped_ - page_bytes - bytes : begin();
  }

 private:
  [[nodiscard]] std::byte* begin() const noexcept { return start_ + page_bytes; }

  std::size_t mapped_;
  std::byte* start_;
};

struct WindowDiff : testing::TestWithParam<DiffLevel> {
  void SetUp() override {
    if (diff_code(GetParam()) == nullptr) GTEST_SKIP() << "this processor lacks the instructions of this level";
    code = diff_code(GetParam());
  }

  [[nodiscard]] Runs found(const std::byte* data, const std::byte* twin, std::size_t bytes) const {
    Runs runs;
    const bool all = for_each_run(
        data, twin, bytes,
        [&](std::size_t offset, std::size_t length) {
          runs.emplace_back(offset, length);
          return true;
        },
        *code);
    EXPECT_TRUE(all);
    return runs;
  }

  /// Compares every function with the model. The initial bytes of `target` differ from data and twin.
  void check(std::byte* target, const std::byte* data, const std::byte* twin, std::size_t bytes) const {
    const Runs runs = runs_of(data, twin, bytes);
    ASSERT_EQ(found(data, twin, bytes), runs);
    std::size_t at = 0;
    std::size_t differing = 0;
    for (const auto& [offset, length] : runs) {
      ASSERT_EQ(next_difference(data, twin, at, bytes, *code), offset);
      at = next_equality(data, twin, offset, bytes, *code);
      ASSERT_EQ(at, offset + length);
      differing += length;
    }
    ASSERT_EQ(next_difference(data, twin, at, bytes, *code), bytes);

    Bytes expected(target, target + bytes);
    for (const auto& [offset, length] : runs) std::copy_n(data + offset, length, expected.data() + offset);
    ASSERT_EQ(store_differences(target, data, twin, bytes, *code), differing);
    ASSERT_EQ(Bytes(target, target + bytes), expected);
  }

  /// Calls `changed` on data that are equal to their twin, then compares every function with the model.
  void check_changed(std::size_t bytes, const std::function<void(std::byte*)>& changed) const {
    const Bytes twin = test::pattern(bytes, bytes);
    Bytes data = twin;
    Bytes target = test::pattern(bytes, bytes + 1);
    changed(data.data());
    check(target.data(), data.data(), twin.data(), bytes);
  }

  const DiffCode* code = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Levels, WindowDiff, testing::ValuesIn(diff_levels),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(WindowDiff, FindsNothingInUnchangedData) {
  for (const std::size_t bytes : {0U, 1U, 63U, 64U, 65U, 256U, 4096U, 4097U, 10000U}) {
    SCOPED_TRACE(bytes);
    ASSERT_NO_FATAL_FAILURE(check_changed(bytes, [](std::byte*) {}));
  }
}

TEST_P(WindowDiff, FindsAChangedByteAtEveryPlace) {
  const auto odd_step = static_cast<std::size_t>(2 * test::slowness() - 1);
  for (const std::size_t bytes : {1U, 7U, 64U, 100U, 300U, 4096U, 4150U}) {
    for (std::size_t at = 0; at < bytes; at += bytes < 4096 ? 1 : odd_step) {
      SCOPED_TRACE(std::to_string(at) + " of " + std::to_string(bytes));
      ASSERT_NO_FATAL_FAILURE(check_changed(bytes, [&](std::byte* data) { change(data[at]); }));
    }
  }
}

TEST_P(WindowDiff, FindsAChangeOfAnyBit) {
  const Bytes twin(64);
  for (unsigned value = 1; value < 256; ++value) {
    Bytes data(64);
    data[value % 64] = std::byte(value);
    EXPECT_EQ(found(data.data(), twin.data(), 64), (Runs{{value % 64, 1}})) << value;
  }
}

TEST_P(WindowDiff, FindsRunsAcrossBlocksAndStretches) {
  for (const std::size_t bytes : {64U, 128U, 130U, 4096U, 8192U, 8200U, 12288U}) {
    for (const std::size_t first : {0U, 1U, 60U, 63U, 64U, 4000U, 4095U, 4096U}) {
      for (const std::size_t length : {1U, 4U, 63U, 64U, 65U, 200U, 4096U, 4097U, 12288U}) {
        if (first >= bytes) continue;
        SCOPED_TRACE(std::to_string(length) + " at " + std::to_string(first) + " of " + std::to_string(bytes));
        ASSERT_NO_FATAL_FAILURE(check_changed(bytes, [&](std::byte* data) {
          for (std::size_t i = first; i < std::min(bytes, first + length); ++i) change(data[i]);
        }));
      }
    }
  }
}

TEST_P(WindowDiff, FindsEverySecondByteAsARunOfItsOwn) {
  for (const std::size_t bytes : {2U, 65U, 4096U, 9999U}) {
    for (const std::size_t first : {0U, 1U}) {
      ASSERT_NO_FATAL_FAILURE(check_changed(bytes, [&](std::byte* data) {
        for (std::size_t i = first; i < bytes; i += 2) change(data[i]);
      }));
    }
  }
}

TEST_P(WindowDiff, FindsRandomChangesAtEveryLengthAndAlignment) {
  Random random(test::seed());
  constexpr std::size_t filled_bytes = 600;
  const Bytes filled = test::pattern(filled_bytes, 1);
  for (int round = 0; round < test::rounds(1); ++round) {
    for (std::size_t bytes = 0; bytes <= 200; ++bytes) {
      for (std::size_t start = 0; start < 64; ++start) {
        Bytes data = filled;
        Bytes target = test::pattern(filled_bytes, 2);
        const auto percent = static_cast<unsigned>(std::array{1, 10, 50, 90, 100}[test::between(random, 0, 4)]);
        for (std::byte& byte : data) {
          if (test::chance(random, percent)) change(byte);
        }
        // Data, twin and target have different alignments. The bytes around the target stay unchanged.
        const std::size_t data_start = test::between(random, 0, 63);
        const Bytes twin(filled.data() + data_start, filled.data() + data_start + bytes);
        const Bytes before = target;
        SCOPED_TRACE(std::to_string(bytes) + " at " + std::to_string(start) + ", seed " + std::to_string(test::seed()));
        ASSERT_NO_FATAL_FAILURE(check(target.data() + start, data.data() + data_start, twin.data(), bytes));
        ASSERT_TRUE(std::equal(target.data(), target.data() + start, before.data()));
        ASSERT_TRUE(
            std::equal(target.data() + start + bytes, target.data() + filled_bytes, before.data() + start + bytes));
      }
    }
  }
}

TEST_P(WindowDiff, FindsRandomChangesInLongData) {
  Random random(test::seed());
  for (int round = 0; round < test::rounds(60); ++round) {
    SCOPED_TRACE("seed " + std::to_string(test::seed()) + ", round " + std::to_string(round));
    const std::size_t bytes = test::between(random, 1, 40'000);
    const std::size_t gap_max = std::array<std::size_t, 4>{2, 20, 500, 9000}[test::between(random, 0, 3)];
    const std::size_t run_max = std::array<std::size_t, 4>{1, 10, 200, 9000}[test::between(random, 0, 3)];
    ASSERT_NO_FATAL_FAILURE(check_changed(bytes, [&](std::byte* data) {
      for (std::size_t at = test::between(random, 0, gap_max); at < bytes; at += test::between(random, 1, gap_max)) {
        const std::size_t end = std::min(bytes, at + test::between(random, 1, run_max));
        for (; at < end; ++at) change(data[at]);
      }
    }));
  }
}

TEST_P(WindowDiff, AccessesNoMemoryOutsideTheData) {
  const Fenced data(2);
  const Fenced twin(2);
  const Fenced target(2);
  for (std::size_t bytes = 0; bytes < 4500; bytes += bytes < 600 ? 1 : 37) {
    for (const bool at_end : {false, true}) {
      SCOPED_TRACE(std::to_string(bytes) + (at_end ? " at the end" : " at the beginning"));
      std::byte* const ours = data.bytes(bytes, at_end);
      std::byte* const theirs = twin.bytes(bytes, at_end);
      std::byte* const shared = target.bytes(bytes, at_end);
      std::fill_n(theirs, bytes, std::byte{1});
      std::fill_n(ours, bytes, std::byte{1});
      std::fill_n(shared, bytes, std::byte{9});
      for (std::size_t i = bytes % 3; i < bytes; i += 3) ours[i] = std::byte{2};
      ASSERT_NO_FATAL_FAILURE(check(shared, ours, theirs, bytes));
      std::fill_n(ours, bytes, std::byte{3});
      ASSERT_NO_FATAL_FAILURE(check(shared, ours, theirs, bytes));
    }
  }
}

TEST_P(WindowDiff, StopsAfterAVisitThatReturnsFalse) {
  const Bytes twin(9000);
  Bytes data = twin;
  for (const std::size_t at : {5U, 100U, 101U, 5000U, 8999U}) change(data[at]);
  for (std::size_t stop = 1; stop <= 4; ++stop) {
    std::size_t visits = 0;
    const auto visit = [&](std::size_t, std::size_t) { return ++visits != stop; };

    EXPECT_FALSE(for_each_run(data.data(), twin.data(), data.size(), visit, *code));

    EXPECT_EQ(visits, stop);
  }
}

/// Two writers share every cache line. In each round each writer stores new values into its own bytes and reads them
/// back at once.
TEST_P(WindowDiff, LosesNoUpdateOfWritersOfNeighbouringBytes) {
  constexpr std::size_t bytes = 512;
  const int rounds = test::rounds(4000);
  alignas(64) static std::byte target[bytes];
  std::fill_n(target, bytes, std::byte{0});
  std::atomic<int> ready{0};
  std::atomic<int> lost{0};
  // The division between the writers differs from word to word: single bytes, pairs, neighbouring words, lines.
  const auto is_first = [](std::size_t at) {
    constexpr std::array<std::size_t, 4> together{1, 2, 8, 3};
    return at / together[at / 128] % 2 == 0;
  };
  const auto write = [&](bool first) {
    Bytes twin(bytes);
    Bytes data(bytes);
    ++ready;
    while (ready.load() != 2) {
    }
    for (int round = 1; round <= rounds; ++round) {
      for (std::size_t i = 0; i < bytes; ++i) {
        if (is_first(i) == first) data[i] = std::byte(round * 7 + int(i));
      }
      store_differences(target, data.data(), twin.data(), bytes, *code);
      for (std::size_t i = 0; i < bytes; ++i) {
        if (is_first(i) == first && target[i] != data[i]) ++lost;
      }
      twin = data;
    }
  };

  std::thread other(write, false);
  write(true);
  other.join();

  EXPECT_EQ(lost.load(), 0);
}

TEST(WindowDiffLevel, BestLevelIsOneOfTheAvailableLevels) {
  const DiffCode* best = nullptr;
  for (const DiffLevel level : diff_levels) {
    if (diff_code(level) != nullptr) best = diff_code(level);
  }
  EXPECT_NE(diff_code(DiffLevel::words), nullptr);
  EXPECT_EQ(best, &diff_code());
}

TEST(WindowCopy, WritesTheSameToBothTargetsAndNothingElse) {
  for (const std::size_t bytes : {0U, 1U, 63U, 64U, 200U, 4096U, 16383U, 16384U, 16385U, 100'000U}) {
    const Bytes source = test::pattern(bytes, bytes);
    Bytes to(bytes + 2, std::byte{7});
    Bytes twin(bytes + 2, std::byte{7});

    copy_with_twin(to.data() + 1, twin.data() + 1, source.data(), bytes);

    EXPECT_EQ(to, twin);
    EXPECT_TRUE(std::equal(source.begin(), source.end(), to.begin() + 1));
    EXPECT_EQ(to.front(), std::byte{7});
    EXPECT_EQ(to.back(), std::byte{7});
  }
}

/// Another process changes the source; changes by a thread of this process would be a data race.
TEST(WindowCopy, WritesTheSameToBothTargetsWhileTheSourceChanges) {
  constexpr std::size_t bytes = 70'000;
  auto* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const source = static_cast<std::byte*>(mapped);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (unsigned value = 1; ::getppid() == parent; ++value) std::fill_n(source, bytes, std::byte(value));
    ::_exit(0);
  }

  Bytes to(bytes);
  Bytes twin(bytes);
  int unequal = 0;
  int mixed = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (mixed < test::rounds(100) && std::chrono::steady_clock::now() < deadline) {
    copy_with_twin(to.data(), twin.data(), source, bytes);
    if (to != twin) ++unequal;
    if (to.front() != to.back()) ++mixed;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::munmap(mapped, bytes);

  EXPECT_EQ(unequal, 0);
  EXPECT_GT(mixed, 0) << "the source did not change during any copy, so nothing was tested";
}

}  // namespace
}  // namespace tonari::window
