#include "fabric/ring.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>

namespace tonari::fabric {
namespace {

constexpr std::size_t slots = 64;
constexpr std::size_t bytes_of_ring = ring_control_bytes + slots * head_bytes;

struct FabricRing : testing::Test {
  FabricRing() { std::memset(bytes.get(), 0, bytes_of_ring); }

  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<void, Free> bytes{std::aligned_alloc(4096, (bytes_of_ring + 4095) / 4096 * 4096)};
  RingMemory& memory = *static_cast<RingMemory*>(bytes.get());
  RingWriter writer{memory, slots, 5};
  RingReader reader{memory, slots, [](int) { return true; }};
  std::uint32_t pushed = 0;
  std::uint32_t taken = 0;

  RingWriter::Pushed push() {
    Head head{};
    head.kind = HeadKind{1};
    head.tag = pushed;
    head.set(~std::uint64_t{pushed});
    const RingWriter::Pushed answer = writer.push(head);
    if (answer != RingWriter::Pushed::full) ++pushed;
    return answer;
  }
  std::size_t take(std::size_t heads_max) {
    return reader.poll(heads_max, [this](const Head& head) noexcept {
      EXPECT_EQ(head.tag, taken);
      EXPECT_EQ(head.as<std::uint64_t>(), ~std::uint64_t{taken});
      ++taken;
    });
  }
};

TEST_F(FabricRing, ZeroedMemoryIsAnEmptyRing) {
  EXPECT_EQ(take(16), 0U);
  EXPECT_TRUE(reader.fall_asleep());
}

TEST_F(FabricRing, RefusesWhenFullAndRecoversAfterAQuarterIsTaken) {
  for (std::size_t i = 0; i < slots; ++i) ASSERT_EQ(push(), RingWriter::Pushed::yes);
  EXPECT_EQ(push(), RingWriter::Pushed::full);

  EXPECT_EQ(take(slots / 4 - 1), slots / 4 - 1);
  EXPECT_EQ(push(), RingWriter::Pushed::full);

  EXPECT_EQ(take(1), 1U);
  for (std::size_t i = 0; i < slots / 4; ++i) ASSERT_EQ(push(), RingWriter::Pushed::yes);
  EXPECT_EQ(push(), RingWriter::Pushed::full);
}

TEST_F(FabricRing, TellsTheWritersThatAskedForRoomOnceThereIsSome) {
  while (push() != RingWriter::Pushed::full) continue;
  EXPECT_FALSE(writer.ask_for_room());
  EXPECT_EQ(take(slots / 4 - 1), slots / 4 - 1);
  EXPECT_FALSE(reader.room_made());

  EXPECT_EQ(take(1), 1U);

  EXPECT_TRUE(reader.room_made());
  EXPECT_TRUE(writer.ask_for_room());
  reader.forget_room_made();
  EXPECT_FALSE(reader.room_made());
}

TEST_F(FabricRing, KeepsOrderAndContentThroughManyLaps) {
  constexpr std::uint64_t seed = 11;
  std::mt19937_64 random(seed);
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  while (pushed < 200 * slots) {
    for (std::uint64_t more = random() % (2 * slots); more > 0; --more) {
      if (push() == RingWriter::Pushed::full) break;
    }
    ASSERT_LE(pushed - taken, slots);
    const std::uint32_t before = taken;
    const std::size_t most = random() % (2 * slots);
    const std::size_t heads = take(most);
    ASSERT_EQ(heads, taken - before);
    ASSERT_EQ(taken - before, std::min<std::size_t>(most, pushed - before));
    ASSERT_EQ(reader.position(), taken);
  }
}

TEST_F(FabricRing, OnlyTheFirstClaimAfterTheReaderSleepsWakesIt) {
  EXPECT_EQ(push(), RingWriter::Pushed::yes);
  EXPECT_FALSE(reader.fall_asleep());  // a head is in the ring, so the reader may not sleep
  reader.wake_up();
  EXPECT_EQ(push(), RingWriter::Pushed::yes);
  EXPECT_EQ(take(16), 2U);

  EXPECT_TRUE(reader.fall_asleep());

  EXPECT_EQ(push(), RingWriter::Pushed::yes_and_reader_sleeps);
  EXPECT_EQ(push(), RingWriter::Pushed::yes);
  reader.wake_up();
  EXPECT_EQ(push(), RingWriter::Pushed::yes);
  EXPECT_EQ(take(16), 3U);
}

TEST_F(FabricRing, ASleepThatNoClaimEndedLeavesNoTrace) {
  EXPECT_TRUE(reader.fall_asleep());
  reader.wake_up();

  EXPECT_EQ(push(), RingWriter::Pushed::yes);
  EXPECT_EQ(claimed_count(memory.tail.load()), 1U);
  EXPECT_EQ(last_claimer(memory.tail.load()), 5);
}

TEST_F(FabricRing, AReaderDoesNotSleepWhileAHeadWaitsBehindAGap) {
  memory.tail.store(std::uint64_t{1} << count_shift | 9 << 1);  // rank 9 claimed, and did not publish
  EXPECT_EQ(push(), RingWriter::Pushed::yes);
  pushed = 1;

  EXPECT_FALSE(reader.fall_asleep());
  EXPECT_EQ(take(16), 1U);  // the reader takes heads behind the gap without waiting
  EXPECT_EQ(reader.position(), 0U);
}

}  // namespace
}  // namespace tonari::fabric
