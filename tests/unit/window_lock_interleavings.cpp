#include "../support/interleavings.hpp"

#include "window/locks/lock_algorithm.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

// Explores every order in which ranks can access the memory of a lock, and every place at which a rank can die.
namespace tonari::window {
namespace {

template <class T>
using Stepped = test::SteppedAtomic<T>;
using test::Turns;

struct Op {
  enum class How : std::uint8_t {
    lock,
    try_lock,
    abandon,  // takes the request back unless the lock is granted at once
  } how;
  LockMode mode;
};
constexpr Op lock_alone{Op::How::lock, LockMode::exclusive};
constexpr Op lock_shared{Op::How::lock, LockMode::shared};
constexpr Op try_alone{Op::How::try_lock, LockMode::exclusive};
constexpr Op try_shared{Op::How::try_lock, LockMode::shared};
constexpr Op abandon_alone{Op::How::abandon, LockMode::exclusive};
constexpr Op abandon_shared{Op::How::abandon, LockMode::shared};

/// Ranks that follow their scripts, and the properties that must hold meanwhile.
class World {
 public:
  using Script = std::vector<Op>;
  static constexpr int ranks_max = 5;

  World(Turns& turns, std::vector<Script> scripts) : turns_(turns), scripts_(std::move(scripts)) {}

  void start() {
    memory_.emplace();
    for (int each = 0; each <= late(); ++each) {
      Rank& rank = at(each);
      // The actors need not look at the slot of the rank that asks after they have all finished.
      rank.side.emplace(memory_->lock, each < late() ? late() : each + 1, each, Neighbours{this});
      rank.asleep.store(0);
      rank.inside = rank.in_doubt = false;
    }
    damaged_ = told_in_doubt_ = over_ = false;
    told_max_ = 0;
  }

  void act(int self) {
    Rank& rank = at(self);
    const Script& script = scripts_[static_cast<std::size_t>(self)];
    for (std::size_t at = 0; at < script.size(); ++at) {
      turns_.forget(at);
      rank.mode = script[at].mode;
      rank.in_doubt = true;
      const LockAnswer answer = obtain(self, script[at]);
      rank.in_doubt = answer != LockAnswer::not_held;
      if (answer == LockAnswer::not_held) continue;
      turns_.forget(0x100 + at);
      enter(self, answer);
      turns_.next();
      rank.inside = false;
      rank.side->unlock();
      rank.in_doubt = false;
    }
    turns_.forget(0x200);
  }
  void killed(int self) {
    Rank& rank = at(self);
    const auto slot = memory_->lock.slot(self).peek();
    // It may have heard of the death and told no other rank.
    if (damaged_ && rank.in_doubt && !rank.inside) told_in_doubt_ = true;
    if (rank.inside && rank.mode == LockMode::exclusive) damaged_ = true;
    // It may have entered already, or not have left yet, although `inside` is false.
    if (rank.in_doubt && rank.mode == LockMode::exclusive && (slot & (lock_slot::waiting | lock_slot::granted)) == 0) {
      ++told_max_;
    }
    rank.inside = rank.in_doubt = false;
  }
  void rung(int rank) { at(rank).asleep.store(0); }
  [[nodiscard]] std::uint64_t state() const {
    std::uint64_t hash = (damaged_ ? 1u : 0u) + (told_in_doubt_ ? 2u : 0u) + static_cast<unsigned>(told_max_) * 4;
    hash = Turns::mixed(hash, memory_->lock.word.peek());
    hash = Turns::mixed(hash, memory_->lock.ticket.peek());
    for (std::size_t each = 0; each < ranks_.size(); ++each) {
      const Rank& rank = ranks_[each];
      hash = Turns::mixed(hash, memory_->slots[each].peek());
      hash = Turns::mixed(hash, rank.asleep.peek() + (rank.inside ? 2u : 0u) + (rank.in_doubt ? 4u : 0u));
    }
    return hash;
  }
  // All ranks have finished: a late rank must get the lock, and is told of any death that no rank was told of.
  void ended() {
    Rank& last = at(late());
    last.mode = LockMode::exclusive;
    over_ = true;
    const LockAnswer answer = last.side->request(LockMode::exclusive);
    if (answer == LockAnswer::not_held) turns_.fail("no rank holds the lock, but it is not granted");
    if (answer == LockAnswer::not_held) return;
    enter(late(), answer);
    last.inside = false;
    last.side->unlock();
    over_ = false;
    if (memory_->lock.word.peek() != 0) turns_.fail("the lock's word is not zero after the last unlock");
    for (int rank = 0; rank < late(); ++rank) {
      if (!turns_.is_dead(rank) && memory_->lock.slot(rank).peek() != 0)
        turns_.fail("a slot is not zero after the last unlock");
    }
  }

 private:
  struct Neighbours {
    World* world;
    [[nodiscard]] bool alive(int rank) const noexcept {
      return world->over_ ? rank == world->late() || !world->turns_.is_dead(rank) : !world->turns_.is_known_dead(rank);
    }
    void wake(int rank) const noexcept {
      Rank& other = world->at(rank);
      if (other.asleep.load() == 0) return;
      other.asleep.store(0);
      world->turns_.unpark(rank);
    }
  };
  struct Rank {
    std::optional<LockAlgorithm<Neighbours, Stepped>> side;
    Stepped<std::uint32_t> asleep{};
    LockMode mode{};
    bool inside = false;
    bool in_doubt = false;
  };
  struct Memory {
    BasicLockMemory<Stepped> lock{};
    std::array<Stepped<std::uint64_t>, (ranks_max + 7) / 8 * 8> slots{};
  };
  static_assert(sizeof(Memory) == lock_bytes(ranks_max));

  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int late() const { return static_cast<int>(scripts_.size()); }

