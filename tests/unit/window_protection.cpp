#include "../support/windows.hpp"

#include "job/session.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

// Tests which accesses are refused, and that a refused access leaves the target's memory unchanged.
namespace tonari {
namespace {

using test::bytes_of;
using test::Killed;
using test::Owner;
using test::Part;
using test::pattern;

class Protection : public test::OnEveryWindow {};
INSTANTIATE_TEST_SUITE_P(Each, Protection, test::windows_of(test::window_variants()), test::name_of_window);

constexpr std::uint64_t end_of_numbers = std::numeric_limits<std::uint64_t>::max();

/// The statuses that reads, writes and atomic operations are expected to return.
struct Expected {
  Status read;
  Status write;
  Status atomic;
};
/// Tries every copy of `bytes` to and from `at`.
void expect_copies(Window& window, GlobalAddress at, std::size_t bytes, const Expected& expected) {
  SCOPED_TRACE(testing::Message() << bytes << " bytes at " << at.window << '.' << at.rank << '.' << at.offset);
  std::vector<std::byte> local(bytes, std::byte{0xbb});
  std::vector<std::byte> twin(bytes, std::byte{0xaa});
  const Region first{0, std::min<std::uint64_t>(bytes, 1)};
  EXPECT_EQ(window.push(at, local), expected.write);
  EXPECT_EQ(window.push_regions(at, local, std::span(&first, 1)), expected.write);
  EXPECT_EQ(window.push_diff(at, local, twin).status, expected.write);
  EXPECT_EQ(window.multicast(std::span(&at, 1), local), expected.write);
  EXPECT_EQ(window.multicast_regions(std::span(&at, 1), local, std::span(&first, 1)), expected.write);
  EXPECT_EQ(window.push_notified(at, local, 0), expected.write);
  EXPECT_EQ(window.pull(local, at), expected.read);
  EXPECT_EQ(window.pull_with_twin(local, twin, at), expected.read);
  EXPECT_EQ(window.pull_regions(local, at, std::span(&first, 1)), expected.read);
}
/// Tries every copy, and every kind of atomic operation at `at`.
void expect_all(Window& window, GlobalAddress at, std::size_t bytes, const Expected& expected) {
  expect_copies(window, at, bytes, expected);
  SCOPED_TRACE(testing::Message() << "at " << at.window << '.' << at.rank << '.' << at.offset);
  EXPECT_EQ(window.fetch_add(at, std::uint64_t{1}).status, expected.atomic);
  EXPECT_EQ(window.compare_and_swap(at, std::uint32_t{0}, std::uint32_t{1}).status, expected.atomic);
  EXPECT_EQ(window.swap(at, 1.0F).status, expected.atomic);
}
void expect_all(Window& window, GlobalAddress at, std::size_t bytes, Status expected) {
  expect_all(window, at, bytes, {expected, expected, expected});
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{0}; });
}

constexpr Rights rights_of_number(int number) { return static_cast<Rights>(number); }
Expected expected_of(Rights rights) {
  const auto status = [rights](Rights needed) { return includes(rights, needed) ? Status::ok : Status::denied; };
  return {status(Rights::read), status(Rights::write), status(Rights::atomic)};
}

TEST_P(Protection, AppliesCommonRightsToEveryRank) {
  for (int number = 0; number <= 7; ++number) {
    WindowOptions options;
    options.rights = rights_of_number(number);
    run(
        2, 64,
        [number](Job& job, Window& window) {
          if (job.rank() == 0) {
            expect_all(window, window.at(JobRank{1}), 64, expected_of(rights_of_number(number)));
            expect_all(window, window.at(JobRank{0}), 64, Status::ok);  // the owner may do everything
          }
          EXPECT_EQ(window.barrier(), Status::ok);
          if (job.rank() == 1) {
            EXPECT_EQ(is_zero(window.local()), (number & 6) == 0) << number;
            EXPECT_EQ(window.notified(0), (number & 2) != 0 ? 1u : 0u);
          }
        },
        options);
  }
}

