#include "../support/windows.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <type_traits>

// Tests which windows can exist: their owners, addresses and lifetimes. Ranks are threads. The operations on windows
// are tested in window_primitives.cpp, window_multicast.cpp and window_atomics.cpp.
namespace tonari {
namespace {

using test::between;
using test::bytes_of;
using test::Owner;
using test::Part;
using test::pattern;
using test::writable_bytes_of;

class WindowPlaces : public test::OnEveryWindow {};
INSTANTIATE_TEST_SUITE_P(Each, WindowPlaces, test::windows_of(test::variants_and_network()), test::name_of_window);

// Addresses.

TEST(GlobalAddress, NeverWraps) {
  constexpr std::uint64_t nowhere = GlobalAddress::nowhere;
  constexpr GlobalAddress at{7, JobRank{3}, 100};
  static_assert((at + 5).offset == 105 && (at - 5).offset == 95 && (at - 100).offset == 0);
  static_assert((at - 101).offset == nowhere && (at + nowhere).offset == nowhere);
  static_assert((at + (nowhere - 100)).offset == nowhere && (at + (nowhere - 101)).offset == nowhere - 1);
  static_assert((at - 101 + 50).offset == nowhere && (at - 101 - nowhere).offset == nowhere &&
                (at - 101 - 1).offset == nowhere);
  static_assert((at + 5).window == 7 && (at + 5).rank == 3);
  static_assert(at < at + 1 && at < GlobalAddress{7, JobRank{4}, 0} &&
                GlobalAddress{7, JobRank{9}, 9} < GlobalAddress{8, JobRank{0}, 0});
  EXPECT_EQ(at, (GlobalAddress{7, JobRank{3}, 100}));
}

TEST_P(WindowPlaces, TranslateAddressesBothWays) {
  run(3, 5000, [](Job& job, Window& window) {
    const std::span<std::byte> local = window.local();
    ASSERT_EQ(local.size(), 5000u);
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(window.bytes(JobRank{rank}), 5000u);
      std::byte* const start = window.direct(window.at(JobRank{rank}), 5000);
      if (rank == job.rank()) {
        ASSERT_EQ(start, local.data());
      }
      const bool mapped = owner() == Owner::tonari && !between_hosts();
      if (mapped || rank == job.rank()) {
        ASSERT_NE(start, nullptr);
      }
      if (start == nullptr) continue;
      for (const std::uint64_t offset : {0, 1, 4999}) {
        ASSERT_EQ(window.global(start + offset), window.at(JobRank{rank}, offset));
        ASSERT_EQ(window.direct(window.at(JobRank{rank}, offset)), start + offset);
      }
      ASSERT_NE(window.global(start + 5000), window.at(JobRank{rank}, 5000));
      ASSERT_EQ(window.direct(window.at(JobRank{rank}, 5000), 0), start + 5000);
    }
    for (const JobRank rank : {job.rank(), job.neighbour(1)}) {
      EXPECT_EQ(window.direct(window.at(rank, 5000)), nullptr);
      EXPECT_EQ(window.direct(window.at(rank, 1), 5000), nullptr);
      EXPECT_EQ(window.direct(window.at(rank) - 1), nullptr);
      EXPECT_EQ(window.direct(window.at(rank), ~std::uint64_t{0}), nullptr);
      EXPECT_TRUE(window.contains(window.at(rank, 4999)));
      EXPECT_TRUE(window.contains(window.at(rank, 5000), 0));
      EXPECT_FALSE(window.contains(window.at(rank, 5000)));
      EXPECT_FALSE(window.contains(window.at(rank, 1), 5000));
      EXPECT_FALSE(window.contains(window.at(rank) + GlobalAddress::nowhere, 1));
    }
    const int on_stack = 0;
    EXPECT_EQ(window.global(&on_stack), std::nullopt);
    EXPECT_EQ(window.global(nullptr), std::nullopt);
    EXPECT_EQ(window.bytes(JobRank{3}), 0u);
    EXPECT_EQ(window.bytes(JobRank{-1}), 0u);
    EXPECT_FALSE(window.contains(window.at(JobRank{3})));
    EXPECT_FALSE(window.contains(window.at(JobRank{-1})));
  });
}

TEST_P(WindowPlaces, AreSeenAsArraysThroughAView) {
  run(2, 103, [](Job& job, Window& window) {
    const View<std::uint32_t> words(window);
    const View<std::uint16_t> behind(window, 4);
    ASSERT_EQ(words.local().size(), 25u);
    ASSERT_EQ(behind.local().size(), 49u);
    ASSERT_TRUE(View<int>(window, 1000).local().empty());
    const int other = 1 - job.rank().value();
    ASSERT_EQ(words.at(JobRank{other}, 3), window.at(JobRank{other}, 12));
    ASSERT_EQ(words.push(JobRank{other}, 3, 0x12345678u), Status::ok);
    ASSERT_EQ(words.fetch_add(JobRank{other}, 3, 1u).value, 0x12345678u);
    ASSERT_EQ(window.barrier(), Status::ok);
    ASSERT_EQ(words.local()[3], 0x12345679u);
    ASSERT_EQ(behind.local()[4], 0x5679u);
    std::array<std::uint32_t, 2> two{};
    ASSERT_EQ(words.pull(two, JobRank{other}, 2), Status::ok);
    ASSERT_EQ(two[1], 0x12345679u);
    std::uint32_t one = 5;
    ASSERT_EQ(words.pull(one, JobRank{other}, 25), Status::bounds);
    ASSERT_EQ(words.push(JobRank{other}, std::uint64_t{1} << 62, one), Status::bounds);
    ASSERT_EQ(words.push(JobRank{other}, ~std::uint64_t{0}, one), Status::bounds);
  });
}

// Groups, sizes and lifetimes.

TEST_P(WindowPlaces, BelongToAnyGroup) {
  run(5, [](Job& job) {
    const std::array groups{Group({JobRank{3}, JobRank{1}}), Group({JobRank{4}, JobRank{0}, JobRank{2}}),
                            Group({JobRank{2}}), Group({JobRank{1}, JobRank{2}, JobRank{3}})};
    std::vector<Part> parts;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (!groups[i].position(job.rank())) continue;
      parts.push_back(test::make_part(job, groups[i], owner(), 1000 * (i + 1)));
    }
    for (Part& part : parts) {
      Window& window = part.window;
      const Group& group = window.group();
      const Rank self = *group.position(job.rank());
      const JobRank next = group.at((self + 1) % group.size());
      const auto sent = pattern(900, job.rank().index() * 7 + 1);
      ASSERT_EQ(window.push(window.at(next, 5), sent), Status::ok);
      ASSERT_EQ(window.barrier(), Status::ok);
      const JobRank before = group.at((self + group.size() - 1) % group.size());
      ASSERT_TRUE(std::ranges::equal(window.local().subspan(5, 900), pattern(900, before.index() * 7 + 1)));
      for (int rank = 0; rank < 5; ++rank) {
        const bool member = group.position(JobRank{rank}).has_value();
        ASSERT_EQ(window.bytes(JobRank{rank}), member ? part.window.local().size() : 0);
        if (member) continue;
        ASSERT_EQ(window.push(window.at(JobRank{rank}), sent), Status::bounds);
        ASSERT_EQ(window.flush(JobRank{rank}), Status::bounds);
        ASSERT_EQ(window.lock(JobRank{rank}), Status::bounds);
      }
      ASSERT_EQ(window.barrier(), Status::ok);
    }
  });
}

