#include "../support/random.hpp"
#include "../support/ranks.hpp"
#include "message/collectives.hpp"
#include "message/creation.hpp"
#include "message/exchanges.hpp"
#include "message/inter_collectives.hpp"
#include "message/reductions.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

// Collectives that Communicator does not have: parts in any layout, separate operands and results, operations that
// replace either operand, persistent collectives, inter-communicators.
namespace tonari::message {
namespace {

using detail::Into;
using detail::Reduction;
using test::between;
using test::Random;

class AnyParts : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, AnyParts, testing::ValuesIn(test::variants_and_network()), test::name_of);

Context& context_of(Communicator& world) { return *Communicators::context(world); }

Status play(Context& context, const std::function<void(Schedule&)>& write) {
  return start_collective(context, job::Wait::all_to_all, write).wait().status;
}

// Data of several ranks in one buffer, with gaps between the parts and between their bytes.
struct Scattered {
  static constexpr std::ptrdiff_t stride = 3;
  std::size_t part_bytes;
  std::vector<std::byte> buffer;

  Scattered(std::size_t ranks, std::size_t bytes)
      : part_bytes(bytes), buffer(ranks * (bytes * stride + 5), std::byte{0xee}) {}
  std::byte* place(int rank) { return buffer.data() + static_cast<std::size_t>(rank) * (part_bytes * stride + 5); }
  Part part(int rank) { return {place(rank), part_bytes, 1, stride}; }
  void set(int rank, const std::vector<std::byte>& bytes) { part(rank).unpack(0, bytes.data(), bytes.size()); }
};

// The bytes that one rank sends to another.
std::vector<std::byte> sent(std::size_t turn, int from, int to, std::size_t bytes) {
  return test::pattern(bytes, turn * 1000 + static_cast<std::size_t>(from * 20 + to));
}

TEST_P(AnyParts, ArriveInAnyLayout) {
  for (const int ranks : {1, 2, 5, 8}) {
    run(ranks, [ranks](Communicator& world) {
      Context& context = context_of(world);
      const int me = context.rank();
      const auto all = static_cast<std::size_t>(ranks);
      std::size_t turn = 0;
      for (const std::size_t bytes : {0U, 1U, 100U, 5000U, 40000U}) {
        const int root = static_cast<int>(++turn % all);
        Scattered mine(1, bytes);
        mine.set(0, sent(turn, me, 0, bytes));
        const Part own = mine.part(0);
        Scattered gathered(all, bytes);
        Scattered everywhere(all, bytes);
        Scattered exchanged(all, bytes);
        Scattered expected(all, bytes);
        Scattered exchange_expected(all, bytes);
        for (int rank = 0; rank < ranks; ++rank) {
          expected.set(rank, sent(turn, rank, 0, bytes));
          exchanged.set(rank, sent(turn, me, rank, bytes));
          exchange_expected.set(rank, sent(turn, rank, me, bytes));
        }
        Scattered scattered(1, bytes);
        Scattered broadcast_data(1, bytes);
        broadcast_data.set(0, sent(turn, me, 7, bytes));

        ASSERT_EQ(play(context,
                       [&](Schedule& schedule) {
                         write_gather(
                             schedule, context, &own, [&](int rank) { return gathered.part(rank); }, root);
                       }),
                  Status::ok);
        ASSERT_EQ(play(context,
                       [&](Schedule& schedule) {
                         write_all_gather(schedule, context, &own, [&](int rank) { return everywhere.part(rank); });
                       }),
                  Status::ok);
        ASSERT_EQ(play(context,
                       [&](Schedule& schedule) {
                         write_all_to_all_in_place(schedule, context, [&](int rank) { return exchanged.part(rank); });
                       }),
                  Status::ok);
        const Part part = scattered.part(0);
        ASSERT_EQ(play(context,
                       [&](Schedule& schedule) {
                         write_scatter(
                             schedule, context, [&](int rank) { return expected.part(rank); }, &part, root);
                       }),
                  Status::ok);
        ASSERT_EQ(broadcast(context, broadcast_data.part(0), root), Status::ok);

        if (me == root) {
          ASSERT_EQ(gathered.buffer, expected.buffer);
        }
        ASSERT_EQ(everywhere.buffer, expected.buffer);
        ASSERT_EQ(exchanged.buffer, exchange_expected.buffer);
        ASSERT_EQ(scattered.buffer, mine.buffer);
        mine.set(0, sent(turn, root, 7, bytes));
        ASSERT_EQ(broadcast_data.buffer, mine.buffer);
      }
    });
  }
}

// Composition of affine maps modulo 2^32: associative, not commutative.
struct Affine {
  std::uint32_t a;
  std::uint32_t b;
  bool operator==(const Affine&) const = default;
};
Affine compose(const Affine& left, const Affine& right) { return {left.a * right.a, left.a * right.b + left.b}; }
Affine add(const Affine& left, const Affine& right) { return {left.a + right.a, left.b + right.b}; }

template <Affine combine(const Affine&, const Affine&), bool is_right>
void fold(void* inout, const void* in, std::size_t count, const void*) {
  auto* into = static_cast<Affine*>(inout);
  const auto* from = static_cast<const Affine*>(in);
  for (std::size_t i = 0; i < count; ++i) into[i] = is_right ? combine(from[i], into[i]) : combine(into[i], from[i]);
}

const std::array reductions{
    Reduction{fold<compose, false>, sizeof(Affine), nullptr, Into::left},
    Reduction{fold<compose, true>, sizeof(Affine), nullptr, Into::right},
    Reduction{fold<add, false>, sizeof(Affine), nullptr, Into::any},
};

struct Operation {
  Reduction reduction;
  std::uint32_t turn;

