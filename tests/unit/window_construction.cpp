#include "../support/windows.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

// Tests constructors of windows that one rank or all ranks call with wrong arguments, or that a dead rank cannot join.
namespace tonari {
namespace {

using test::bytes_of;
using test::Killed;
using test::Part;

class Construction : public test::OnEveryWindow {};
INSTANTIATE_TEST_SUITE_P(Each, Construction, test::windows_of(test::window_variants()), test::name_of_window);

constexpr std::uint64_t end_of_numbers = std::numeric_limits<std::uint64_t>::max();

/// A wrong argument.
struct Mistake {
  std::string name;
  std::function<void(WindowOptions&, std::size_t& bytes)> make;
};
const std::array mistakes{
    Mistake{"rights of a rank outside",
            [](WindowOptions& options, std::size_t&) {
              options.rights_of = {{JobRank{3}, Rights::all}};
            }},
    Mistake{"rights of a negative rank",
            [](WindowOptions& options, std::size_t&) {
              options.rights_of = {{JobRank{-1}, Rights::all}};
            }},
    Mistake{"rights twice",
            [](WindowOptions& options, std::size_t&) {
              options.rights_of = {{JobRank{0}, Rights::all}, {JobRank{1}, Rights::read}, {JobRank{0}, Rights::all}};
            }},
    Mistake{"too large", [](WindowOptions&, std::size_t& bytes) { bytes = end_of_numbers; }},
    Mistake{"larger than any machine", [](WindowOptions&, std::size_t& bytes) { bytes = std::size_t{1} << 46; }},
    Mistake{"too many locks", [](WindowOptions& options, std::size_t&) { options.locks = ~std::uint32_t{0}; }},
    Mistake{"too many notifications",
            [](WindowOptions& options, std::size_t&) { options.notifications = ~std::uint32_t{0}; }},
};

TEST_P(Construction, ThrowsAtAllRanksWhenOnePassesWrongArguments) {
  constexpr int ranks = 3;
  run(ranks, [](Job& job) {
    for (const Mistake& mistake : mistakes) {
      for (const int culprit : {0, 2, ranks}) {  // in the last turn all ranks are culprits
        WindowOptions options;
        std::size_t bytes = 100;
        if (culprit == job.rank() || culprit == ranks) mistake.make(options, bytes);
        EXPECT_THROW(Window(job, bytes, options), SetupError) << mistake.name << " by " << culprit;
        if (bytes == 100) {
          std::vector<std::byte> memory(bytes);
          EXPECT_THROW(Window(job, std::span(memory), options), SetupError) << mistake.name << " by " << culprit;
        } else {
          EXPECT_THROW(Window(job, bytes, options), SetupError) << mistake.name << " by " << culprit;
        }
        Part next = test::make_part(job, owner(), 100);
        ASSERT_EQ(next.window.barrier(), Status::ok);
        ASSERT_EQ(next.window.push(next.window.at(JobRank{(job.rank() + 1) % ranks}), bytes_of(job.rank())),
                  Status::ok);
        ASSERT_EQ(next.window.barrier(), Status::ok);
      }
    }
  });
}

TEST_P(Construction, ThrowsAtAllRanksWhenOnePassesANullPointer) {
  run(3, [](Job& job) {
    const std::span<std::byte> nothing(static_cast<std::byte*>(nullptr), job.rank() == 1 ? 100 : 0);
    EXPECT_THROW(Window(job, nothing), SetupError);
    Part next = test::make_part(job, owner(), 100);
    ASSERT_EQ(next.window.barrier(), Status::ok);
  });
}

TEST_P(Construction, ThrowsAtARankOutsideTheGroupAndLeavesTheMembersAlone) {
  run(3, [](Job& job) {
    const Group pair({JobRank{2}, JobRank{0}});
    if (job.rank() == 1) {
      EXPECT_THROW(Window(job, pair, 100), SetupError);
    } else {
      Part part = test::make_part(job, pair, owner(), 100);
      EXPECT_EQ(part.window.barrier(), Status::ok);
    }
    EXPECT_THROW(Window(job, Group({JobRank{0}, JobRank{1}, JobRank{2}, JobRank{3}}), 100),
                 SetupError);  // there is no rank 3
    EXPECT_THROW(Window(job, Group({JobRank{1000000}, JobRank{0}, JobRank{1}, JobRank{2}}), 100), SetupError);
    EXPECT_THROW(Window(job, Group(), 100), SetupError);
    Part next = test::make_part(job, owner(), 100);
    EXPECT_EQ(next.window.barrier(), Status::ok);
  });
}

TEST_P(Construction, ThrowsForWrongArgumentsOfAWindowMadeAlone) {
  run(2, [](Job& job) {
    for (const Mistake& mistake : mistakes) {
      WindowOptions options;
      std::size_t bytes = 100;
      mistake.make(options, bytes);
      EXPECT_THROW((void)Window::alone(job, bytes, options), SetupError) << mistake.name;
    }
    const std::span<std::byte> nothing(static_cast<std::byte*>(nullptr), 100);
    EXPECT_THROW((void)Window::alone(job, nothing), SetupError);
    Part alone = test::make_part_alone(job, owner(), 100);
    EXPECT_EQ(alone.window.push(alone.window.at(job.rank()), bytes_of(1)), Status::ok);
  });
}

TEST_P(Construction, EndsAConstructionThatADeadRankCannotJoin) {
  for (int victim = 0; victim < 3; ++victim) {
    const auto body = [victim](Job& job) {
      if (job.rank() == victim) throw Killed{};
      EXPECT_THROW((void)test::make_part(job, owner(), 100), SetupError);
      // The other ranks can make a window without the dead one.
      const Group others({JobRank{(victim + 1) % 3}, JobRank{(victim + 2) % 3}});
      Part part = test::make_part(job, others, owner(), 100);
      EXPECT_EQ(part.window.barrier(), Status::ok);
    };
    EXPECT_THROW(test::as_jobs(3, body, std::get<0>(GetParam()).settings), Killed);
  }
}

}  // namespace
}  // namespace tonari
