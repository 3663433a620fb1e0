#include "../support/window_model.hpp"
#include "../support/windows.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

// Tests of multicasts: to chosen targets, to all other ranks, and in a barrier. Multicasts between hosts are also
// tested in window_hosts.cpp.
namespace tonari {
namespace {

using test::Part;
using test::pattern;
using Model = test::WindowModel;

class WindowMulticasts : public test::OnEveryWindow {};
INSTANTIATE_TEST_SUITE_P(Each, WindowMulticasts, test::windows_of(test::variants_and_network()), test::name_of_window);

TEST_P(WindowMulticasts, GoToEveryTargetThatTakesIt) {
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

TEST_P(WindowMulticasts, GoToTheSameOffsetOfAllOthers) {
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

TEST_P(WindowMulticasts, WriteRegionsToEveryTargetThatTakesThem) {
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

TEST_P(WindowMulticasts, ExchangeTheDataOfEachRankInABarrier) {
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

TEST_P(WindowMulticasts, CompleteABarrierThoughTheDataOfOneRankDoNotFit) {
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

}  // namespace
}  // namespace tonari
