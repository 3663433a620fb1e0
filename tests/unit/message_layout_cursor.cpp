#include "../support/layouts.hpp"
#include "../support/random.hpp"
#include "fabric/bulk.hpp"
#include "message/layout_cursor.hpp"
#include "message/layout_transfer.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

namespace tonari {
namespace {

using message::Layout;
using message::LayoutCursor;
using test::Bytes;
using test::LayoutMaker;
using test::LayoutMemory;
using test::ModelledLayout;

constexpr std::size_t small_bytes_max = 3000;

// Calls `body(random, maker)` with many random numbers.
template <class Body>
void many_times(int times, Body&& body) {
  test::Random random(test::seed());
  LayoutMaker maker(random, small_bytes_max);
  for (int i = 0; i < test::rounds(times); ++i) {
    body(random, maker);
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "layout " << i << " of seed " << test::seed();
  }
}

unsigned levels(test::Random& random) { return static_cast<unsigned>(test::between(random, 0, 5)); }

struct ByteRun {
  std::ptrdiff_t offset;
  std::size_t bytes;
  bool operator==(const ByteRun&) const = default;
};

// The longest runs.
std::vector<ByteRun> runs_of(std::span<const std::ptrdiff_t> bytes) {
  std::vector<ByteRun> runs;
  for (const std::ptrdiff_t byte : bytes) {
    if (!runs.empty() && runs.back().offset + static_cast<std::ptrdiff_t>(runs.back().bytes) == byte) {
      ++runs.back().bytes;
    } else {
      runs.push_back({byte, 1});
    }
  }
  return runs;
}

TEST(LayoutMakers, DescribeTheBytesOfTheModel) {
  many_times(2000, [](test::Random& random, LayoutMaker& maker) {
    const ModelledLayout made = maker.make(levels(random), true);

    ASSERT_EQ(made.layout.size(), made.bytes.size());
    ASSERT_EQ(made.layout.true_lower(), made.lower());
    ASSERT_EQ(made.layout.true_upper(), made.upper());
    const std::vector<ByteRun> runs = runs_of(made.bytes);
    ASSERT_EQ(made.layout.is_dense(), runs.size() <= 1);
    ASSERT_GE(made.layout.runs(), runs.size());
    ASSERT_LE(made.layout.runs(), made.bytes.size());
    ASSERT_EQ(made.layout.runs() <= 1, runs.size() <= 1);
  });
}

TEST(LayoutCursors, PackAnyPartInAnyOrder) {
  many_times(2000, [](test::Random& random, LayoutMaker& maker) {
    const ModelledLayout element = maker.make(levels(random), true);
    const std::ptrdiff_t extent = test::chance(random, 20) ? 3 : maker.distance(element);
    LayoutMemory from(element, test::between(random, 0, 4), extent);
    const std::vector<std::byte> data = from.data();
    LayoutCursor cursor = from.cursor();
    ASSERT_EQ(cursor.bytes(), data.size());

    std::vector<std::byte> packed(data.size());
    cursor.pack(0, packed.data(), packed.size());

    ASSERT_TRUE(packed == data);
    for (int window = 0; window < 10 && !data.empty(); ++window) {
      const std::size_t first = test::between(random, 0, data.size());
      const std::size_t bytes = test::between(random, 0, data.size() - first);
      std::vector<std::byte> part(bytes + 1, std::byte{99});
      cursor.pack(first, part.data(), bytes);
      ASSERT_TRUE(std::equal(part.begin(), part.end() - 1, data.begin() + static_cast<std::ptrdiff_t>(first)));
      ASSERT_EQ(part.back(), std::byte{99});
    }
  });
}

TEST(LayoutCursors, UnpackPartsAndTouchNoOtherByte) {
  many_times(2000, [](test::Random& random, LayoutMaker& maker) {
    const ModelledLayout element = maker.make(levels(random), false);
    LayoutMemory to(element, test::between(random, 0, 4), maker.distance(element));
    LayoutMemory expected = to;
    const auto data = test::pattern(to.bytes(), random());
    LayoutCursor cursor = to.cursor();
    for (std::size_t done = 0; done < data.size();) {  // all, in parts
      const std::size_t bytes = test::between(random, 0, data.size() - done);
      cursor.unpack(done, data.data() + done, bytes);
      done += bytes;
    }
    expected.set(0, data);
    ASSERT_TRUE(to.memory() == expected.memory());

    for (int window = 0; window < 5; ++window) {
      const std::size_t first = test::between(random, 0, data.size());
      const auto part = test::pattern(test::between(random, 0, data.size() - first), random());
      cursor.unpack(first, part.data(), part.size());
      expected.set(first, part);
      ASSERT_TRUE(to.memory() == expected.memory());
    }
  });
}

TEST(LayoutCursors, VisitTheLongestRunsOfAnyPart) {
  many_times(2000, [](test::Random& random, LayoutMaker& maker) {
    const ModelledLayout element = maker.make(levels(random), true);
    const std::size_t count = test::between(random, 0, 4);
    const std::ptrdiff_t extent = maker.distance(element);
    const Bytes bytes = test::repeated(element.bytes, count, extent);
    LayoutCursor cursor(nullptr, element.layout, count, extent);  // offsets are addresses
    const std::size_t first = test::chance(random, 50) ? 0 : test::between(random, 0, bytes.size());
    const std::size_t part = test::between(random, 0, bytes.size() - first);
    std::vector<ByteRun> runs;

    cursor.for_each_run(first, part, [&](std::byte* run, std::size_t length) {
      runs.push_back({static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(run)), length});
    });

    ASSERT_TRUE(runs == runs_of(std::span(bytes).subspan(first, part)));
    ASSERT_EQ(cursor.dense().has_value(), runs_of(bytes).size() <= 1);
    if (cursor.dense() && !bytes.empty()) {
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(cursor.dense()->data()), static_cast<std::uintptr_t>(bytes.front()));
      ASSERT_EQ(cursor.dense()->size(), bytes.size());
    }
  });
}

