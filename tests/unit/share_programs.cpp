#include "../support/shared.hpp"

#include <algorithm>
#include <array>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <thread>

// Runs random programs without data races and compares them with a sequential model. The actions of each worker (a
// thread of a rank) between two barriers are drawn from a seed that all ranks know, so each rank can compute the
// expected contents of memory.
namespace tonari {
namespace {

using test::Random;

/// The random parameters of a program.
struct Shape {
  int ranks;
  std::size_t threads;  // of each rank
  std::size_t bytes;
  int phases;
  Placement placement;
  bool writes_are_named;
  bool homes_move;
  bool updates;
};

std::ostream& operator<<(std::ostream& to, const Shape& shape) {
  return to << shape.ranks << " ranks of " << shape.threads << " threads, " << shape.bytes << " bytes, placement "
            << static_cast<int>(shape.placement) << (shape.writes_are_named ? ", named writes" : "")
            << (shape.homes_move ? ", homes move" : "") << (shape.updates ? ", updates" : "");
}

Shape draw_shape(Random& random) {
  constexpr std::array placements{Placement::block, Placement::cyclic, Placement::first_touch, Placement::by_function};
  const std::size_t threads = test::between(random, 1, 3);
  return {.ranks = static_cast<int>(test::between(random, 2, 4)),
          .threads = threads,
          .bytes = test::between(random, 1, 40 * 4096),
          .phases = static_cast<int>(test::between(random, 3, 12)),
          .placement = placements[test::between(random, 0, placements.size() - 1)],
          .writes_are_named =
              threads == 1 &&
              test::chance(random, 40),  // another thread could synchronise before this one names its writes
          .homes_move = test::chance(random, 75),
          .updates = test::chance(random, 40)};
}

/// A stretch of memory and its writer in a phase. Stretches have any size, so pages and cache lines have several
/// writers. Some stretches have no writer.
struct Stretch {
  std::size_t first;
  std::size_t count;
  std::size_t writer;  // a worker's number; the number of workers means no writer
};

std::vector<Stretch> draw_phase(Random& random, const Shape& shape) {
  const std::size_t workers = static_cast<std::size_t>(shape.ranks) * shape.threads;
  std::vector<Stretch> stretches;
  for (std::size_t at = 0; at < shape.bytes;) {
    const std::size_t largest = test::chance(random, 50) ? 16 : test::chance(random, 80) ? 3000 : 20'000;
    const std::size_t count = std::min(test::between(random, 1, largest), shape.bytes - at);
    const std::size_t writer = test::chance(random, 40) ? workers : test::between(random, 0, workers - 1);
    stretches.push_back({at, count, writer});
    at += count;
  }
  return stretches;
}

std::uint8_t value_of(int phase, std::size_t at) {
  return static_cast<std::uint8_t>(phase * 37 + static_cast<int>(at * 11 % 251));
}

/// Counters under locks: the holder of a lock finds all bytes as the previous holder left them.
class Locked {
 public:
  Locked(Job& job, const ArrayOptions& options) : array_(job, 3 * 4096, options) {
    for (std::size_t i = 0; i < locks; ++i) mutexes_.emplace_back(job);
  }
  void step(Random& random) {
    const std::size_t lock = test::between(random, 0, locks - 1);
    if (test::chance(random, 30)) {
      const auto held = mutexes_[lock].lock_shared();
      ASSERT_EQ(held.status(), Status::ok);
      check(lock);
      return;
    }
    const auto held = mutexes_[lock].lock();
    ASSERT_EQ(held.status(), Status::ok);
    check(lock);
    const auto next = static_cast<std::uint8_t>(array_[lock] + 1);
    for (std::size_t at = lock; at < array_.size(); at += locks * stride) {
      array_[at] = next;
      array_.wrote(at, 1);
    }
  }

 private:
  static constexpr std::size_t locks = 3;
  static constexpr std::size_t stride = 37;

  void check(std::size_t lock) const {
    for (std::size_t at = lock; at < array_.size(); at += locks * stride) {
      ASSERT_EQ(array_[at], array_[lock]) << "byte " << at << " of lock " << lock;
    }
  }

  shared_array<std::uint8_t> array_;
  std::vector<share::mutex> mutexes_;
};

class Program {
 public:
  Program(Job& job, const Shape& shape, std::uint64_t seed)
      : job_(job),
        shape_(shape),
        seed_(seed),
        array_(job, shape.bytes, options()),
        locked_(job, options()),
        together_(static_cast<std::ptrdiff_t>(shape.threads)),
        model_(shape.bytes) {}