  [[nodiscard]] std::vector<Affine> operands(int rank, std::size_t count) const {
    std::vector<Affine> all;
    for (std::uint32_t i = 0; i < count; ++i) {
      all.push_back({turn * 7919 + static_cast<std::uint32_t>(rank) * 31 + i * 2 + 1,
                     turn + i * 17 + static_cast<std::uint32_t>(rank)});
    }
    return all;
  }
  // The combination of the operands of ranks first to last.
  [[nodiscard]] std::vector<Affine> combination(int first, int last, std::size_t count) const {
    std::vector<Affine> all = operands(first, count);
    for (int rank = first + 1; rank <= last; ++rank) {
      const auto next = operands(rank, count);
      for (std::size_t i = 0; i < count; ++i) {
        all[i] = reduction.into == Into::any ? add(all[i], next[i]) : compose(all[i], next[i]);
      }
    }
    return all;
  }
};

std::byte* bytes_of(std::vector<Affine>& values) { return reinterpret_cast<std::byte*>(values.data()); }
Operands operands_of(const std::vector<Affine>& values) { return std::as_bytes(std::span(values)); }

// One reduction of each kind, with separate operands or in place.
void expect_combined(Context& context, const Operation& operation, std::size_t count, bool in_place) {
  const int me = context.rank();
  const int last = context.size() - 1;
  const int root = static_cast<int>(operation.turn) % context.size();
  const auto mine = operation.operands(me, count);
  const auto all = operation.combination(0, last, count);
  const std::vector<Affine> unset(count, {1, 2});
  std::vector<Affine> result;
  const auto start_with = [&] { return result = in_place ? mine : unset; };
  const auto own = [&] { return in_place ? operands_of(result) : operands_of(mine); };

  start_with();
  ASSERT_EQ(play(context,
                 [&](Schedule& schedule) {
                   write_reduce(schedule, context, own(), bytes_of(result), operation.reduction, root);
                 }),
            Status::ok);
  ASSERT_EQ(result, me == root ? all : in_place ? mine : unset);

  start_with();
  ASSERT_EQ(all_reduce(context, own().data(), std::as_writable_bytes(std::span(result)), operation.reduction),
            Status::ok);
  ASSERT_EQ(result, all);

  start_with();
  ASSERT_EQ(play(context,
                 [&](Schedule& schedule) {
                   write_all_reduce(schedule, context, own(), bytes_of(result), operation.reduction);
                 }),
            Status::ok);
  ASSERT_EQ(result, all);

  for (const bool exclusive : {false, true}) {
    start_with();
    ASSERT_EQ(play(context,
                   [&](Schedule& schedule) {
                     write_scan(schedule, context, own(), bytes_of(result), operation.reduction, exclusive);
                   }),
              Status::ok);
    if (exclusive && me == 0) {
      ASSERT_EQ(result, in_place ? mine : unset);
    } else {
      ASSERT_EQ(result, operation.combination(0, exclusive ? me - 1 : me, count));
    }
  }

  std::vector<std::size_t> lengths(static_cast<std::size_t>(context.size()), 0);
  for (std::size_t i = 0; i < count; ++i) ++lengths[(i * i + operation.turn) % lengths.size()];
  start_with();
  ASSERT_EQ(play(context,
                 [&](Schedule& schedule) {
                   write_reduce_scatter(schedule, context, own().data(), lengths, bytes_of(result),
                                        operation.reduction);
                 }),
            Status::ok);
  const auto place = static_cast<std::size_t>(me);
  const auto before = std::accumulate(lengths.begin(), lengths.begin() + me, std::ptrdiff_t{0});
  ASSERT_TRUE(
      std::equal(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(lengths[place]), all.begin() + before));
}

TEST_P(AnyParts, AreCombinedInOrder) {
  for (const int ranks : {1, 2, 3, 6, 9}) {
    run(ranks, [](Communicator& world) {
      std::uint32_t turn = 0;
      for (const Reduction& reduction : reductions) {
        for (const std::size_t count : {0U, 1U, 13U, 700U, 9001U}) {
          for (const bool in_place : {false, true}) {
            ASSERT_NO_FATAL_FAILURE(expect_combined(context_of(world), {reduction, ++turn}, count, in_place));
          }
        }
      }
    });
  }
}

// More ranks than use boards or combine stretches.
TEST(Parts, AreCombinedByManyRanks) {
  test::as_ranks(ranks_on_a_board_max + 3, [](Communicator& world) {
    std::uint32_t turn = 0;
    for (const Reduction& reduction : reductions) {
      ASSERT_NO_FATAL_FAILURE(expect_combined(context_of(world), {reduction, ++turn}, 150, false));
      ASSERT_NO_FATAL_FAILURE(expect_combined(context_of(world), {reduction, ++turn}, 150, true));
    }
  });
}

// Each rank starts them in an order of its own, between collectives that are not persistent.
TEST_P(AnyParts, TravelAgainAtEachStart) {
  const std::uint64_t seed = test::seed();
  run(4, [seed](Communicator& world) {
    Context& context = context_of(world);
    Random random(seed + world.rank().index());
    constexpr std::size_t count = 300;
    std::array<std::vector<Affine>, 3> own;
    std::array<std::vector<Affine>, 3> result;
    std::vector<PersistentCollective> prepared;
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i].resize(count);
      result[i].resize(count);
      prepared.emplace_back(context, job::Wait::all_reduce, [&](Schedule& schedule) {
        write_all_reduce(schedule, context, operands_of(own[i]), bytes_of(result[i]), reductions[i]);
      });
    }
    for (std::uint32_t turn = 0; turn < 5; ++turn) {
      std::array<std::size_t, 3> order{0, 1, 2};
      std::ranges::shuffle(order, random);
      std::vector<Request> requests;
      for (const std::size_t i : order) {
        std::ranges::copy(Operation{reductions[i], turn}.operands(context.rank(), count), own[i].begin());
        requests.push_back(prepared[i].start());
      }
      ASSERT_EQ(world.barrier(), Status::ok);
      ASSERT_EQ(wait_all(requests), Status::ok);
      for (const std::size_t i : order) {
        ASSERT_EQ(result[i], (Operation{reductions[i], turn}.combination(0, context.size() - 1, count)));
      }
    }
  });
}

