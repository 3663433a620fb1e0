#include "../support/pager.hpp"

#include "base/gate.hpp"
#include "pager/snapshot.hpp"

#include <tonari/status.hpp>

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstring>
#include <list>
#include <memory>
#include <thread>
#include <vector>

// Snapshots of a region, as forked children use them: a child has the pages that were present at its fork, and reads
// the others in its snapshot.
namespace tonari {
namespace {

using pager::page_bytes;
using pager::Snapshot;
using test::between;
using test::Paged;
using test::Random;
using Bytes = std::vector<std::byte>;

constexpr std::size_t mib = 1 << 20;

bool is_present(const std::byte* page) {
  unsigned char present = 0;
  return ::mincore(const_cast<std::byte*>(page), page_bytes, &present) == 0 && (present & 1) != 0;
}

/// The memory of a child: copies of the pages that were present, and a snapshot for the others.
class Child {
 public:
  /// Forks at a moment at which no other thread writes. Sources of kept pages are written to `kept`, if it is given.
  Child(Paged& paged, std::span<const std::byte> model, bool lets_look = true)
      : paged_(paged),
        expected_(model.begin(), model.end()),
        memory_(model.size()),
        present_(model.size() / page_bytes) {
    Gate& gate = paged.pager.leaving();
    gate.close();
    while (!gate.is_empty()) std::this_thread::yield();
    // The snapshot may outlive the child: an older one continues in it.
    snapshot_ = paged.pager.take_snapshot([kept = kept_, bytes = memory_.size(), lets_look] {
      auto source = std::make_unique<test::MemorySource>(bytes + pager::block_bytes, lets_look);
      *kept = source.get();
      return source;
    });
    while (!snapshot_->record_present()) std::this_thread::yield();
    for (std::size_t page = 0; page < present_.size(); ++page) {
      const std::byte* const from = paged.bytes().data() + page * page_bytes;
      if (!is_present(from)) continue;
      present_[page] = true;
      std::memcpy(memory_.data() + page * page_bytes, from, page_bytes);
    }
    gate.open();
  }

  /// Touches a page for the first time or again, and compares it with the model.
  [[nodiscard]] bool is_right(std::size_t page) {
    const std::span<std::byte, page_bytes> bytes(memory_.data() + page * page_bytes, page_bytes);
    if (!present_[page]) {
      auto found = Snapshot::Found::busy;
      while (found == Snapshot::Found::busy) found = snapshot_->read(paged_.memory.start() + page * page_bytes, bytes);
      if (found == Snapshot::Found::lost) return false;
      if (found == Snapshot::Found::zeros) std::ranges::fill(bytes, std::byte{0});
      present_[page] = true;
    }
    return std::memcmp(bytes.data(), expected_.data() + page * page_bytes, page_bytes) == 0;
  }
  [[nodiscard]] std::size_t wrong_pages() {
    std::size_t wrong = 0;
    for (std::size_t page = 0; page < present_.size(); ++page) wrong += is_right(page) ? 0 : 1;
    return wrong;
  }
  [[nodiscard]] std::size_t pages() const noexcept { return present_.size(); }
  [[nodiscard]] const std::shared_ptr<Snapshot>& snapshot() const noexcept { return snapshot_; }
  [[nodiscard]] std::size_t kept_bytes() const noexcept {
    const test::MemorySource* const kept = *kept_;
    return kept == nullptr ? 0 : kept->stored.load();
  }

 private:
  Paged& paged_;
  Bytes expected_;
  Bytes memory_;
  std::vector<bool> present_;
  std::shared_ptr<std::atomic<test::MemorySource*>> kept_ = std::make_shared<std::atomic<test::MemorySource*>>(nullptr);
  std::shared_ptr<Snapshot> snapshot_;
};

/// The parent: a region that it changes, and a model of it.
class Parent {
 public:
  Parent(std::size_t bytes, std::size_t limit, bool lets_look, test::Faults faults, std::uint64_t seed)
      : paged(bytes, limit, {}, lets_look, pager::Contents::zeros, 5 * page_bytes, faults),
        model(bytes),
        random_(seed) {}