TEST(LayoutCursors, CopyBetweenTwoLayouts) {
  many_times(2000, [](test::Random& random, LayoutMaker& maker) {
    const ModelledLayout one = maker.make(levels(random), true);
    const ModelledLayout other = maker.make(levels(random), false);
    LayoutMemory from(one, test::between(random, 0, 40), maker.distance(one));
    LayoutMemory to(other, test::between(random, 0, 40), maker.distance(other));
    LayoutMemory expected = to;
    LayoutCursor target = to.cursor();
    LayoutCursor source = from.cursor();

    message::copy(target, source);

    const std::vector<std::byte> data = from.data();
    expected.set(0, std::span(data).first(std::min(from.bytes(), to.bytes())));
    ASSERT_TRUE(to.memory() == expected.memory());
  });
}

// 2^levels elements, described by as many nested layouts. Neither the description nor a walk may grow with the
// elements.
TEST(LayoutMakers, DoNotGrowWithTheDataOfNestedLayouts) {
  Layout layout = Layout::bytes(1);
  constexpr int nested = 40;
  for (int i = 0; i < nested; ++i) {
    const std::ptrdiff_t extent = layout.true_upper() + 3;
    const Layout last = Layout::bytes(1);
    layout = Layout::joined(std::array{Layout::Member{0, 1, &layout, 0}, Layout::Member{extent, 1, &layout, 0},
                                       Layout::Member{2 * extent + i % 3, 1, &last, 0}});
  }
  ASSERT_EQ(layout.size(), (std::size_t{1} << (nested + 1)) - 1);
  EXPECT_LE(layout.depth(), Layout::depth_max);
  LayoutCursor cursor(nullptr, layout, 1, 0);
  const auto address_of = [&](std::size_t byte) {
    std::uintptr_t found = 0;
    cursor.for_each_run(byte, 1, [&](std::byte* run, std::size_t) { found = reinterpret_cast<std::uintptr_t>(run); });
    return found;
  };
  EXPECT_EQ(address_of(0), 0U);
  EXPECT_EQ(address_of(layout.size() - 1), static_cast<std::uintptr_t>(layout.true_upper() - 1));
  EXPECT_EQ(address_of(layout.size() / 2),
            static_cast<std::uintptr_t>((layout.true_upper() - 1 - (nested - 1) % 3) / 2));
}

TEST(LayoutMakers, MayBeNestedThousandsOfTimes) {
  const Layout byte = Layout::bytes(1);
  const Layout pair = Layout::contiguous(2, byte, 3);
  Layout layout = byte;
  std::vector<std::byte> expected{std::byte{0}};
  constexpr int nested = 3000;
  for (int i = 1; i <= nested; ++i) {  // every second one has a part that is no run
    const Layout& more = i % 2 == 0 ? pair : byte;
    layout =
        Layout::joined(std::array{Layout::Member{0, 1, &layout, 0}, Layout::Member{7 * i + i % 5 / 4, 1, &more, 0}});
  }
  std::vector<std::byte> memory(static_cast<std::size_t>(layout.true_upper()));
  ASSERT_EQ(layout.size(), std::size_t{nested} + nested / 2 + 1);
  EXPECT_LE(layout.depth(), Layout::depth_max);
  std::vector<std::byte> ones(layout.size(), std::byte{1});
  LayoutCursor cursor(memory.data(), layout, 1, 0);

  for (std::size_t i = 0; i < ones.size(); i += 100) {
    cursor.unpack(i, ones.data(), std::min<std::size_t>(100, ones.size() - i));
  }

  std::vector<std::byte> wanted(memory.size());
  wanted[0] = std::byte{1};
  for (int i = 1; i <= nested; ++i) {
    const auto at = static_cast<std::size_t>(7 * i + i % 5 / 4);
    wanted[at] = std::byte{1};
    if (i % 2 == 0) wanted[at + 3] = std::byte{1};
  }
  EXPECT_TRUE(memory == wanted);
}