TEST_P(Protection, AppliesTheRightsGivenToEachRank) {
  constexpr int ranks = 9;
  constexpr std::size_t slot = 64;  // bytes that each rank uses in the last rank's part
  run(ranks, [](Job& job) {
    WindowOptions options;
    options.rights = Rights::read;
    if (job.rank() == 8) {
      for (int rank = 0; rank < 8; ++rank) options.rights_of.emplace_back(rank, rights_of_number(rank));
    }
    Part part = test::make_part(job, owner(), 8 * slot, options);
    Window& window = part.window;
    if (job.rank() < 8) {
      expect_all(window, window.at(JobRank{8}, static_cast<std::uint64_t>(job.rank().value()) * slot), slot,
                 expected_of(rights_of_number(job.rank().value())));
      expect_all(window, window.at(JobRank{(job.rank() + 1) % 8}), 64, expected_of(Rights::read));
      const bool mapped = owner() == Owner::tonari && !between_hosts();
      EXPECT_EQ(window.direct(window.at(JobRank{8})) != nullptr, mapped && job.rank() != 0);
    }
    EXPECT_EQ(window.barrier(), Status::ok);
    if (job.rank() < 8) {
      EXPECT_TRUE(is_zero(window.local()));
    }
  });
}

TEST_P(Protection, RefusesAnOriginWithoutRightsAndLeavesTheTargetAlone) {
  WindowOptions options;
  options.rights = Rights::none;
  run(
      2, 5000,
      [](Job& job, Window& window) {
        std::ranges::fill(window.local(), std::byte{0x11});
        EXPECT_EQ(window.barrier(), Status::ok);
        expect_all(window, window.at(job.neighbour(1)), 4999, Status::denied);
        EXPECT_EQ(window.direct(window.at(job.neighbour(1))), nullptr);
        EXPECT_EQ(window.multicast_to_all(0, pattern(10, 1)), Status::denied);
        EXPECT_EQ(window.barrier_with_multicast(0, pattern(10, 1)),
                  Status::denied);  // the barrier completes nevertheless
        EXPECT_TRUE(std::ranges::all_of(window.local(), [](std::byte each) { return each == std::byte{0x11}; }));
        // Locks need no rights: every member of the group may lock.
        EXPECT_EQ(window.lock(job.neighbour(1)), Status::ok);
        EXPECT_EQ(window.unlock(job.neighbour(1)), Status::ok);
      },
      options);
}

TEST_P(Protection, RefusesOneBytePastTheEndAndOffsetsThatOverflow) {
  constexpr std::size_t bytes = 4096;
  run(2, bytes, [](Job& job, Window& window) {
    if (job.rank() == 0) {
      constexpr Expected refused{Status::bounds, Status::bounds, Status::bounds};
      for (const int rank : {1, 0}) {
        for (const std::uint64_t offset :
             {std::uint64_t{bytes} - 3, std::uint64_t{bytes}, std::uint64_t{bytes} + 1, std::uint64_t{1} << 31,
              std::uint64_t{1} << 32, (std::uint64_t{1} << 32) + 8, std::uint64_t{1} << 63, end_of_numbers - 8,
              end_of_numbers - 7, end_of_numbers - 1, end_of_numbers}) {
          expect_all(window, window.at(JobRank{rank}, offset), 8, Status::bounds);
        }
        const auto eight = pattern(8, 1);
        EXPECT_EQ(window.push(window.at(JobRank{rank}, bytes - 7), eight), Status::bounds);
        EXPECT_EQ(window.fetch_add(window.at(JobRank{rank}, bytes - 4), std::uint64_t{1}).status, Status::bounds);
        for (const std::size_t length : {bytes + 1, 2 * bytes})
          expect_copies(window, window.at(JobRank{rank}), length, refused);
        expect_copies(window, window.at(JobRank{rank}, 1), bytes, refused);
        expect_all(window, window.at(JobRank{rank}) - 1, 8, Status::bounds);
        expect_all(window, window.at(JobRank{rank}) + end_of_numbers + 8, 8, Status::bounds);
        // These lengths exceed any memory. Nothing is accessed, so a short buffer suffices.
        std::array<std::byte, 8> small{};
        for (const std::size_t length :
             {std::size_t{end_of_numbers}, std::size_t{end_of_numbers - bytes + 1}, std::size_t{1} << 63}) {
          for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{bytes}}) {
            const std::span<std::byte> vast(small.data(), length);
            EXPECT_EQ(window.push(window.at(JobRank{rank}, offset), vast), Status::bounds);
            EXPECT_EQ(window.pull(vast, window.at(JobRank{rank}, offset)), Status::bounds);
            EXPECT_EQ(window.push_diff(window.at(JobRank{rank}, offset), vast, vast).status, Status::bounds);
            EXPECT_EQ(window.pull_regions(vast, window.at(JobRank{rank}, offset), {}), Status::bounds);
            EXPECT_FALSE(window.contains(window.at(JobRank{rank}, offset), length));
            EXPECT_EQ(window.direct(window.at(JobRank{rank}, offset), length), nullptr);
          }
        }
        for (const std::uint64_t offset : {std::uint64_t{bytes}, end_of_numbers}) {
          EXPECT_EQ(window.multicast_to_all(offset, pattern(1, 1)), Status::bounds);
        }
      }
    }
    EXPECT_EQ(window.barrier(), Status::ok);
    EXPECT_TRUE(is_zero(window.local()));
    EXPECT_EQ(window.notified(0), 0u);
  });
}

