#include "pager/userfaultfd.hpp"

#include "../support/pager.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>

#include <optional>
#include <thread>

// Tests of the userfaultfd calls and of the results that the kernel returns for them.
namespace tonari {
namespace {

using pager::Answer;
using pager::block_bytes;
using pager::Buffer;
using pager::page_bytes;
using pager::PageSet;
using pager::Reach;
using pager::Userfaultfd;

constexpr std::size_t size = 8 * page_bytes;

pager::Fault wait_for_fault(Userfaultfd& faults) {
  pollfd wait{faults.number(), POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 10'000), 1);
  const auto batch = faults.read();
  EXPECT_EQ(batch.size(), 1U);
  return batch.empty() ? pager::Fault{} : batch[0];
}

struct PagerUserfaultfd : test::NeedsPaging {};

TEST_F(PagerUserfaultfd, ReportsThreadAddressAndKindOfAFault) {
  Userfaultfd faults;
  const test::RegionMemory memory(size);
  faults.watch(memory.start(), size);
  const auto page = test::pattern(page_bytes, 5);

  std::jthread reader([&] { EXPECT_EQ(memory.bytes()[page_bytes + 9], page[9]); });
  const pager::Fault read = wait_for_fault(faults);
  EXPECT_EQ(faults.copy(memory.start() + page_bytes, page.data(), page_bytes), Answer::ok);
  reader.join();
  std::jthread writer([&] { memory.bytes()[5 * page_bytes] = std::byte{1}; });
  const pager::Fault write = wait_for_fault(faults);
  EXPECT_EQ(faults.zero(memory.start() + 5 * page_bytes, page_bytes), Answer::ok);
  writer.join();

  EXPECT_EQ(read.address, memory.start() + page_bytes);
  EXPECT_FALSE(read.is_write);
  EXPECT_EQ(write.address, memory.start() + 5 * page_bytes);
  EXPECT_TRUE(write.is_write);
  EXPECT_NE(read.thread, write.thread);
  EXPECT_TRUE(faults.read().empty());
}

TEST_F(PagerUserfaultfd, ReportsPagesThatArePresentOrGone) {
  Userfaultfd faults;
  const test::RegionMemory memory(size);
  faults.watch(memory.start(), size);
  const auto pages = test::pattern(size, 5);
  ASSERT_EQ(faults.copy(memory.start() + 2 * page_bytes, pages.data() + 2 * page_bytes, page_bytes), Answer::ok);

  // The copy skips the page that is present and goes on behind it.
  EXPECT_EQ(faults.copy(memory.start(), pages.data(), size), Answer::there);
  EXPECT_TRUE(std::ranges::equal(memory.bytes(), pages));
  EXPECT_EQ(faults.zero(memory.start(), size), Answer::there);

  const test::RegionMemory unwatched(size);
  EXPECT_EQ(faults.copy(unwatched.start(), pages.data(), size), Answer::gone);
  ASSERT_EQ(::munmap(memory.bytes().data(), page_bytes), 0);
  EXPECT_EQ(faults.copy(memory.start(), pages.data(), page_bytes), Answer::gone);
  EXPECT_THROW(Userfaultfd{}.watch(memory.start() + page_bytes, page_bytes), SetupError)
      << "a region that another descriptor watches was accepted";
  ASSERT_NE(::mmap(memory.bytes().data(), page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
}

TEST_F(PagerUserfaultfd, PoisonsOnlyAbsentPages) {
  Userfaultfd faults;
  const test::RegionMemory memory(size);
  faults.watch(memory.start(), size);
  const auto page = test::pattern(page_bytes, 5);
  ASSERT_EQ(faults.copy(memory.start() + 2 * page_bytes, page.data(), page_bytes), Answer::ok);

  if (faults.poison(memory.start(), size) == Answer::refused) GTEST_SKIP() << "UFFDIO_POISON needs Linux 6.6";
  EXPECT_EQ(faults.poison(memory.start(), size), Answer::there);

  for (std::size_t i = 0; i < 8; ++i) {
    const bool is_there = ::madvise(memory.bytes().data() + i * page_bytes, page_bytes, MADV_POPULATE_READ) == 0;
    EXPECT_TRUE(i == 2 ? is_there : !is_there && errno == EHWPOISON) << i;
  }
  EXPECT_TRUE(std::ranges::equal(memory.bytes().subspan(2 * page_bytes, page_bytes), page));
}

TEST_F(PagerUserfaultfd, UnwatchingWakesWaitingThreads) {
  Userfaultfd faults;
  const test::RegionMemory memory(size);
  faults.watch(memory.start(), size);

  std::jthread reader([&] { EXPECT_EQ(memory.bytes()[0], std::byte{0}); });
  (void)wait_for_fault(faults);

  faults.unwatch(memory.start(), size);
}

TEST_F(PagerUserfaultfd, CanBeConfinedToFaultsOfUserMode) {
  const Userfaultfd faults({.touch = Userfaultfd::Touch::waits, .widest = Reach::user_mode});

  EXPECT_EQ(faults.reach(), Reach::user_mode);
}

class PagerSpace : public test::NeedsPaging {
 protected:
  void SetUp() override {
    NeedsPaging::SetUp();
    if (IsSkipped()) return;
    space_.emplace(2);
    space_->prepare(memory_.start(), block_bytes);
    space_->faults().watch(memory_.start(), block_bytes);
  }
  // Returns how many KiB of the region are huge pages, according to smaps.
  [[nodiscard]] std::size_t huge_kib() const {
    std::FILE* const file = std::fopen("/proc/self/smaps", "r");
    std::array<char, 512> line{};
    std::size_t result = 0;
    bool ours = false;
    while (std::fgets(line.data(), line.size(), file) != nullptr) {
      unsigned long from = 0;
      unsigned long to = 0;
      std::size_t kib = 0;
      if (std::sscanf(line.data(), "%lx-%lx", &from, &to) == 2) {
        ours = from <= memory_.start() && memory_.start() < to;
      } else if (ours && std::sscanf(line.data(), "AnonHugePages: %zu", &kib) == 1) {
        result = kib;
      }
    }
    std::fclose(file);
    return result;
  }

  test::RegionMemory memory_{block_bytes};
  std::optional<pager::OwnSpace> space_;
  PageSet all_ = PageSet::of(0, pager::block_pages);
  std::array<pager::Checksum, pager::block_pages> sums_{};
};

TEST_F(PagerSpace, AHugePageStaysHugeWhenMovedInAndOut) {
  ASSERT_TRUE(space_->prefault(Buffer{0}));
  const auto bytes = test::pattern(block_bytes, 3);
  std::ranges::copy(bytes, space_->view(Buffer{0}));

  ASSERT_EQ(space_->move_in(memory_.start(), all_, Buffer{0}), all_);
  const std::size_t huge = huge_kib();
  EXPECT_TRUE(std::ranges::equal(memory_.bytes(), bytes));
  const PageSet taken = space_->take_out(memory_.start(), all_, Buffer{1}, sums_, pager::SharedPages::stay);

  EXPECT_TRUE(taken.is_whole());
  EXPECT_EQ(std::memcmp(space_->view(Buffer{1}), bytes.data(), block_bytes), 0);
  ASSERT_EQ(space_->move_in(memory_.start(), all_, Buffer{1}), all_);
  EXPECT_EQ(huge_kib(), huge) << "the number of huge pages changed; it is 2048 KiB if the machine has free huge pages";
}

TEST_F(PagerSpace, ScatteredPagesAreTakenOutAndHolesAreZero) {
  const auto bytes = test::pattern(block_bytes, 3);
  const PageSet some = PageSet::of(3, 1) | PageSet::of(100, 20) | PageSet::of(511, 1);
  for_each_run(some, pager::block_pages, [&](std::size_t first, std::size_t count) {
    ASSERT_EQ(space_->faults().copy(memory_.start() + first * page_bytes, bytes.data() + first * page_bytes,
                                    count * page_bytes),
              Answer::ok);
  });
  ASSERT_EQ(::madvise(memory_.bytes().data() + 105 * page_bytes, page_bytes, MADV_DONTNEED), 0);

  EXPECT_EQ(space_->take_out(memory_.start(), some, Buffer{0}, sums_, pager::SharedPages::stay), some);

  const std::byte* const out = space_->view(Buffer{0});
  for_each_run(some, 1, [&](std::size_t page, std::size_t /*one*/) {
    const std::vector<std::byte> zeros(page_bytes);
    const std::byte* const expected = page == 105 ? zeros.data() : bytes.data() + page * page_bytes;
    EXPECT_EQ(std::memcmp(out + page * page_bytes, expected, page_bytes), 0) << page;
    EXPECT_EQ(sums_[page], pager::checksum_of(expected)) << page;
  });
}

TEST_F(PagerSpace, ABufferCanBeFilledWithPagesAndZerosAndCopiedFrom) {
  ASSERT_TRUE(space_->prefault(Buffer{0}));
  const auto old = test::pattern(block_bytes, 3);
  std::ranges::copy(old, space_->view(Buffer{0}));
  const auto from = space_->scratch(pager::workers_max - 1);
  std::ranges::copy(test::pattern(block_bytes, 4), from.begin());
  const PageSet some = PageSet::of(0, 1) | PageSet::of(200, 30) | PageSet::of(511, 1);

  ASSERT_TRUE(space_->fill(Buffer{0}, from.data(), some, sums_));
  const auto into = space_->scratch(0);
  ASSERT_TRUE(space_->read(Buffer{0}, PageSet::of(0, pager::block_pages), 0, into.data()));

  const std::vector<std::byte> zeros(page_bytes);
  for (std::size_t page = 0; page < pager::block_pages; ++page) {
    const std::byte* const expected = some.has(page) ? from.data() + page * page_bytes : zeros.data();
    ASSERT_EQ(std::memcmp(into.data() + page * page_bytes, expected, page_bytes), 0) << page;
    if (!some.has(page)) continue;
    EXPECT_EQ(sums_[page], pager::checksum_of(expected)) << page;
  }
}

}  // namespace
}  // namespace tonari