TEST(LayoutMakers, RecogniseEqualLayouts) {
  const Layout eight = Layout::bytes(8);
  // A row of a matrix, all columns of a matrix, and rows that are listed: one run.
  EXPECT_TRUE(Layout::strided(10, 4, 32, eight, 8).is_dense());
  EXPECT_TRUE(Layout::contiguous(3, Layout::contiguous(5, eight, 8), 40).is_dense());
  const std::array touching{Layout::Piece{16, 2}, Layout::Piece{32, 0}, Layout::Piece{32, 1}};
  EXPECT_TRUE(Layout::listed(touching, eight, 8).is_dense());
  EXPECT_TRUE(Layout::blocks({16, 32, 48}, 2, eight, 8).is_dense());
  EXPECT_EQ(Layout::blocks({0, 32, 16}, 2, eight, 8).runs(), 3U);
  EXPECT_EQ(Layout::blocks({0, 16, 64}, 2, eight, 8).runs(), 2U);
  EXPECT_EQ(Layout::blocks({-64, 0, 64}, 1, eight, 8).true_lower(), -64);
  // Two planes of a face are one vector, and a list of evenly spaced pieces is one, too.
  const Layout column = Layout::strided(100, 1, 64, eight, 8);
  EXPECT_EQ(Layout::contiguous(2, column, 6400).runs(), 200U);
  EXPECT_FALSE(Layout::contiguous(2, column, -6400).is_dense());
  // Bytes in another order are no run.
  const std::array swapped{Layout::Piece{8, 1}, Layout::Piece{0, 1}};
  EXPECT_FALSE(Layout::listed(swapped, eight, 8).is_dense());
}

TEST(LayoutMakers, RefuseLengthsThatOverflow) {
  constexpr std::ptrdiff_t most = std::numeric_limits<std::ptrdiff_t>::max();
  const Layout eight = Layout::bytes(8);
  const Layout one = Layout::bytes(1);
  const auto refused = [](auto&& make) { EXPECT_THROW((void)make(), std::length_error); };
  refused([&] { return Layout::bytes(std::size_t{1} << 63); });
  refused([&] { return Layout::contiguous(std::size_t{1} << 61, eight, 0); });
  refused([&] { return Layout::contiguous(3, eight, most); });
  refused([&] { return Layout::contiguous(std::size_t{1} << 63, one, -1); });
  refused([&] { return Layout::strided(2, 1, most, eight, 8); });
  refused([&] { return Layout::listed(std::array{Layout::Piece{most - 3, 1}}, eight, 8); });
  refused([&] {
    return Layout::listed(std::array{Layout::Piece{0, 1}, Layout::Piece{0, std::size_t{1} << 60}}, eight, 8);
  });
  refused([&] { return Layout::listed(std::array{Layout::Piece{-most, 1}, Layout::Piece{most - 8, 1}}, eight, 8); });
  refused([&] { return Layout::blocks({most - 3}, 1, eight, 8); });
  refused([&] { return Layout::blocks({0, 64, most - 3}, 1, eight, 8); });
  refused([&] { return Layout::blocks({-most, 0, most - 8}, 1, eight, 8); });
  refused([&] { return Layout::blocks({0, 0}, std::size_t{1} << 60, eight, 8); });
  refused([&] { return Layout::joined(std::array{Layout::Member{most, 1, &eight, 8}}); });
  refused([&] { return LayoutCursor(nullptr, eight, std::size_t{1} << 60, 0); });
  EXPECT_EQ(Layout::contiguous(std::size_t{1} << 59, eight, 0).size() >> 59, 8U);
}

// Runs of 1 to `longest` bytes, in any order.
ModelledLayout random_runs(test::Random& random, std::size_t count, std::size_t longest) {
  std::vector<Layout::Piece> pieces;
  std::ptrdiff_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    pieces.push_back(
        {at + static_cast<std::ptrdiff_t>(test::between(random, 0, 100)), test::between(random, 1, longest)});
    at = pieces.back().offset + static_cast<std::ptrdiff_t>(pieces.back().count);
  }
  std::ranges::shuffle(pieces, random);
  ModelledLayout made{Layout::listed(pieces, Layout::bytes(1), 1), {}};
  for (const Layout::Piece& piece : pieces) test::append(made.bytes, test::repeated({0}, piece.count, 1, piece.offset));
  return made;
}