TEST_P(WindowPlaces, HavePartsOfAnySizeIncludingNone) {
  run(4, [](Job& job) {
    const std::array<std::size_t, 4> bytes{0, 1, 3'000'000, 10};
    const auto own_bytes = bytes[job.rank().index()];
    // Some ranks give memory of the program, others have tonari allocate it.
    const Owner mine = job.rank() % 2 == 0 ? owner() : Owner::tonari;
    Part part = test::make_part(job, mine, own_bytes);
    Window& window = part.window;
    ASSERT_EQ(window.local().size(), own_bytes);
    ASSERT_TRUE(std::ranges::all_of(window.local(), [](std::byte each) { return each == std::byte{0}; }));
    ASSERT_EQ(window.barrier(), Status::ok);
    for (int rank = 0; rank < 4; ++rank) {
      const std::uint64_t theirs = bytes[static_cast<std::size_t>(rank)];
      ASSERT_EQ(window.bytes(JobRank{rank}), theirs);
      const std::byte value{static_cast<unsigned char>(job.rank().value() + 1)};
      ASSERT_EQ(window.push(window.at(JobRank{rank}, theirs), std::span(&value, 1)), Status::bounds);
      ASSERT_EQ(window.push(window.at(JobRank{rank}, theirs), {}), Status::ok);
      if (theirs < 4) continue;
      ASSERT_EQ(window.push(window.at(JobRank{rank}, theirs - 1 - static_cast<std::uint64_t>(job.rank().value())),
                            std::span(&value, 1)),
                Status::ok);
    }
    ASSERT_EQ(window.lock(JobRank{0}), Status::ok);  // the lock of a part without bytes
    ASSERT_EQ(window.unlock(JobRank{0}), Status::ok);
    ASSERT_EQ(window.barrier(), Status::ok);
    if (own_bytes >= 4) {
      for (std::size_t rank = 0; rank < 4; ++rank) {
        ASSERT_EQ(window.local()[own_bytes - 1 - rank], std::byte{static_cast<unsigned char>(rank + 1)});
      }
    }
    ASSERT_EQ(window.barrier(), Status::ok);
  });
}