  LockAnswer obtain(int self, const Op& op) {
    auto& side = *at(self).side;
    if (op.how == Op::How::try_lock) return side.try_lock(op.mode);
    LockAnswer answer = side.request(op.mode);
    while (answer == LockAnswer::not_held) {
      if (op.how == Op::How::abandon && side.abandon()) return answer;
      sleep(self);
      answer = side.step();
    }
    return answer;
  }
  void sleep(int self) {
    Rank& rank = at(self);
    rank.asleep.store(1);
    // No rank runs between the check and the sleep, as with a futex.
    if (!rank.side->ready() && rank.asleep.peek() == 1) turns_.park();
    rank.asleep.store(0);
  }
  void enter(int self, LockAnswer answer) {
    Rank& rank = at(self);
    for (const Rank& other : ranks_) {
      if (!other.inside || &other == &rank) continue;
      if (rank.mode == LockMode::exclusive || other.mode == LockMode::exclusive)
        turns_.fail("two ranks that exclude each other hold the lock");
    }
    rank.inside = true;
    if (answer == LockAnswer::held_after_death) {
      if (--told_max_ < 0) turns_.fail("a rank was told of a death that did not happen, or of one for the second time");
      damaged_ = false;
    } else if (damaged_ && rank.mode == LockMode::exclusive && !told_in_doubt_) {
      turns_.fail("no rank was told of a death");
    }
  }

  Turns& turns_;
  std::vector<Script> scripts_;
  std::optional<Memory> memory_;
  std::array<Rank, ranks_max> ranks_;
  bool damaged_ = false;        // a holder died and no rank has been told
  bool told_in_doubt_ = false;  // or the rank that was told died too
  bool over_ = false;
  int told_max_ = 0;
};

/// The scripts of several ranks, with a name.
struct Scene {
  const char* name;
  std::vector<World::Script> scripts;
};

// Scenes of two ranks: every execution is explored, without a death and with a death at every place.
const std::vector<Scene> small_scenes{
    {"two writers", {{lock_alone}, {lock_alone}}},
    {"a writer and a reader", {{lock_alone}, {lock_shared}}},
    {"two readers", {{lock_shared}, {lock_shared}}},
    {"a writer that gives up", {{abandon_alone}, {lock_alone}}},
    {"a writer that gives up, and a reader", {{abandon_alone}, {lock_shared}}},
    {"a reader that gives up", {{abandon_shared}, {lock_alone}}},
    {"a writer that tries", {{try_alone}, {lock_alone}}},
    {"a writer that tries, and a reader", {{try_alone}, {lock_shared}}},
    {"a reader that tries", {{try_shared}, {lock_alone}}},
    {"a reader and a writer that try", {{try_shared}, {try_alone}}},
};
// Scenes with too many executions to explore all; random ones are tried.
const std::vector<Scene> large_scenes{
    {"two ranks that read and write in turn", {{lock_alone, lock_shared}, {lock_shared, lock_alone}}},
    {"three writers", {{lock_alone, lock_alone}, {lock_alone, lock_alone}, {lock_alone, lock_alone}}},
    {"two writers and a reader", {{lock_alone, lock_alone}, {lock_alone}, {lock_shared, lock_shared}}},
    {"a writer and two readers", {{lock_alone, lock_alone}, {lock_shared}, {lock_shared, lock_shared}}},
    {"three ranks of which one gives up", {{lock_alone}, {abandon_alone, abandon_shared}, {lock_shared, lock_alone}}},
    {"three ranks of which two give up",
     {{lock_alone, lock_alone}, {abandon_shared, abandon_alone}, {abandon_alone, abandon_alone}}},
    {"three ranks of which two try",
     {{lock_alone, lock_shared}, {try_alone, try_shared, try_alone}, {try_shared, try_alone}}},
    {"four ranks with every kind of request",
     {{lock_alone, abandon_shared, lock_shared},
      {lock_shared, lock_alone, try_alone},
      {abandon_alone, try_shared, lock_alone},
      {lock_alone, lock_shared, abandon_alone}}},
};

bool impossible() {
#if defined(__SANITIZE_THREAD__)
  return true;  // ThreadSanitizer does not support changes of stacks, and there is only one thread
#else
  return false;
#endif
}

TEST(LockInterleavings, KeepTheInvariantsInAllOrdersOfTwoRanks) {
  if (impossible()) GTEST_SKIP();
  for (const Scene& scene : small_scenes) {
    for (const int deaths : {0, 1, 2}) {
      Turns turns(2);
      World world(turns, scene.scripts);

      const test::Explored explored = test::explore(world, turns, deaths, 1'000'000);

      EXPECT_EQ(explored.failure, "") << scene.name;
      EXPECT_TRUE(explored.complete) << scene.name;
      EXPECT_GT(explored.states, 20u) << scene.name;
    }
  }
}

TEST(LockInterleavings, KeepTheInvariantsInRandomOrders) {
  if (impossible()) GTEST_SKIP();
  test::Random random(test::seed());
  for (const Scene& scene : large_scenes) {
    for (const int deaths : {0, 1, 3}) {
      Turns turns(static_cast<int>(scene.scripts.size()));
      World world(turns, scene.scripts);

      const auto executions = static_cast<std::size_t>(test::rounds(400));
      const test::Explored explored = test::explore_randomly(world, turns, deaths, executions, random);

      EXPECT_EQ(explored.failure, "") << scene.name << ", seed " << test::seed();
    }
  }
}

}  // namespace
}  // namespace tonari::window