  void run() {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 1; thread < shape_.threads; ++thread)
      threads.emplace_back([this, thread] { work(thread); });
    work(0);
  }

 private:
  [[nodiscard]] ArrayOptions options() const {
    ArrayOptions options;
    options.placement = shape_.placement;
    options.cyclic_bytes = 4096;
    options.home = [ranks = shape_.ranks](std::uint64_t offset) {
      return JobRank{offset / 4096 * 5 % static_cast<std::uint64_t>(ranks)};
    };
    options.homes_move = shape_.homes_move;
    options.writes_are_named = shape_.writes_are_named;
    options.updates = shape_.updates;
    return options;
  }

  // Waits for all workers of all ranks.
  template <class Barrier>
  void meet(std::size_t thread, Barrier barrier) {
    together_.arrive_and_wait();
    if (thread == 0) {
      EXPECT_EQ(barrier(), Status::ok);
    }
    together_.arrive_and_wait();
  }

  Status multicast(const std::vector<Stretch>& stretches, Random& random) {
    const Stretch& any = stretches[test::between(random, 0, stretches.size() - 1)];
    const bool is_ours = any.writer / shape_.threads == job_.rank().index();
    return array_.barrier_with_multicast(any.first, is_ours ? any.count : 0);
  }

  void work(std::size_t thread) {
    const std::size_t self = job_.rank().index() * shape_.threads + thread;
    Random common(seed_);
    Random mine(seed_ + 1000 + self);
    for (int phase = 1; phase <= shape_.phases; ++phase) {
      const auto stretches = draw_phase(common, shape_);
      for (const Stretch& each : stretches) touch(each, self, phase, mine);
      const bool multicasts = test::chance(common, 30);
      meet(thread, [&] { return multicasts ? multicast(stretches, mine) : share::barrier(job_); });
      if (thread == 0) remember(stretches, phase);
      meet(thread, [&] { return share::barrier(job_); });
    }
  }

  void touch(const Stretch& stretch, std::size_t self, int phase, Random& random) {
    const std::size_t workers = static_cast<std::size_t>(shape_.ranks) * shape_.threads;
    if (stretch.writer == self) {
      for (std::size_t at = stretch.first; at < stretch.first + stretch.count; ++at) {
        ASSERT_EQ(array_[at], model_[at]) << "before the write in phase " << phase << ", byte " << at << ": " << shape_;
        array_[at] = value_of(phase, at);
      }
      array_.wrote(stretch.first, stretch.count);
    } else if (stretch.writer == workers && test::chance(random, 50)) {
      for (std::size_t at = stretch.first; at < stretch.first + stretch.count; ++at) {
        ASSERT_EQ(array_[at], model_[at]) << "read in phase " << phase << ", byte " << at << ": " << shape_;
      }
    }
    if (test::chance(random, 5)) {
      array_.prefetch(test::between(random, 0, shape_.bytes - 1), test::between(random, 1, 100'000));
    }
    if (test::chance(random, 2)) locked_.step(random);
  }

  void remember(const std::vector<Stretch>& stretches, int phase) {
    const std::size_t workers = static_cast<std::size_t>(shape_.ranks) * shape_.threads;
    for (const Stretch& each : stretches) {
      if (each.writer == workers) continue;
      for (std::size_t at = each.first; at < each.first + each.count; ++at) model_[at] = value_of(phase, at);
    }
  }

  Job& job_;
  const Shape shape_;
  const std::uint64_t seed_;
  shared_array<std::uint8_t> array_;
  Locked locked_;
  std::barrier<> together_;
  std::vector<std::uint8_t> model_;  // the memory of a sequential run
};

class SharedPrograms : public test::OnEveryWayToShare {};
INSTANTIATE_TEST_SUITE_P(Over, SharedPrograms, testing::ValuesIn(test::ways_to_share_and_kernels()), test::name_of);

TEST_P(SharedPrograms, SeeTheMemoryOfASequentialRun) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  const int programs = turns(20);
#else
  const int programs = turns(60);
#endif
  Random random(test::seed());
  for (int i = 0; i < programs && !HasFatalFailure(); ++i) {
    const std::uint64_t seed = random();
    Random of_program(seed);
    const Shape shape = draw_shape(of_program);
    SCOPED_TRACE(testing::Message() << "program " << i << ": " << shape);
    run(shape.ranks, [&](Job& job) { Program(job, shape, seed).run(); });
  }
}

}  // namespace
}  // namespace tonari