TEST_P(WindowPlaces, MadeAloneCanBeReachedByAnAddress) {
  run(3, [](Job& job) {
    Communicator world(job);
    std::optional<Part> own;
    GlobalAddress address;
    if (job.rank() == 1) {
      own.emplace(test::make_part_alone(job, owner(), 10'000));
      address = own->window.at(JobRank{1}, 100);
    }
    ASSERT_EQ(world.broadcast(address, Rank{1}), Status::ok);
    if (job.rank() != 1) {
      Window there = Window::reach(job, address);
      ASSERT_EQ(there.number(), address.window);
      ASSERT_TRUE(there.local().empty());
      ASSERT_EQ(there.bytes(JobRank{1}), 10'000u);
      ASSERT_EQ(there.bytes(JobRank{0}), 0u);
      const auto sent = pattern(3000, job.rank().index() + 1);
      ASSERT_EQ(there.push(address + static_cast<std::uint64_t>(job.rank().value()) * 2000, sent), Status::ok);
      ASSERT_EQ(there.fetch_add(there.at(JobRank{1}, 8), 1u).status, Status::ok);
      ASSERT_EQ(there.push(there.at(JobRank{0}), sent), Status::bounds);
      ASSERT_EQ(there.lock(JobRank{1}), Status::ok);
      ASSERT_EQ(there.push_notified(there.at(JobRank{1}, 16), bytes_of(std::uint64_t{1}), 5), Status::ok);
      ASSERT_EQ(Window::reach(job, address).try_lock(JobRank{1}), Status::again);
      ASSERT_EQ(there.unlock(JobRank{1}), Status::ok);
      ASSERT_EQ(there.barrier(), Status::invalid);
      ASSERT_EQ(there.barrier_with_multicast(0, {}), Status::invalid);
      ASSERT_EQ(there.wait_notified(0, 0), Status::bounds);
      ASSERT_EQ(there.flush(), Status::ok);
      Window again = Window::reach(job, address);  // a rank may reach a window repeatedly
      ASSERT_EQ(again.fetch_add(again.at(JobRank{1}, 8), 1u).status, Status::ok);
    } else {
      ASSERT_EQ(own->window.wait_notified(5, 2), Status::ok);
      ASSERT_TRUE(std::ranges::equal(own->window.local().subspan(4100, 3000), pattern(3000, 3)));
      ASSERT_TRUE(std::ranges::equal(own->window.local().subspan(100, 2000),
                                     std::span<const std::byte>(pattern(3000, 1)).first(2000)));
    }
    ASSERT_EQ(world.barrier(), Status::ok);
    if (job.rank() == 1) {
      ASSERT_EQ(own->window.fetch_add(address - 92, 0u).value, 4u);
    }
  });
}

TEST_P(WindowPlaces, MadeAloneCannotBeReachedByTheirOwner) {
  run(1, [](Job& job) {
    Part own = test::make_part_alone(job, owner(), 100);
    EXPECT_THROW((void)Window::reach(job, own.window.at(JobRank{0})), SetupError);
    EXPECT_EQ(own.window.push(own.window.at(JobRank{0}), bytes_of(1)), Status::ok);  // the window still works
    EXPECT_EQ(own.window.local().size(), 100u);
  });
}

TEST_P(WindowPlaces, ComeAndGoInAnyOrder) {
  run(3, [](Job& job) {
    std::vector<Part> parts;
    std::vector<std::uint32_t> numbers;
    test::Random random(test::seed());  // all ranks use the same seed
    for (std::size_t turn = 0; turn < static_cast<std::size_t>(test::rounds(10)); ++turn) {
      if (parts.size() < 3 || test::chance(random, 50)) {
        parts.push_back(test::make_part(job, owner(), between(random, 0, 20'000)));
        ASSERT_EQ(std::ranges::count(numbers, parts.back().window.number()), 0);  // numbers are never reused
        numbers.push_back(parts.back().window.number());
        ASSERT_TRUE(
            std::ranges::all_of(parts.back().window.local(), [](std::byte each) { return each == std::byte{0}; }));
        std::ranges::fill(parts.back().window.local(), std::byte{0xff});
      } else {
        const std::size_t which = between(random, 0, parts.size() - 1);
        std::swap(parts[which], parts.back());
        parts.pop_back();
      }
      // Use any window that still exists.
      Window& window = parts[between(random, 0, parts.size() - 1)].window;
      ASSERT_EQ(window.barrier(), Status::ok);
    }
  });
}

TEST_P(WindowPlaces, WorkAfterTheyAreMoved) {
  run(2, [](Job& job) {
    Part first = test::make_part(job, owner(), 100);
    Part second = test::make_part(job, owner(), 200);
    Window moved = std::move(first.window);
    ASSERT_EQ(moved.push(moved.at(job.neighbour(1), 3), bytes_of(7)), Status::ok);
    ASSERT_EQ(moved.barrier(), Status::ok);
    second.window = std::move(moved);  // this frees the second window
    ASSERT_EQ(second.window.bytes(JobRank{0}), 100u);
    ASSERT_EQ(second.window.barrier(), Status::ok);
    int got = 0;
    ASSERT_EQ(second.window.pull(writable_bytes_of(got), second.window.at(job.rank(), 3)), Status::ok);
    ASSERT_EQ(got, 7);
    ASSERT_EQ(second.window.barrier(), Status::ok);
  });
}

}  // namespace
}  // namespace tonari
