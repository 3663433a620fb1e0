#include "../support/windows.hpp"

#include "job/arena.hpp"

#include <tonari/queue.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

// Tests the short accesses that programs make without a call into the library.
namespace tonari {
namespace {

using detail::Part;
using detail::PartTable;
using test::pattern;
using window::PartState;

constexpr std::uint32_t number = 7;

/// A table with one part of 64 bytes, of rank 1, which may be read and written.
struct Table {
  std::array<std::byte, 64> memory{};
  std::atomic<PartState> state{PartState::present};
  std::atomic<job::Phase> phase{job::Phase::running};
  std::array<Part, 2> parts{};
  PartTable table{parts.data(), parts.size(), number};

  Table() {
    parts[1] = {.mapped = memory.data(),
                .bytes = memory.size(),
                .state = &state,
                .phase = &phase,
                .rights = Rights::read | Rights::write};
  }
  [[nodiscard]] bool has(GlobalAddress address, std::uint64_t bytes, Rights needed = Rights::read) const {
    return table.find_mapped(address, bytes, needed) != nullptr;
  }
};

GlobalAddress at(std::uint64_t offset, int rank = 1) { return {number, JobRank{rank}, offset}; }

TEST(PartTable, HasThePartsThatAreMapped) {
  const Table table;

  EXPECT_EQ(table.table.find_mapped(at(8), 8, Rights::write), &table.parts[1]);
  EXPECT_EQ(table.parts[1].at(8), table.memory.data() + 8);
  EXPECT_FALSE(table.has(at(0, 0), 8)) << "it is not mapped";
}

TEST(PartTable, HasNothingOutsideItsParts) {
  const Table table;
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

  EXPECT_TRUE(table.has(at(0), 64));
  EXPECT_TRUE(table.has(at(64), 0));
  EXPECT_FALSE(table.has(at(0), 65));
  EXPECT_FALSE(table.has(at(57), 8));
  EXPECT_FALSE(table.has(at(65), 0));
  EXPECT_FALSE(table.has(at(most), 8));
  EXPECT_FALSE(table.has(at(8), most)) << "the sum wraps around";
  EXPECT_FALSE(table.has(at(0, 2), 8));
  EXPECT_FALSE(table.has(at(0, -1), 8));
  EXPECT_FALSE(table.has({number + 1, JobRank{1}, 0}, 8));
  EXPECT_FALSE(table.has({0, JobRank{1}, 0}, 8));
}

TEST(PartTable, HasOnlyWhatIsPermitted) {
  const Table table;

  EXPECT_TRUE(table.has(at(0), 8, Rights::read | Rights::write));
  EXPECT_FALSE(table.has(at(0), 8, Rights::atomic));
  EXPECT_FALSE(table.has(at(0), 8, Rights::all));
}

TEST(PartTable, HasNoPartThatWasFreedOrWhoseRankDied) {
  Table freed;
  freed.state = PartState::freed;
  Table dead;
  dead.phase = job::Phase::dead;

  EXPECT_FALSE(freed.has(at(0), 8));
  EXPECT_FALSE(dead.has(at(0), 8));
}

TEST(PartTable, HasNothingBeforeItIsFilled) {
  EXPECT_EQ(PartTable{}.find_mapped({0, JobRank{0}, 0}, 0, Rights::none), nullptr);
}

class ShortAccesses : public test::OnEveryWindow {};
INSTANTIATE_TEST_SUITE_P(Each, ShortAccesses, test::windows_of(test::window_variants()), test::name_of_window);

/// Makes an access by a queue, in the library, and returns its status.
Status by_queue(Window& window, Descriptor descriptor) {
  Queue queue(window);
  if (const Status posted = queue.post(descriptor); posted != Status::ok) return posted;
  (void)queue.wait_all();
  return descriptor.status;
}

TEST_P(ShortAccesses, ReturnTheSameStatusesAsTheLibrary) {
  run(2, 4096, [](Job& job, Window& window) {
    if (job.rank() == 0) {
      std::array<std::byte, 8> word{};
      const std::span<std::byte> nothing(static_cast<std::byte*>(nullptr), 8);
      for (const std::uint64_t offset : {0UL, 4088UL, 4089UL, 4096UL, 4097UL, GlobalAddress::nowhere}) {
        for (const int rank : {-1, 0, 1, 2}) {
          for (const std::span<std::byte> local : {std::span<std::byte>(word), std::span(word).first(0), nothing}) {
            const GlobalAddress there{window.number(), JobRank{rank}, offset};
            SCOPED_TRACE(testing::Message() << local.size() << " bytes at " << rank << '.' << offset);
            EXPECT_EQ(window.push(there, local), by_queue(window, Descriptor::push(there, local)));
            EXPECT_EQ(window.pull(local, there), by_queue(window, Descriptor::pull(local, there)));
          }
        }
      }
    }
  });
}

// Shorter copies are inline, and longer ones are the library's.
TEST_P(ShortAccesses, AndLongerOnesCopyEveryByte) {
  constexpr std::size_t limit = detail::copied_together_bytes_min;
  run(2, limit + 8, [](Job& job, Window& window) {
    if (job.rank() == 0) {
      for (const std::size_t bytes : {limit - 1, limit, limit + 1}) {
        const auto sent = pattern(bytes, bytes);
        std::vector<std::byte> back(bytes);
        ASSERT_EQ(window.push(window.at(JobRank{1}, 3), sent), Status::ok);
        ASSERT_EQ(window.pull(back, window.at(JobRank{1}, 3)), Status::ok);
        EXPECT_EQ(back, sent);
      }
    }
  });
}

}  // namespace
}  // namespace tonari
