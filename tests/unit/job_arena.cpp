#include "job/arena.hpp"

#include "base/error.hpp"
#include "job/memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace tonari::job {
namespace {

Settings small() {
  Settings settings;
  settings.ring_slots = 64;
  return settings;
}

FileDescriptor same(const FileDescriptor& memory) {
  return FileDescriptor{::fcntl(memory.number(), F_DUPFD_CLOEXEC, 0)};
}

std::string refusal_of(int ranks, const Settings& settings) {
  try {
    (void)Arena::create(ranks, settings);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "made";
}

TEST(Memory, IsPrintedInTheUnitThatFits) {
  EXPECT_EQ(memory_text(0), "0 bytes");
  EXPECT_EQ(memory_text(3 << 10), "3.0 KiB");
  EXPECT_EQ(memory_text(std::uint64_t{1} << 47), "128 TiB");
  EXPECT_EQ(memory_text(~std::uint64_t{0}), "16 EiB");
}

TEST(Arena, IsTheSameInAllMappings) {
  const Arena made = Arena::create(3, small());
  const Arena mapped{same(made.memory())};

  mapped.block(2).pid = 77;
  mapped.segment(1).back() = std::byte{5};

  EXPECT_EQ(mapped.ranks(), 3);
  EXPECT_EQ(mapped.header().ring_slots, 64);
  EXPECT_EQ(made.block(2).pid, 77);
  EXPECT_EQ(made.segment(1).back(), std::byte{5});
}

TEST(Arena, SegmentsStartOnPagesAreDisjointAndAreZero) {
  const Arena arena = Arena::create(3, small());
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));

  for (int rank = 0; rank < 3; ++rank) {
    const auto segment = arena.segment(rank);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment.data()) % page, 0);
    EXPECT_GE(segment.size(), 64 * cache_line_bytes + segment_fixed_bytes);
    EXPECT_TRUE(std::ranges::all_of(segment, [](std::byte byte) { return byte == std::byte{0}; }));
    EXPECT_EQ(segment.data(), arena.segment(0).data() + static_cast<std::size_t>(rank) * segment.size());
  }
  EXPECT_GE(static_cast<void*>(arena.segment(0).data()), static_cast<void*>(&arena.block(2) + 1));
}

TEST(Arena, CannotBeShrunkUnderItsUsers) {
  const Arena arena = Arena::create(1, small());

  EXPECT_NE(::ftruncate(arena.memory().number(), 0), 0);
}

TEST(Arena, RefusesNumbersOfRanksThatNoHostSupports) {
  for (const int ranks : {0, -1, ranks_per_host_max + 1}) {
    EXPECT_NE(refusal_of(ranks, small()).find("must be 1 to 16384"), std::string::npos) << ranks;
  }
}

TEST(Arena, NamesTheRemedyWhenMemoryDoesNotSuffice) {
  Settings settings;
  settings.ring_slots = 1ULL << 40;

  EXPECT_NE(refusal_of(2, settings).find("use fewer ranks or a smaller TONARI_RING_SLOTS"), std::string::npos);
}

TEST(Arena, RefusesAFileThatIsNoArena) {
  FileDescriptor unsealed{::memfd_create("not-an-arena", MFD_CLOEXEC)};
  ASSERT_EQ(::ftruncate(unsealed.number(), 1 << 20), 0);
  FileDescriptor empty{::memfd_create("not-an-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  ASSERT_EQ(::ftruncate(empty.number(), 1 << 20), 0);
  ASSERT_EQ(::fcntl(empty.number(), F_ADD_SEALS, F_SEAL_SHRINK), 0);

  EXPECT_THROW(Arena{std::move(unsealed)}, SetupError);
  EXPECT_THROW(Arena{std::move(empty)}, SetupError);
}

TEST(Arena, RefusesAnotherVersion) {
  const Arena made = Arena::create(1, small());

  made.header().version = arena_version + 1;

  EXPECT_THROW(Arena{same(made.memory())}, SetupError);
}

TEST(Arena, PhasesOnlyGrow) {
  Arena arena = Arena::create(1, small());

  EXPECT_EQ(arena.advance(0, Phase::running), Phase::absent);
  EXPECT_EQ(arena.advance(0, Phase::joined), Phase::running);

  EXPECT_EQ(arena.block(0).phase, Phase::running);
}

TEST(Arena, RecordsADeathOnceAndRingsEveryDoorbell) {
  Arena arena = Arena::create(2, small());
  const auto doorbell = arena.block(0).doorbell.load();
  const auto service_doorbell = arena.block(0).service_doorbell.load();

  arena.mark_dead(1, 9, 0);
  arena.mark_dead(1, 0, 3);

  EXPECT_EQ(arena.header().deaths, 1);
  EXPECT_EQ(arena.header().left, 1);
  EXPECT_EQ(arena.block(1).phase, Phase::dead);
  EXPECT_EQ(arena.block(1).death_signal, 9);
  EXPECT_EQ(arena.block(1).death_status, 0);
  EXPECT_NE(arena.block(0).doorbell, doorbell);
  EXPECT_NE(arena.block(0).service_doorbell, service_doorbell);
}

TEST(Arena, CountsEachRankThatLeavesOrDiesOnce) {
  Arena arena = Arena::create(3, small());

  arena.mark_leaving(0);
  arena.mark_leaving(0);
  arena.mark_dead(0, 9, 0);  // marked dead while it leaves
  arena.mark_leaving(1);
  EXPECT_FALSE(arena.all_leave());
  arena.mark_dead(2, 9, 0);

  EXPECT_EQ(arena.header().left, 3);
  EXPECT_TRUE(arena.all_leave());
}

TEST(Arena, NoticesARankThatDiedBeforeItWasCounted) {
  Arena arena = Arena::create(2, small());

  arena.advance(0, Phase::leaving);  // the first half of mark_leaving
  arena.mark_leaving(1);

  EXPECT_TRUE(arena.all_leave());
}

TEST(Arena, ARankThatHasLeftCannotDie) {
  Arena arena = Arena::create(2, small());
  arena.mark_leaving(0);
  arena.advance(0, Phase::left);

  arena.mark_dead(0, 11, 0);

  EXPECT_EQ(arena.block(0).phase, Phase::left);
  EXPECT_EQ(arena.header().deaths, 0);
}

TEST(Arena, NamesEveryPhaseAndWait) {
  EXPECT_EQ(to_string(Phase::absent), "absent");
  EXPECT_EQ(to_string(Phase::dead), "dead");
  EXPECT_EQ(to_string(Wait::nothing), "nothing");
  EXPECT_EQ(to_string(Wait::leave), "leave");
  EXPECT_EQ(to_string(static_cast<Wait>(99)), "unknown");
}

}  // namespace
}  // namespace tonari::job