// Freed windows.

TEST_P(Protection, ReturnsBoundsForAddressesOfAFreedPart) {
  run(3, [](Job& job) {
    Communicator world(job);
    std::optional<Part> part = test::make_part(job, owner(), 4096);
    const GlobalAddress at = part->window.at(JobRank{1}, 8);
    const std::uint32_t number = part->window.number();
    if (job.rank() == 0) {
      ASSERT_EQ(part->window.push(at, bytes_of(1)), Status::ok);
    }
    ASSERT_EQ(world.barrier(), Status::ok);
    if (job.rank() == 1) part.reset();
    ASSERT_EQ(world.barrier(), Status::ok);
    if (job.rank() != 1) {
      Window& window = part->window;
      expect_all(window, at, 8, Status::bounds);
      EXPECT_FALSE(window.contains(at));
      EXPECT_EQ(window.direct(at), nullptr);
      EXPECT_EQ(window.lock(JobRank{1}), Status::bounds);
      EXPECT_EQ(window.try_lock(JobRank{1}), Status::bounds);
      EXPECT_EQ(window.lock_for(std::chrono::seconds(100), JobRank{1}), Status::bounds);
      EXPECT_EQ(window.multicast_to_all(0, pattern(10, 1)), Status::bounds);
      EXPECT_EQ(window.barrier(), Status::peer_gone);
      // The other ranks' parts still work.
      const int other = 2 - job.rank().value();
      EXPECT_EQ(window.push(window.at(JobRank{other}, 16), bytes_of(7)), Status::ok);
      EXPECT_EQ(window.lock(JobRank{other}), Status::ok);
      EXPECT_EQ(window.unlock(JobRank{other}), Status::ok);
    }
    ASSERT_EQ(world.barrier(), Status::ok);
    // The next window has another number and refuses addresses of the old one.
    Part next = test::make_part(job, owner(), 4096);
    EXPECT_NE(next.window.number(), number);
    expect_all(next.window, at, 8, Status::bounds);
    ASSERT_EQ(next.window.barrier(), Status::ok);
    EXPECT_TRUE(is_zero(next.window.local()));
  });
}

