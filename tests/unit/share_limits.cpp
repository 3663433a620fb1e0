#include "../support/shared.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Tests of the arguments that shared arrays, mutexes, flags and counters refuse, and of the mistakes that they report.
namespace tonari {
namespace {

using test::OnEveryWayToShare;

class SharedLimits : public OnEveryWayToShare {};
INSTANTIATE_TEST_SUITE_P(Over, SharedLimits, testing::ValuesIn(test::ways_to_share_and_kernels()), test::name_of);

/// Returns the message with which an array is refused; an empty string if it is made.
std::string refusal(Job& job, std::size_t count, const ArrayOptions& options = {}) {
  try {
    const shared_array<int> array(job, count, options);
  } catch (const SetupError& error) {
    return error.what();
  }
  return {};
}

TEST_P(SharedLimits, RefuseArgumentsThatDifferBetweenRanks) {
  struct Arguments {
    std::size_t count = 5000;
    ArrayOptions options{};
  };
  struct Case {
    const char* why;
    void (*differ)(Arguments& asked, bool other);
  };
  const std::array<Case, 7> cases{{
      {"its bytes, from 20000 to 20004", [](Arguments& asked, bool other) { asked.count += other ? 1 : 0; }},
      {"its bytes, from 20000 to 400000", [](Arguments& asked, bool other) { asked.count = other ? 100'000 : 5000; }},
      {"ArrayOptions::placement, from 0 to 2",
       [](Arguments& asked, bool other) {
         asked.options.placement = other ? Placement::first_touch : Placement::block;
       }},
      {"ArrayOptions::writes_are_named, from 0 to 1",
       [](Arguments& asked, bool other) { asked.options.writes_are_named = other; }},
      {"ArrayOptions::homes_move, from 0 to 1", [](Arguments& asked, bool other) { asked.options.homes_move = other; }},
      {"ArrayOptions::updates, from 0 to 1", [](Arguments& asked, bool other) { asked.options.updates = other; }},
      {"where ArrayOptions::cyclic_bytes or home place its pages: ",
       [](Arguments& asked, bool other) {
         asked.options.placement = Placement::cyclic;
         asked.options.cyclic_bytes = other ? 4096 : 8192;
       }},
  }};
  run(2, [&](Job& job) {
    for (const Case& each : cases) {
      Arguments asked;
      each.differ(asked, job.rank() == 1);
      const std::string why = refusal(job, asked.count, asked.options);
      EXPECT_NE(why.find(std::string("the ranks differ in ") + each.why), std::string::npos) << why;
    }
    if (job.rank() == 0) const share::counter made_by_one(job);
    const std::string why = refusal(job, 10);
    EXPECT_NE(why.find("mutexes, flags and counters that they made before it, from 0 to 1"), std::string::npos) << why;
    if (job.rank() == 1) const share::counter made_by_the_other(job);
    const shared_array<int> array(job, 100);
    EXPECT_EQ(array[99], 0);
  });
}

TEST_P(SharedLimits, RefuseInvalidArguments) {
  run(2, [](Job& job) {
    const auto expect = [&job](const char* why, std::size_t count, const ArrayOptions& options = {}) {
      const std::string refused = refusal(job, count, options);
      EXPECT_NE(refused.find(why), std::string::npos) << refused;
    };
    const auto placed = [](Placement placement, std::uint64_t cyclic_bytes) {
      ArrayOptions options;
      options.placement = placement;
      options.cyclic_bytes = cyclic_bytes;
      return options;
    };
    for (const std::size_t count : {~std::size_t{0}, ~std::size_t{0} / sizeof(int), std::size_t{1} << 46}) {
      expect("of shared memory were asked for, and no program has so many addresses", count);
    }
    expect("64 TiB of shared memory were asked for", std::size_t{1} << 44);
    expect("ArrayOptions::placement is 77, which is none", 10, placed(static_cast<Placement>(77), 4096));
    expect("cyclic_bytes is 0", 10, placed(Placement::cyclic, 0));
    expect("ArrayOptions::home is empty", 10, placed(Placement::by_function, 4096));

    const shared_array<int> in_one(job, 10'000, placed(Placement::cyclic, ~std::uint64_t{0}));
    EXPECT_EQ(in_one.home_of(9'999), 0);
  });
}

// All slots but three stay occupied, so each turn reuses the slots of the previous turn. The ranks do not synchronise
// in between, and each destroys its objects at its own time.
TEST_P(SharedLimits, CountOnlyTheMutexesFlagsAndCountersThatExist) {
  constexpr std::size_t most = 2 * 4096;
  run(2, [last = turns(50)](Job& job) {
    const shared_array<int> array(job, 2);
    std::vector<share::counter> kept;
    while (kept.size() < most - 3) kept.emplace_back(job);
    for (int turn = 1; turn <= last; ++turn) {
      share::flag flag(job);
      share::mutex mutex(job);
      share::counter counter(job);
      ASSERT_LT(counter.fetch_add(static_cast<std::uint64_t>(turn)).value, static_cast<std::uint64_t>(turn) + 1);
      if (job.rank() == 0) {
        array[0] = turn;
        ASSERT_EQ(flag.set(1), Status::ok);
      } else {
        ASSERT_EQ(flag.wait(1), Status::ok);
        ASSERT_EQ(array[0], turn);
      }
      const auto lock = mutex.lock();
      ASSERT_EQ(lock.status(), Status::ok);
      ++array[1];
    }
    auto late = std::make_unique<share::counter>(job);
    if (job.rank() == 0) late.reset();
    kept.emplace_back(job);
    kept.emplace_back(job);
    try {
      const share::flag one_more(job);
      ADD_FAILURE() << "a flag was given a slot that a rank still uses";
    } catch (const SetupError& error) {
      EXPECT_NE(std::string(error.what()).find("at most 8192 of them at once: destroy"), std::string::npos);
    }
    late.reset();
    share::flag one_more(job);
    EXPECT_EQ(one_more.get().value, 0u);
    ASSERT_EQ(share::barrier(job), Status::ok);
    EXPECT_EQ(array[1], 2 * last);
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

void never_release(share::mutex::Lock&& lock) {
  alignas(share::mutex::Lock) std::array<std::byte, sizeof(share::mutex::Lock)> memory{};
  ::new (memory.data()) share::mutex::Lock(std::move(lock));
}

void misuse(const test::Variant& variant, void (*act)(Job&)) {
  test::as_jobs(
      1, [act](Job& job) { act(job); }, variant.settings);
}

void ask_for_a_home_beyond_the_end(Job& job) {
  for (const Placement placement : {Placement::block, Placement::by_function}) {
    ArrayOptions options;
    options.placement = placement;
    options.home = [](std::uint64_t) { return JobRank{0}; };
    const shared_array<int> array(job, 100, options);
    for (const std::size_t index : {std::size_t{100}, std::size_t{5000}, ~std::size_t{0}}) {
      EXPECT_EQ(array.home_of(index), 0);
    }
  }
}

#ifdef NDEBUG
TEST(SharedMisuse, ReturnsAHomeForEveryIndex) {
  for (const auto& variant : test::ways_to_share()) misuse(variant, ask_for_a_home_beyond_the_end);
}
#else
TEST(SharedMisuseDeathTest, IsReported) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto ways = test::ways_to_share();
  const auto destroy_locked = [](Job& job) {
    share::mutex mutex(job);
    never_release(mutex.lock_shared());
  };
  const auto set_to_less = [](Job& job) {
    share::flag flag(job);
    EXPECT_EQ(flag.set(2), Status::ok);
    EXPECT_EQ(flag.set(2), Status::ok);
    EXPECT_EQ(flag.set(1), Status::ok);
  };
  EXPECT_DEATH(misuse(ways[0], ask_for_a_home_beyond_the_end), "home_of.. is asked about byte 400 of .* 400 bytes");
  EXPECT_DEATH(misuse(ways[1], ask_for_a_home_beyond_the_end), "home_of.. is asked about byte 400 of .* 400 bytes");
  const auto name_too_many = [](Job& job) {
    ArrayOptions named;
    named.writes_are_named = true;
    const shared_array<int> array(job, 100, named);
    array.wrote(90, 1000);
  };
  EXPECT_DEATH(misuse(ways[0], name_too_many), "wrote.. names 4000 bytes from byte 360 on of a shared array of 400");
  EXPECT_DEATH(misuse(ways[0], destroy_locked), "rank 0: a share::mutex is destroyed that this rank has locked");
  EXPECT_DEATH(misuse(ways[0], set_to_less), "rank 0: a share::flag is set to 1, which was 2 before: flags only grow");
}

TEST(SharedMisuseDeathTest, ReportsUseOfMovedFromObjects) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto way = test::ways_to_share()[0];
  const auto use_array = [](Job& job) {
    shared_array<int> array(job, 100);
    const shared_array<int> there(std::move(array));
    array[0] = 1;  // NOLINT(bugprone-use-after-move): the test is about this
  };
  const auto use_mutex = [](Job& job) {
    share::mutex mutex(job);
    const share::mutex there(std::move(mutex));
    (void)mutex.lock();  // NOLINT(bugprone-use-after-move): the test is about this
  };
  const auto use_matrix = [](Job& job) {
    shared_matrix<int> matrix(job, 10, 10);
    const shared_matrix<int> there(std::move(matrix));
    matrix[0][0] = 1;  // NOLINT(bugprone-use-after-move): the test is about this
  };
  EXPECT_DEATH(misuse(way, use_matrix), "a shared_matrix is used that was moved from");
  EXPECT_DEATH(misuse(way, use_array), "a shared_array is used that was moved from");
  EXPECT_DEATH(misuse(way, use_mutex), "a share::mutex is used that was moved from");
}

TEST(SharedMisuse, IgnoresALockedMutexThatAnExceptionDestroys) {
  const auto leave = [](Job& job) {
    share::mutex mutex(job);
    never_release(mutex.lock());
    throw std::runtime_error("enough");
  };
  EXPECT_THROW(misuse(test::ways_to_share()[0], leave), std::runtime_error);
}
#endif

}  // namespace
}  // namespace tonari