// Ranks below `left` are on the one side, the others on the other side.
void expect_exchange_between_sides(Communicator& world, int left) {
  const bool is_left = world.rank() < left;
  const NewContext local = split(context_of(world), is_left ? 1 : 0, 0);
  ASSERT_EQ(local.status, Status::ok);
  const NewContext made = create_inter_context(*local.value, 0, {&context_of(world), is_left ? left : 0}, 5);
  ASSERT_EQ(made.status, Status::ok);
  Context& inter = *made.value;
  const int others = inter.peers().size();
  const int first_other = is_left ? left : 0;  // in the world
  const int me = world.rank().value();
  ASSERT_EQ(play(inter, [&](Schedule& schedule) { write_inter_barrier(schedule, inter); }), Status::ok);

  constexpr std::size_t bytes = 3000;
  Scattered received(static_cast<std::size_t>(others), bytes);
  Scattered expected(static_cast<std::size_t>(others), bytes);
  Scattered out(static_cast<std::size_t>(others), bytes);
  for (int rank = 0; rank < others; ++rank) {
    expected.set(rank, sent(1, first_other + rank, me, bytes));
    out.set(rank, sent(1, me, first_other + rank, bytes));
  }
  ASSERT_EQ(play(inter,
                 [&](Schedule& schedule) {
                   write_inter_exchange(
                       schedule, inter, [&](int rank) { return out.part(rank); },
                       [&](int rank) { return received.part(rank); });
                 }),
            Status::ok);
  ASSERT_EQ(received.buffer, expected.buffer);

  for (std::uint32_t turn = 0; turn < reductions.size(); ++turn) {
    const Operation operation{reductions[turn], turn};
    const auto mine = operation.operands(me, 500);
    const auto theirs = operation.combination(first_other, first_other + others - 1, 500);
    std::vector<Affine> result(500);
    ASSERT_EQ(play(inter,
                   [&](Schedule& schedule) {
                     write_inter_all_reduce(schedule, inter, operands_of(mine), bytes_of(result), operation.reduction);
                   }),
              Status::ok);
    ASSERT_EQ(result, theirs);

    // The last rank of the right side is the root.
    const int root = world.size() - 1;
    const int named = is_left ? root - left : me == root ? self_is_root : takes_no_part;
    std::fill(result.begin(), result.end(), Affine{});
    ASSERT_EQ(play(inter,
                   [&](Schedule& schedule) {
                     write_inter_reduce(schedule, inter, operands_of(mine), std::as_writable_bytes(std::span(result)),
                                        operation.reduction, named);
                   }),
              Status::ok);
    if (me == root) {
      ASSERT_EQ(result, theirs);
    }

    Scattered one(1, bytes);
    one.set(0, sent(turn, me, 3, bytes));
    ASSERT_EQ(play(inter, [&](Schedule& schedule) { write_inter_broadcast(schedule, inter, one.part(0), named); }),
              Status::ok);
    Scattered one_expected(1, bytes);
    one_expected.set(0, sent(turn, is_left ? root : me, 3, bytes));
    ASSERT_EQ(one.buffer, one_expected.buffer);

    // Gathers what the root scatters.
    Scattered scattered(1, bytes);
    ASSERT_EQ(play(inter,
                   [&](Schedule& schedule) {
                     write_inter_scatter(
                         schedule, inter, [&](int rank) { return out.part(rank); }, scattered.part(0), named);
                   }),
              Status::ok);
    Scattered gathered(static_cast<std::size_t>(others), bytes);
    ASSERT_EQ(play(inter,
                   [&](Schedule& schedule) {
                     write_inter_gather(
                         schedule, inter, scattered.part(0), [&](int rank) { return gathered.part(rank); }, named);
                   }),
              Status::ok);
    if (me == root) {
      ASSERT_EQ(gathered.buffer, out.buffer);
    }
  }
}

TEST_P(AnyParts, GoFromSideToSide) {
  for (const int left : {1, 2, 4}) {
    run(5, [left](Communicator& world) { expect_exchange_between_sides(world, left); });
  }
}

}  // namespace
}  // namespace tonari::message