TEST_P(Protection, FreeingAPartWaitsForAccessesUnderWay) {
  // The owner of a part reuses its memory as soon as the part is freed, while other ranks go on pushing.
  run(3, [](Job& job) {
    Communicator world(job);
    for (int turn = 0; turn < test::rounds(10); ++turn) {
      std::vector<std::byte> memory(20'000);
      std::optional<Window> window;
      if (owner() == Owner::program) {
        window.emplace(job, std::span(memory));
      } else {
        window.emplace(job, memory.size());
      }
      if (job.rank() == 0) {
        ASSERT_EQ(window->wait_notified(0, 4), Status::ok);  // pushes are under way
        window.reset();
        const auto mine = pattern(memory.size(), static_cast<std::size_t>(turn) + 1);
        std::ranges::copy(mine, memory.begin());
        ASSERT_EQ(world.barrier(), Status::ok);
        ASSERT_TRUE(memory == mine);
      } else {
        const auto sent = pattern(10'000, 9999);
        const GlobalAddress half = window->at(JobRank{0}, job.rank() == 1 ? 0 : 10'000);
        Status status = Status::ok;
        while ((status = window->push_notified(half, sent, 0)) == Status::ok) {
        }
        EXPECT_EQ(status, Status::bounds);
        ASSERT_EQ(world.barrier(), Status::ok);
      }
      ASSERT_EQ(world.barrier(), Status::ok);
    }
  });
}

TEST_P(Protection, KeepsALockOfAFreedPartUsableForHoldersAndWaiters) {
  std::atomic<bool> waits{false};
  run(3, [&waits](Job& job) {
    Communicator world(job);
    std::optional<Part> part = test::make_part(job, owner(), 8);
    Window& window = part->window;
    if (job.rank() == 1) {
      ASSERT_EQ(window.lock(JobRank{0}), Status::ok);
    }
    ASSERT_EQ(window.barrier(), Status::ok);
    const job::RankBlock& waiter = job.session().arena().block(2);
    if (job.rank() == 2) {
      std::jthread teller([&] {
        while (waiter.wait.load() != job::Wait::lock) std::this_thread::yield();
        EXPECT_EQ(window.fetch_add(window.at(JobRank{0}), 0u).status,
                  Status::ok);  // completes after the lock request has reached the home
        waits.store(true);
      });
      EXPECT_EQ(window.lock(JobRank{0}), Status::ok);
      EXPECT_EQ(window.unlock(JobRank{0}), Status::ok);
    } else if (job.rank() == 0) {
      while (!waits.load())
        (void)world.probe_now(Rank{1}, Tag{0});  // serves requests in variants without a service thread
      part.reset();
      ASSERT_EQ(world.send(1, Rank{1}), Status::ok);
    } else {
      int go = 0;
      ASSERT_EQ(world.receive(go, Rank{0}).status, Status::ok);
      EXPECT_EQ(window.unlock(JobRank{0}), Status::ok);
    }
    ASSERT_EQ(world.barrier(), Status::ok);
  });
}

TEST_P(Protection, RefusesAccessesToAWindowMadeAloneAfterItsOwnerFreesIt) {
  run(2, [](Job& job) {
    Communicator world(job);
    std::optional<Part> own;
    GlobalAddress at;
    if (job.rank() == 0) {
      own.emplace(test::make_part_alone(job, owner(), 4096));
      at = own->window.at(JobRank{0});
    }
    ASSERT_EQ(world.broadcast(at, Rank{0}), Status::ok);
    std::optional<Window> reached;
    if (job.rank() == 1) {
      reached.emplace(Window::reach(job, at));
      ASSERT_EQ(reached->push(at, bytes_of(1)), Status::ok);
    }
    ASSERT_EQ(world.barrier(), Status::ok);
    own.reset();
    ASSERT_EQ(world.barrier(), Status::ok);
    if (job.rank() == 1) {
      expect_all(*reached, at, 8, Status::bounds);
      EXPECT_THROW((void)Window::reach(job, at), SetupError);  // although this rank still holds its window
      reached.reset();
      EXPECT_THROW((void)Window::reach(job, at), SetupError);
    }
  });
}

// Forged addresses.

TEST_P(Protection, RefusesForgedAddresses) {
  run(2, [](Job& job) {
    Part big = test::make_part(job, owner(), 5 << 20);  // several granules: the numbers in between belong to no window
    Part small = test::make_part(job, owner(), 64);
    Part alone = test::make_part_alone(job, owner(), 64);
    Window& window = small.window;
    const std::uint32_t number = window.number();
    for (const std::uint32_t forged :
         {std::uint32_t{0}, number + 1, number - 1, number + 100, big.window.number(), big.window.number() + 1,
          alone.window.number(), std::uint32_t{1} << 31, ~std::uint32_t{0}}) {
      if (forged == number) continue;  // this is the number of another window
      expect_all(window, {forged, job.neighbour(1), 0}, 8, Status::bounds);
    }
    for (const std::uint32_t rank : {2u, 3u, 255u, 0x80000000u, 0xfffffffeu, 0xffffffffu}) {
      expect_all(window, {number, JobRank{rank}, 0}, 8, Status::bounds);
      EXPECT_EQ(window.flush(JobRank{rank}), Status::bounds);
      EXPECT_EQ(window.lock(JobRank{rank}), Status::bounds);
      EXPECT_EQ(window.try_lock(JobRank{rank}), Status::bounds);
      EXPECT_EQ(window.unlock(JobRank{rank}), Status::bounds);
      EXPECT_EQ(window.bytes(JobRank{rank}), 0u);
    }
    EXPECT_EQ(window.lock(JobRank{0}, 1), Status::bounds);
    EXPECT_EQ(window.lock(JobRank{0}, ~std::uint32_t{0}), Status::bounds);
    EXPECT_EQ(window.lock_for(std::chrono::seconds(1), JobRank{0}, 1), Status::bounds);
    EXPECT_EQ(window.unlock(JobRank{0}), Status::invalid);
    EXPECT_EQ(window.lock(JobRank{0}, 0, static_cast<LockMode>(7)), Status::invalid);
    EXPECT_EQ(window.try_lock(JobRank{0}, 0, static_cast<LockMode>(7)), Status::invalid);
    ASSERT_EQ(window.barrier(), Status::ok);
    for (const Part* each : {&big, &small, &alone}) EXPECT_TRUE(is_zero(each->window.local()));
    ASSERT_EQ(window.barrier(), Status::ok);
  });
}

TEST_P(Protection, RefusesToReachAForgedNumber) {
  run(2, [](Job& job) {
    Part big = test::make_part(job, Owner::tonari, 5 << 20);
    Part alone = test::make_part_alone(job, owner(), 64);
    // The contents look like the records of a window.
    std::ranges::fill(big.window.local(), std::byte{0x6f});
    const std::uint32_t first = big.window.number();
    ASSERT_EQ(big.window.barrier(), Status::ok);
    // The number of a group's window, and the numbers of granules inside it.
    for (std::uint32_t number = first; number < first + 5; ++number) {
      for (const std::uint32_t rank : {0u, 1u}) {
        EXPECT_THROW((void)Window::reach(job, {number, JobRank{rank}, 0}), SetupError) << number;
      }
    }
    for (const std::uint32_t number : {0u, first + 1000, 0x7fffffffu, 0xffffffffu}) {
      EXPECT_THROW((void)Window::reach(job, {number, JobRank{0}, 0}), SetupError) << number;
    }
    const std::uint32_t own = alone.window.number();
    for (const std::uint32_t rank : {static_cast<std::uint32_t>(1 - job.rank().value()), 2u, 0xffffffffu}) {
      EXPECT_THROW((void)Window::reach(job, {own, JobRank{rank}, 0}), SetupError) << rank;
    }
    ASSERT_EQ(big.window.barrier(), Status::ok);
  });
}

TEST_P(Protection, TellsADeathOnceToARankThatWaitsForANotification) {
  constexpr int victim = 1;
  std::atomic<int> come{0};
  const auto body = [&come](Job& job) {
    Part part = test::make_part(job, owner(), 100);
    Window& window = part.window;
    ASSERT_EQ(window.barrier(), Status::ok);
    test::let_die(job, victim, come);
    while (job.alive(JobRank{victim})) std::this_thread::yield();
    if (job.rank() == 0) {
      EXPECT_EQ(window.wait_notified(0, 1), Status::peer_gone);  // the rank that might have notified died before
      EXPECT_EQ(window.push_notified(window.at(JobRank{2}), bytes_of(1), 1), Status::ok);
      EXPECT_EQ(window.wait_notified(0, 1), Status::ok);
    } else {
      while (window.notified(1) == 0) std::this_thread::yield();
      EXPECT_EQ(window.push_notified(window.at(JobRank{0}), bytes_of(1), 0), Status::ok);
    }
    EXPECT_EQ(window.barrier(), Status::peer_gone);
  };
  EXPECT_THROW(test::as_jobs(3, body, std::get<0>(GetParam()).settings), Killed);
}

}  // namespace
}  // namespace tonari