  void step() {
    const std::size_t pages = model.size() / page_bytes;
    const std::size_t first = between(random_, 0, pages - 1);
    const std::size_t count = between(random_, 1, std::min<std::size_t>(pages - first, 64));
    if (test::chance(random_, 10)) return discard(first, count);
    for (std::size_t page = first; page < first + count; ++page) write(page);
  }
  void discard(std::size_t first, std::size_t count) {
    ASSERT_EQ(paged.pager.discard(paged.memory.start() + first * page_bytes, count * page_bytes), Status::ok);
    std::memset(model.data() + first * page_bytes, 0, count * page_bytes);
  }
  void write(std::size_t page) {
    const std::size_t at = page * page_bytes + between(random_, 0, page_bytes - 1);
    model[at] = paged.bytes()[at] = static_cast<std::byte>(between(random_, 0, 255));
  }
  [[nodiscard]] Random& random() noexcept { return random_; }

  Paged paged;
  Bytes model;

 private:
  Random random_;
};

struct PagerSnapshots : test::NeedsPaging {};

TEST_F(PagerSnapshots, AChildSeesWhatTheParentHadAtTheFork) {
  for (const bool lets_look : {true, false}) {
    Parent parent(16 * mib, 4 * mib, lets_look, test::Faults::by_pager, test::seed());
    test::write_all(parent.paged.bytes(), 1);
    std::ranges::copy(parent.paged.bytes(), parent.model.begin());
    Child child(parent.paged, parent.model, lets_look);

    test::write_all(parent.paged.bytes(), 2);

    EXPECT_EQ(child.wrong_pages(), 0U);
    EXPECT_GE(child.kept_bytes(), 8 * mib);
  }
}

TEST_F(PagerSnapshots, NothingIsKeptWhileTheParentOnlyReads) {
  Parent parent(16 * mib, 4 * mib, true, test::Faults::by_pager, test::seed());
  test::write_all(parent.paged.bytes(), 1);
  std::ranges::copy(parent.paged.bytes(), parent.model.begin());
  // The pages that are present now have to be stored once; afterwards nothing changes.
  ASSERT_EQ(test::wrong_pages(parent.paged.bytes(), 1), 0U);
  Child child(parent.paged, parent.model);

  EXPECT_EQ(test::wrong_pages(parent.paged.bytes(), 1), 0U);

  EXPECT_EQ(child.kept_bytes(), 0U);
  EXPECT_EQ(child.wrong_pages(), 0U);
}

TEST_F(PagerSnapshots, APageIsKeptOnceForSeveralChildren) {
  Parent parent(16 * mib, 4 * mib, true, test::Faults::by_pager, test::seed());
  test::write_all(parent.paged.bytes(), 1);
  std::ranges::copy(parent.paged.bytes(), parent.model.begin());
  Child first(parent.paged, parent.model);
  Child second(parent.paged, parent.model);
  Child third(parent.paged, parent.model);

  for (int pass = 2; pass < 5; ++pass) test::write_all(parent.paged.bytes(), static_cast<std::uint64_t>(pass));

  EXPECT_EQ(first.kept_bytes() + second.kept_bytes(), 0U);
  EXPECT_LE(third.kept_bytes(), 16 * mib);
  for (Child* each : {&first, &second, &third}) EXPECT_EQ(each->wrong_pages(), 0U);
}

TEST_F(PagerSnapshots, ManyForksBesideAnOldChildLeaveNothingBehind) {
  Parent parent(4 * mib, 2 * mib, true, test::Faults::by_pager, test::seed());
  test::write_all(parent.paged.bytes(), 1);
  std::ranges::copy(parent.paged.bytes(), parent.model.begin());
  Child old(parent.paged, parent.model);
  std::weak_ptr<Snapshot> short_lived;
  for (int fork = 0; fork < 20; ++fork) {
    const bool is_third = fork == 2;
    const Child child(parent.paged, parent.model);
    if (is_third) short_lived = child.snapshot();
  }

  EXPECT_TRUE(short_lived.expired());
  test::write_all(parent.paged.bytes(), 2);
  EXPECT_EQ(old.wrong_pages(), 0U);
}

TEST_F(PagerSnapshots, NoPageLeavesWhileTheGateIsClosed) {
  Parent parent(16 * mib, 2 * mib, true, test::Faults::by_pager, test::seed());
  Gate& gate = parent.paged.pager.leaving();
  gate.close();
  while (!gate.is_empty()) std::this_thread::yield();

  test::write_all(parent.paged.bytes(), 1);  // faults are served nevertheless

  const auto statistics = parent.paged.pager.statistics();
  EXPECT_EQ(statistics.blocks_taken_out, 0U);
  EXPECT_GE(statistics.resident_bytes, 15 * mib);
  gate.open();
  EXPECT_TRUE(test::eventually([&] { return parent.paged.pager.statistics().resident_bytes <= 2 * mib; }));
}

TEST_F(PagerSnapshots, PagesWhoseBytesCannotBeKeptAreLost) {
  Parent parent(8 * mib, 2 * mib, false, test::Faults::by_pager, test::seed());
  test::write_all(parent.paged.bytes(), 1);
  std::ranges::copy(parent.paged.bytes(), parent.model.begin());
  Gate& gate = parent.paged.pager.leaving();
  gate.close();
  while (!gate.is_empty()) std::this_thread::yield();
  const auto snapshot = parent.paged.pager.take_snapshot(
      []() -> std::unique_ptr<pager::Source> { throw SetupError("no memory to keep pages"); });
  while (!snapshot->record_present()) std::this_thread::yield();
  gate.open();

  test::write_all(parent.paged.bytes(), 2);

  std::array<std::byte, page_bytes> bytes{};
  std::size_t lost = 0;  // pages that were absent, and have left since
  for (std::size_t at = 0; at < parent.model.size(); at += page_bytes) {
    if (snapshot->read(parent.paged.memory.start() + at, bytes) == Snapshot::Found::lost) lost += page_bytes;
  }
  EXPECT_GE(lost, 3 * mib);
  EXPECT_EQ(snapshot->read(parent.paged.memory.start() - page_bytes, bytes), Snapshot::Found::lost);
}

TEST_F(PagerSnapshots, CanBeReadAfterTheParentHasStopped) {
  Parent parent(8 * mib, 2 * mib, true, test::Faults::by_pager, test::seed());
  test::write_all(parent.paged.bytes(), 1);
  std::ranges::copy(parent.paged.bytes(), parent.model.begin());
  Child child(parent.paged, parent.model);
  test::write_all(parent.paged.bytes(), 2);

  parent.paged.pager.stop();

  EXPECT_EQ(child.wrong_pages(), 0U);
}

// The parent writes, discards and forks, while its children read in threads of their own, and end in any order.
TEST_F(PagerSnapshots, SurviveTorture) {
  using test::Faults;
  for (const Faults faults : {Faults::by_pager, Faults::by_pager_in_place, Faults::by_threads}) {
    for (const bool lets_look : {true, false}) {
      Parent parent(12 * mib, 3 * mib, lets_look, faults, test::seed());
      std::atomic<std::size_t> wrong{0};
      std::list<std::jthread> threads;
      for (int step = 0; step < test::rounds(400); ++step) {
        parent.step();
        if (!test::chance(parent.random(), 5)) continue;
        auto child = std::make_unique<Child>(parent.paged, parent.model, lets_look);
        threads.emplace_back([&wrong, child = std::move(child), seed = parent.random()()] {
          Random random(seed);
          const std::size_t reads = between(random, 0, 2 * child->pages());
          for (std::size_t i = 0; i < reads; ++i) {
            wrong += child->is_right(between(random, 0, child->pages() - 1)) ? 0 : 1;
          }
        });
        if (threads.size() > 4) threads.pop_front();
      }
      threads.clear();
      EXPECT_EQ(wrong.load(), 0U);
      EXPECT_EQ(std::memcmp(parent.paged.bytes().data(), parent.model.data(), parent.model.size()), 0);
      EXPECT_TRUE(parent.paged.failures().empty());
    }
  }
}

}  // namespace
}  // namespace tonari
