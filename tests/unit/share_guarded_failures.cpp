#include "../support/guarded.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Tests of guarded data that cannot be made, of deaths, and of mistakes that are reported.
namespace tonari {
namespace {

using test::Variant;

class GuardedFailures : public test::OnEveryGuardedSetting {};
INSTANTIATE_TEST_SUITE_P(Over, GuardedFailures, testing::ValuesIn(test::guarded_settings()), test::name_of_setting);

/// The arguments of a guarded_span<int> that a rank asks for.
struct Arguments {
  std::size_t count;
  GuardedOptions options;
  std::string_view refusal{};  // part of the text of the SetupError
};
void expect_refusal(Job& job, const Arguments& asked, std::string_view words) {
  std::string said = "nothing";
  try {
    const guarded_span<int> made(job, asked.count, asked.options);
  } catch (const SetupError& error) {
    said = error.what();
  }
  EXPECT_NE(said.find(words), std::string::npos) << "\"" << words << "\" is not in \"" << said << "\"";
}
void expect_it_works(Job& job, const GuardedOptions& options) {
  guarded<int> counter(job, 0, options);
  ++*counter.write();
  ASSERT_EQ(Communicator(job).barrier(), Status::ok);
  EXPECT_EQ(*counter.read(), job.size());
  ASSERT_EQ(Communicator(job).barrier(), Status::ok);
}

TEST_P(GuardedFailures, RefusesInvalidArgumentsOfOneRankAtAllRanks) {
  constexpr auto most = static_cast<std::size_t>(-1);
  const std::vector<Arguments> all{
      {2, options(2), "GuardedOptions::home is 2, no rank of the job of 2"},
      {2, options(-1), "GuardedOptions::home is -1, no rank of the job of 2"},
      {2, {static_cast<OnWrite>(9)}, "GuardedOptions::on_write is 9, and none of invalidate, update"},
      {2, {OnWrite::update, static_cast<Mover>(9)}, "GuardedOptions::mover is 9, and none of owner_puts, asker_asks, "},
      {0, options(), "there are no bytes to guard"},
      {most, options(), "18446744073709551615 elements of 4 bytes: no program has so many bytes"},
      {most / 2, options(), "no program has so many bytes"},
      {std::size_t{1} << 44, options(), "64 TiB were asked for"},
  };
  run(2, [&all](Job& job) {
    for (const Arguments& asked : all) {
      expect_refusal(job, asked, asked.refusal);
      if (job.rank() == 1) {
        expect_refusal(job, asked, asked.refusal);
      } else {
        expect_refusal(job, {2, options()}, "another rank could not, and says why");
      }
    }
    expect_it_works(job, options());
  });
}

TEST_P(GuardedFailures, RefusesArgumentsThatDifferBetweenRanks) {
  GuardedOptions other = options();
  other.on_write = other.on_write == OnWrite::update ? OnWrite::invalidate : OnWrite::update;
  GuardedOptions moved = options();
  moved.mover = moved.mover == Mover::asker_gets ? Mover::owner_puts : Mover::asker_gets;
  const std::vector<Arguments> all{
      {4, options(), "bytes from 8 to 16, here "},
      {2, other, "on_write from invalidate to update, here "},
      {2, moved, "mover from "},
      {2, options(1), "home from 0 to 1, here "},
      {1, options(1), "bytes from 4 to 8, here "},
  };
  run(2, [&all](Job& job) {
    for (const Arguments& asked : all) {
      expect_refusal(job, job.rank() == 1 ? asked : Arguments{2, options()}, asked.refusal);
    }
    expect_refusal(job, {job.rank() == 0 ? 2u : 5u, options(job.rank().value())},
                   job.rank() == 0 ? "the ranks ask for different ones: bytes from 8 to 20, here 8; home from 0 to 1, "
                                     "here 0; they must be the same in all"
                                   : "bytes from 8 to 20, here 20; home from 0 to 1, here 1; ");
    expect_it_works(job, options(1));
  });
}

TEST_P(GuardedFailures, CannotBeMadeAfterTheDeathOfARank) {
  std::atomic<int> come{0};
  const auto body = [&come](Job& job) {
    job.on_death([](const Death&) {});
    expect_it_works(job, options(2));
    test::let_die(job, 2, come);
    expect_refusal(job, {2, options()}, "a rank died or left meanwhile");
  };
  EXPECT_THROW(run(3, body), test::Killed);
}

template <class T>
void never_release(GuardedAccess<T>&& access) {
  alignas(GuardedAccess<T>) std::array<std::byte, sizeof(GuardedAccess<T>)> memory{};
  ::new (memory.data()) GuardedAccess<T>(std::move(access));
}

// If a rank dies with the newest data, the data are lost. The other ranks' accesses return, now and later.
TEST_P(GuardedFailures, EndsAccessesThatNeedADeadOwner) {
  std::atomic<int> come{0};
  const auto body = [&come](Job& job) {
    job.on_death([](const Death&) {});
    Communicator world(job);
    guarded<int> value(job, 0, options());
    if (job.rank() == 1) {
      auto access = value.write();
      ASSERT_TRUE(access);
      *access = 1;
      never_release(std::move(access));
    }
    ASSERT_EQ(world.barrier(), Status::ok);
    test::let_die(job, 1, come);
    for (int turn = 0; turn < 3; ++turn) {
      const auto expect_an_end = [&](auto access) {
        if (job.hosts() > 1) {
          EXPECT_EQ(access.status(), Status::peer_gone);
          EXPECT_FALSE(access);
        } else {
          EXPECT_TRUE(access.status() == Status::ok || access.status() == Status::holder_died);
          EXPECT_TRUE(access);
        }
        EXPECT_EQ(access.release(), Status::ok);
      };
      if (job.rank() == 0) {
        expect_an_end(value.write());
      } else {
        expect_an_end(value.read());
      }
    }
  };
  EXPECT_THROW(run(3, body), test::Killed);
}

// No data are lost with a rank that only read.
TEST_P(GuardedFailures, StaysUsableAfterTheDeathOfAReader) {
  std::atomic<int> come{0};
  std::atomic<int> left{0};
  const auto body = [&come, &left](Job& job) {
    job.on_death([](const Death&) {});
    Communicator world(job);
    guarded_span<int> values(job, 100, options());
    { const auto access = values.read(); }
    ASSERT_EQ(world.barrier(), Status::ok);
    test::let_die(job, 3, come);
    for (int turn = 0; turn < turns(100); ++turn) {
      auto access = values.write();
      ASSERT_EQ(access.status(), Status::ok);
      ++access[50];
      ASSERT_EQ(access.release(), Status::ok);
      const auto reading = values.read();
      ASSERT_TRUE(reading);
    }
    const auto wait_for = [&](int count) {
      left.fetch_add(1);
      test::wait_until(job, [&] { return left.load() >= count; });
    };
    wait_for(3);
    EXPECT_EQ(values.read()[50], 3 * turns(100));
    wait_for(6);
  };
  EXPECT_THROW(run(4, body), test::Killed);
}

#ifndef NDEBUG
void misuse(const Variant& variant, const std::function<void(guarded<int>&)>& act) {
  test::as_jobs(
      2,
      [&act](Job& job) {
        guarded<int> value(job, 0);
        if (job.rank() == 0) act(value);
      },
      variant.settings);
}

TEST(GuardedMisuseDeathTest, IsReported) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const std::string no_lock = "guarded data is looked at without its lock";
  for (const Variant& variant : {test::guarded_variants()[0], test::guarded_variants()[1]}) {
    EXPECT_DEATH(misuse(variant,
                        [](auto& value) {
                          auto access = value.write();
                          (void)access.release();
                          ++*access;
                        }),
                 no_lock);
    EXPECT_DEATH(misuse(variant, [](auto& value) { never_release(value.write()); }),
                 "guarded data is freed while it is locked");
    EXPECT_DEATH(misuse(variant,
                        [](auto& value) {
                          auto& moved = value;
                          const guarded<int> elsewhere = std::move(value);
                          (void)moved.write();
                        }),
                 "guarded data is used that was moved from");
  }
}
#endif

}  // namespace
}  // namespace tonari