// Other ranks' memory is this process's, with and without the kernel.
TEST(LayoutTransfers, WriteAndReadAnyPart) {
  for (const auto& copy : {fabric::DirectCopy(::getpid(), false), fabric::DirectCopy::here()}) {
    many_times(60, [&](test::Random& random, LayoutMaker& maker) {
      const bool long_runs = test::chance(random, 50);
      const ModelledLayout element =
          long_runs ? random_runs(random, test::between(random, 1, 300), 6000) : maker.make(levels(random), false);
      const std::size_t count = long_runs ? 1 : test::between(random, 1, 40);
      LayoutMemory memory(element, count, maker.distance(element));
      LayoutMemory expected = memory;
      LayoutCursor cursor = memory.cursor();
      const std::size_t first = test::chance(random, 50) ? 0 : test::between(random, 0, cursor.bytes());
      const std::size_t bytes = test::between(random, 0, cursor.bytes() - first);
      std::vector<std::byte> there(bytes + 1, std::byte{99});
      const auto address = reinterpret_cast<std::uint64_t>(there.data());

      ASSERT_EQ(message::write_scattered(cursor, copy, first, address, bytes), Status::ok);

      const std::vector<std::byte> data = memory.data();
      ASSERT_TRUE(std::equal(there.begin(), there.end() - 1, data.begin() + static_cast<std::ptrdiff_t>(first)));
      ASSERT_EQ(there.back(), std::byte{99});

      const auto sent = test::pattern(bytes, random());
      ASSERT_EQ(message::read_scattered(cursor, copy, first, reinterpret_cast<std::uint64_t>(sent.data()), bytes),
                Status::ok);
      expected.set(first, sent);
      ASSERT_TRUE(memory.memory() == expected.memory());
    });
  }
}

// Whole blocks are packed in two ways, which are both measured in the first blocks of some long messages.
TEST(LayoutTransfers, PackMessagesBlockByBlock) {
  constexpr std::size_t block_bytes = fabric::bulk_tail_bytes_max;
  many_times(200, [&](test::Random& random, LayoutMaker&) {
    const std::size_t run = test::between(random, 1, 5000);
    const std::size_t stride = run + test::between(random, 1, 100);
    const std::size_t runs = test::between(random, 1, 10 * block_bytes / run);
    std::vector<std::byte> memory = test::pattern(runs * stride, random());
    LayoutCursor cursor(memory.data(), runs, run, static_cast<std::ptrdiff_t>(stride));
    std::vector<std::byte> expected(cursor.bytes());
    for (std::size_t i = 0; i < runs; ++i) std::copy_n(&memory[i * stride], run, &expected[i * run]);
    std::vector<std::byte> block(block_bytes);
    // Some messages end early.
    const std::size_t sent = test::chance(random, 80) ? cursor.bytes() : test::between(random, 1, cursor.bytes());
    for (std::size_t done = 0; done < sent; done += block_bytes) {
      const std::size_t part = std::min(block_bytes, sent - done);
      message::pack_to_shared(cursor, done, block.data(), part);
      ASSERT_TRUE(std::equal(&block[0], &block[0] + part, &expected[done]))
          << run << " of " << stride << " at " << done;
    }
  });
}

TEST(LayoutTransfers, ReportLongRunsThatAreNotAccessible) {
  constexpr std::size_t page = 4096;
  constexpr std::size_t pages = 1000;
  void* const mapped = ::mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const memory = static_cast<std::byte*>(mapped);
  ASSERT_EQ(::mprotect(memory + 600 * page, page, PROT_NONE), 0);
  const fabric::DirectCopy copy(::getpid(), false);
  LayoutCursor cursor(memory, Layout::bytes(page / 2), pages, page);
  const auto sent = test::pattern(pages * page / 2, test::seed());
  std::vector<std::byte> there(sent.size());

  EXPECT_EQ(message::read_scattered(cursor, copy, 0, reinterpret_cast<std::uint64_t>(sent.data()), sent.size()),
            Status::bad_address);
  EXPECT_EQ(message::write_scattered(cursor, copy, 0, reinterpret_cast<std::uint64_t>(there.data()), sent.size()),
            Status::bad_address);

  const std::size_t before = 600 * page / 2;
  EXPECT_TRUE(std::equal(sent.begin(), sent.begin() + before, there.begin()));
  EXPECT_EQ(::munmap(mapped, pages * page), 0);
}

}  // namespace
}  // namespace tonari
