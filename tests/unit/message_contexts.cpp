#include "../support/random.hpp"
#include "../support/ranks.hpp"
#include "job/group.hpp"
#include "job/session.hpp"
#include "message/creation.hpp"
#include "message/message_runtime.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <thread>

// Communicators of a group alone, inter-communicators, started duplicates, and running out of numbers.
namespace tonari {
namespace {

using message::Bridge;
using message::Communicators;
using message::Context;
using message::NewContext;
using test::Killed;
using test::Random;

class Contexts : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, Contexts, testing::ValuesIn(test::variants_and_network()), test::name_of);

class ContextsAfterDeath : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, ContextsAfterDeath, testing::ValuesIn(test::variants_and_network()), test::name_of);

Context& context_of(const Communicator& communicator) { return *Communicators::context(communicator); }

/// Returns `count` of the job's ranks, in any order.
Group some_ranks(Random& random, int ranks, std::size_t count) {
  std::vector<JobRank> all = Group::first(ranks).ranks();
  std::ranges::shuffle(all, random);
  all.resize(count);
  return Group(std::move(all));
}

std::vector<int> numbers(const Group& group) {
  std::vector<int> ranks;
  for (const JobRank rank : group.ranks()) ranks.push_back(rank.value());
  return ranks;
}

/// Checks that an intra-communicator works: a collective, and a message from each rank to the next one.
void expect_works(Communicator& communicator) {
  int sum = communicator.rank().value() + 1;
  ASSERT_EQ(communicator.all_reduce(sum), Status::ok);
  ASSERT_EQ(sum, communicator.size() * (communicator.size() + 1) / 2);

  const Rank next = communicator.neighbour(+1);
  const Rank previous = communicator.neighbour(-1);
  const JobRank self = communicator.job_rank(communicator.rank());
  Request sent = communicator.start_send(self, next, Tag{3});
  JobRank received{-1};
  const auto result = communicator.receive(received, Rank::any, Tag::any);
  ASSERT_EQ(result, (Result<Envelope>{Status::ok, {previous, Tag{3}, sizeof received}}));
  ASSERT_EQ(received, communicator.job_rank(previous));
  ASSERT_EQ(sent.wait().status, Status::ok);
}

/// The same for a communicator that must have the ranks `group`, in this order.
void expect_works(const NewContext& made, const Group& group) {
  ASSERT_EQ(made.status, Status::ok);
  ASSERT_NE(made.value, nullptr);
  ASSERT_EQ(numbers(made.value->group()), numbers(group));
  Communicator communicator = Communicators::of(made.value);
  ASSERT_NO_FATAL_FAILURE(expect_works(communicator));
}

TEST_P(Contexts, AreMadeByTheRanksOfAGroupAlone) {
  const std::uint64_t seed = test::seed();
  run(6, [seed](Communicator& world) {
    Random random(seed);  // the same on all ranks
    const JobRank self = world.group().at(world.rank());
    int never = 0;
    Request untouched = world.start_receive(never, Rank::any, Tag::any);
    for (int round = 0; round < test::rounds(20); ++round) {
      const Group group = some_ranks(random, world.size(), test::between(random, 1, 6));
      const int tag = static_cast<int>(test::between(random, 0, 3));
      if (!group.position(self)) continue;
      const NewContext made = message::create_context(context_of(world).runtime(), group, context_of(world).id(), tag);
      ASSERT_NO_FATAL_FAILURE(expect_works(made, group)) << "round " << round;
    }
    EXPECT_FALSE(untouched.test().has_value());
    EXPECT_TRUE(untouched.cancel());
  });
}

TEST_P(Contexts, AreToldApartByTheirTagsAndParents) {
  run(4, [](Communicator& world) {
    const auto make = [&world](std::uint32_t parent, int tag) {
      return message::create_context(context_of(world).runtime(), world.group(), parent, tag);
    };
    constexpr int threads = 3;
    std::array<NewContext, threads> made;
    {
      // Each rank begins them in another order.
      std::vector<std::jthread> creators;
      for (int i = 0; i < threads; ++i) {
        const int which = (i + world.rank().value()) % threads;
        creators.emplace_back([&made, make, which] {
          const std::uint32_t parent = which == 2 ? message::no_parent_id : message::world_context_id;
          made[static_cast<std::size_t>(which)] = make(parent, which == 1 ? 8 : 7);
        });
      }
    }
    std::set<std::uint32_t> ids;
    for (const NewContext& each : made) {
      ASSERT_EQ(each.status, Status::ok);
      ids.insert(each.value->id());
      ASSERT_NO_FATAL_FAILURE(expect_works(each, world.group()));
      std::uint32_t lowest = each.value->id();
      ASSERT_EQ(world.all_reduce(lowest, [](auto a, auto b) { return std::min(a, b); }), Status::ok);
      ASSERT_EQ(lowest, each.value->id());
    }
    EXPECT_EQ(ids.size(), made.size());
  });
}

TEST_P(Contexts, RefuseWrongArguments) {
  run(2, [](Communicator& world) {
    Context& context = context_of(world);
    const Group other({JobRank{1 - world.rank().value()}});
    EXPECT_EQ(message::create_context(context.runtime(), other, context.id(), 0).status, Status::invalid);
    EXPECT_EQ(message::create_context(context.runtime(), world.group(), context.id(), -1).status, Status::invalid);
    EXPECT_EQ(message::merge(context, false).status, Status::invalid);
    EXPECT_EQ(message::create_inter_context(context, 2, {}, 0).status, Status::invalid);
    EXPECT_EQ(message::create_inter_context(context, 0, {}, 0).status, Status::invalid);
    EXPECT_EQ(message::create_inter_context(context, 0, {&context, 0}, 0).status,
              Status::invalid);  // the leader itself
    EXPECT_EQ(message::create_inter_context(context, 0, {&context, 2}, 0).status, Status::invalid);
  });
}

TEST_P(Contexts, SplitByColorAndKey) {
  const std::uint64_t seed = test::seed();
  run(7, [seed](Communicator& world) {
    Random random(seed);
    for (int round = 0; round < test::rounds(10); ++round) {
      std::vector<std::array<int, 2>> choices;  // color and key by rank
      for (int rank = 0; rank < world.size(); ++rank) {
        choices.push_back({static_cast<int>(test::between(random, 0, 3)) * 1000 - 1000,
                           static_cast<int>(test::between(random, 0, 2)) - 1});
      }
      const auto [color, key] = choices[world.rank().index()];
      std::vector<JobRank> expected;
      for (const JobRank rank : world.group().ranks()) {
        if (choices[rank.index()][0] == color) expected.push_back(rank);
      }
      std::ranges::stable_sort(expected, {}, [&](JobRank rank) { return choices[rank.index()][1]; });

      const NewContext made = message::split(context_of(world), color, key);

      ASSERT_EQ(made.status, Status::ok);
      ASSERT_EQ(made.value == nullptr, color < 0);
      if (color >= 0) {
        ASSERT_NO_FATAL_FAILURE(expect_works(made, Group(expected)));
      }
    }
  });
}

TEST_P(Contexts, AreMadeOfSeveralGroupsAtOnce) {
  run(5, [](Communicator& world) {
    const Group low({JobRank{2}, JobRank{0}});
    const Group high({JobRank{4}, JobRank{3}});
    const int self = world.rank().value();
    const Group& mine = self == 3 || self == 4 ? high : low;

    const NewContext made = message::create(context_of(world), mine);

    ASSERT_EQ(made.status, Status::ok);
    ASSERT_EQ(made.value == nullptr, self == 1);
    if (self != 1) {
      ASSERT_NO_FATAL_FAILURE(expect_works(made, mine));
    }
  });
}

TEST_P(Contexts, DuplicateWhileTheRankDoesOtherThings) {
  run(5, [](Communicator& world) {
    std::array<std::shared_ptr<Context>, 2> copies;
    std::vector<Request> requests;
    for (auto& copy : copies) requests.push_back(message::start_duplicate(context_of(world), copy));
    ASSERT_NO_FATAL_FAILURE(expect_works(world));
    ASSERT_EQ(wait_all(requests), Status::ok);
    for (auto& copy : copies) ASSERT_NO_FATAL_FAILURE(expect_works({Status::ok, copy}, world.group()));
    EXPECT_NE(copies[0]->id(), copies[1]->id());
  });
}

/// Checks that an inter-communicator has these sides and works: each rank sends to each rank of the other side.
void expect_works_between(const NewContext& made, const Group& own, const Group& other) {
  ASSERT_EQ(made.status, Status::ok);
  ASSERT_NE(made.value, nullptr);
  ASSERT_TRUE(made.value->is_inter());
  ASSERT_EQ(numbers(made.value->group()), numbers(own));
  ASSERT_EQ(numbers(made.value->peers()), numbers(other));
  Communicator communicator = Communicators::of(made.value);

  const JobRank self = own.at(communicator.rank());
  std::vector<int> sent(5000, self.value());
  std::vector<Request> requests;
  for (Rank peer{0}; peer < other.size(); ++peer) requests.push_back(communicator.start_send(sent, peer, Tag{5}));
  std::vector<int> received(sent.size());
  for (Rank peer{0}; peer < other.size(); ++peer) {
    const bool is_first = peer == 0;
    if (is_first) {
      const auto seen = communicator.probe(Rank::any, Tag{5});
      ASSERT_EQ(seen.status, Status::ok);
      ASSERT_LT(seen.value.source, other.size());
    }
    const auto [status, envelope] = communicator.receive(received, peer, Tag::any);
    ASSERT_EQ(status, Status::ok);
    ASSERT_EQ(envelope, (Envelope{peer, Tag{5}, sent.size() * sizeof(int)}));
    ASSERT_EQ(received, std::vector<int>(sent.size(), other.at(peer).value()));
  }
  ASSERT_EQ(wait_all(requests), Status::ok);
  EXPECT_EQ(communicator.send(1, Rank{other.size()}), Status::invalid);
  EXPECT_EQ(communicator.receive(received, Rank{other.size()}).status, Status::invalid);

  int sum = self.value();  // the collectives of Communicator are about the own side
  ASSERT_EQ(communicator.all_reduce(sum), Status::ok);
  const std::vector<int> ranks = numbers(own);
  ASSERT_EQ(sum, std::accumulate(ranks.begin(), ranks.end(), 0));
}

/// Two random sides of `ranks` ranks, and a communicator of each.
struct Sides {
  Group own;
  Group other;
  NewContext local;
  std::array<int, 2> leaders{};  // of the own side and of the other, as ranks of their sides

  Sides(Communicator& world, Random& random) {
    const auto size = static_cast<std::size_t>(world.size());
    const Group all = some_ranks(random, world.size(), size);
    const auto middle = all.ranks().begin() + static_cast<std::ptrdiff_t>(test::between(random, 1, size - 1));
    own = Group({all.ranks().begin(), middle});
    other = Group({middle, all.ranks().end()});
    leaders = {static_cast<int>(test::between(random, 0, own.ranks().size() - 1)),
               static_cast<int>(test::between(random, 0, other.ranks().size() - 1))};
    if (!own.position(world.group().at(world.rank()))) {
      std::swap(own, other);
      std::swap(leaders[0], leaders[1]);
    }
    local = message::create_context(context_of(world).runtime(), own, context_of(world).id(), 0);
  }

  [[nodiscard]] NewContext join(Communicator& world, int tag) const {
    const bool leads = local.value->rank() == leaders[0];
    const Bridge bridge{&context_of(world), other.at(Rank{leaders[1]}).value()};
    return message::create_inter_context(*local.value, leaders[0], leads ? bridge : Bridge{}, tag);
  }
};

TEST_P(Contexts, JoinTwoSides) {
  const std::uint64_t seed = test::seed();
  run(6, [seed](Communicator& world) {
    Random random(seed);
    for (int round = 0; round < test::rounds(6); ++round) {
      const Sides sides(world, random);
      ASSERT_EQ(sides.local.status, Status::ok);

      const NewContext made = sides.join(world, round % 2);

      ASSERT_NO_FATAL_FAILURE(expect_works_between(made, sides.own, sides.other));
      const NewContext copy = message::duplicate(*made.value);
      ASSERT_NO_FATAL_FAILURE(expect_works_between(copy, sides.own, sides.other));
      ASSERT_NE(copy.value->id(), made.value->id());
      NewContext started{};
      Request request = message::start_duplicate(*copy.value, started.value);
      ASSERT_EQ(request.wait().status, Status::ok);
      ASSERT_NO_FATAL_FAILURE(expect_works_between(started, sides.own, sides.other));
    }
  });
}

TEST_P(Contexts, RefuseSidesWithACommonRank) {
  run(3, [](Communicator& world) {
    const auto make = [&world](std::vector<JobRank> ranks, int tag) {
      return message::create_context(context_of(world).runtime(), Group(std::move(ranks)), 0, tag);
    };
    // Rank 1 would be on both sides. It takes part in both calls, each with a thread.
    const auto join = [&](int own_leader, int other_leader, int tag) {
      const NewContext local = make({JobRank{own_leader}, JobRank{1}}, tag);
      ASSERT_EQ(local.status, Status::ok);
      const Bridge bridge{&context_of(world), other_leader};
      EXPECT_EQ(message::create_inter_context(*local.value, 0, bridge, 9).status, Status::invalid);
    };
    std::vector<std::jthread> calls;
    if (world.rank() != 2) calls.emplace_back(join, 0, 2, 1);
    if (world.rank() != 0) calls.emplace_back(join, 2, 0, 2);
  });
}

TEST_P(Contexts, MergeTwoSides) {
  const std::uint64_t seed = test::seed();
  run(5, [seed](Communicator& world) {
    Random random(seed);
    for (const auto& [first_high, second_high] :
         std::array{std::pair(false, true), std::pair(true, false), std::pair(true, true), std::pair(false, false)}) {
      const Sides sides(world, random);
      const NewContext inter = sides.join(world, 0);
      ASSERT_EQ(inter.status, Status::ok);
      const bool is_first = sides.own.at(Rank{0}) < sides.other.at(Rank{0});
      const bool own_first = first_high == second_high ? is_first : (is_first ? !first_high : !second_high);
      std::vector<JobRank> expected = (own_first ? sides.own : sides.other).ranks();
      for (const JobRank rank : (own_first ? sides.other : sides.own).ranks()) expected.push_back(rank);

      const NewContext merged = message::merge(*inter.value, is_first ? first_high : second_high);

      ASSERT_NO_FATAL_FAILURE(expect_works(merged, Group(expected)));
    }
  });
}

TEST_P(Contexts, SplitTwoSides) {
  const std::uint64_t seed = test::seed();
  run(7, [seed](Communicator& world) {
    Random random(seed);
    for (int round = 0; round < test::rounds(6); ++round) {
      const Sides sides(world, random);
      const NewContext inter = sides.join(world, 0);
      ASSERT_EQ(inter.status, Status::ok);
      std::vector<std::array<int, 2>> choices;  // color and key by rank of the job
      for (int rank = 0; rank < world.size(); ++rank) {
        choices.push_back({static_cast<int>(test::between(random, 0, 3)) - 1, static_cast<int>(random() % 3)});
      }
      const int color = choices[world.rank().index()][0];
      const auto chosen_in = [&](const Group& side) {
        std::vector<JobRank> ranks;
        std::ranges::copy_if(side.ranks(), std::back_inserter(ranks),
                             [&](JobRank rank) { return choices[rank.index()][0] == color; });
        std::ranges::stable_sort(ranks, {}, [&](JobRank rank) { return choices[rank.index()][1]; });
        return Group(std::move(ranks));
      };
      const Group own = chosen_in(sides.own);
      const Group other = chosen_in(sides.other);

      const NewContext made = message::split(*inter.value, color, choices[world.rank().index()][1]);

      ASSERT_EQ(made.status, Status::ok);
      ASSERT_EQ(made.value == nullptr, color < 0 || other.size() == 0);
      if (made.value != nullptr) {
        ASSERT_NO_FATAL_FAILURE(expect_works_between(made, own, other));
      }
    }
  });
}

TEST_P(Contexts, ReduceTwoSidesToSomeOfTheirRanks) {
  run(5, [](Communicator& world) {
    const bool even = world.rank().value() % 2 == 0;
    const Group own = even ? Group({JobRank{0}, JobRank{2}, JobRank{4}}) : Group({JobRank{1}, JobRank{3}});
    const NewContext local = message::create_context(context_of(world).runtime(), own, 0, 0);
    ASSERT_EQ(local.status, Status::ok);
    const NewContext inter = message::create_inter_context(*local.value, 0, {&context_of(world), even ? 1 : 0}, 0);
    ASSERT_EQ(inter.status, Status::ok);
    const Group evens({JobRank{4}, JobRank{2}});
    const Group odds({JobRank{3}});

    const NewContext made = message::create(*inter.value, even ? evens : odds);
    const NewContext nothing = message::create(*inter.value, even ? evens : Group());

    ASSERT_EQ(made.status, Status::ok);
    ASSERT_EQ(made.value == nullptr, world.rank() < 2);
    if (world.rank() >= 2) {
      ASSERT_NO_FATAL_FAILURE(expect_works_between(made, even ? evens : odds, even ? odds : evens));
    }
    EXPECT_EQ(nothing.status, Status::ok);
    EXPECT_EQ(nothing.value, nullptr);
  });
}

TEST_P(Contexts, ReportThatNoNumberIsLeft) {
  run(3, [](Communicator& world) {
    Context& context = context_of(world);
    const NewContext local = message::split(context, world.rank() == 0 ? 0 : 1, 0);
    ASSERT_EQ(local.status, Status::ok);
    const Bridge bridge{&context, world.rank() == 0 ? 1 : 0};
    const NewContext inter = message::create_inter_context(*local.value, 0, bridge, 0);
    ASSERT_EQ(inter.status, Status::ok);
    ASSERT_EQ(world.barrier(), Status::ok);
    context.runtime().engine().session().arena().header().context.store(message::context_id_max);
    ASSERT_EQ(world.barrier(), Status::ok);

    EXPECT_EQ(message::create_context(context.runtime(), world.group(), 0, 0).status, Status::no_memory);
    EXPECT_EQ(message::duplicate(context).status, Status::no_memory);
    EXPECT_EQ(message::split(context, 0, 0).status, Status::no_memory);
    EXPECT_EQ(message::split(context, -1, 0).status, Status::ok);
    EXPECT_EQ(message::create_inter_context(*local.value, 0, bridge, 0).status, Status::no_memory);
    EXPECT_EQ(message::duplicate(*inter.value).status, Status::no_memory);
    EXPECT_EQ(message::split(*inter.value, 0, 0).status, Status::no_memory);
    EXPECT_EQ(message::merge(*inter.value, false).status, Status::no_memory);
    EXPECT_THROW((void)world.duplicate(), SetupError);
    EXPECT_THROW((void)world.split(0, 0), SetupError);
  });
}

/// Runs `body` as ranks of which one throws Killed.
void as_ranks_with_a_death(int ranks, const std::function<void(Communicator&)>& body, const test::Settings& settings) {
  EXPECT_THROW(test::as_ranks(ranks, body, settings), Killed);
}

TEST_P(ContextsAfterDeath, CannotBeMadeWithTheDeadButOfTheLiving) {
  for (const int victim : {0, 1, 3}) {
    as_ranks_with_a_death(
        4,
        [victim](Communicator& world) {
          if (world.rank() == victim) throw Killed{};
          Context& context = context_of(world);
          std::vector<JobRank> living = world.group().ranks();
          std::erase(living, JobRank{victim});

          // Without boards, a rank that does not need the dead one may have made its part.
          const bool all_need_it = context.board() != nullptr;
          const auto expect_failed = [all_need_it](Status status) {
            if (all_need_it || status != Status::ok) {
              EXPECT_EQ(status, Status::peer_gone);
            }
          };
          expect_failed(message::create_context(context.runtime(), world.group(), context.id(), 0).status);
          const NewContext made = message::create_context(context.runtime(), Group(living), context.id(), 1);
          ASSERT_NO_FATAL_FAILURE(expect_works(made, Group(living)));
          std::shared_ptr<Context> copy;
          const Status status = message::start_duplicate(context, copy).wait().status;
          expect_failed(status);
          EXPECT_EQ(copy == nullptr, status != Status::ok);
          EXPECT_EQ(message::split(context, 0, 0).status, Status::peer_gone);
        },
        GetParam().settings);
  }
}

TEST_P(ContextsAfterDeath, WithTwoSidesFailAsTheirRanksDo) {
  as_ranks_with_a_death(
      4,
      [](Communicator& world) {
        constexpr int victim = 3;
        const int side = world.rank().value() / 2;
        const Group own({JobRank{2 * side}, JobRank{2 * side + 1}});
        const NewContext local = message::create_context(context_of(world).runtime(), own, 0, 0);
        ASSERT_EQ(local.status, Status::ok);
        const NewContext inter =
            message::create_inter_context(*local.value, 0, {&context_of(world), side == 0 ? 2 : 0}, 0);
        ASSERT_EQ(inter.status, Status::ok);
        Communicator between = Communicators::of(inter.value);
        int value = 0;
        // On rank 2 these never meet the dead rank: it is on the own side.
        Request from_any = between.start_receive(value, Rank::any, Tag{1});
        Request collective = between.start_barrier();
        std::shared_ptr<Context> copy;
        Request waiting;  // for rank 0, which will have heard of the death before it begins
        if (world.rank() == 1) waiting = message::start_duplicate(*inter.value, copy);
        if (world.rank() == victim) {
          (void)from_any.cancel();
          for (const int peer : {0, 1, 2}) ASSERT_EQ(world.receive(value, Rank{peer}, Tag{2}).status, Status::ok);
          throw Killed{};
        }
        if (side == 0) {
          ASSERT_EQ(collective.wait().status, Status::ok);  // rank 0 and 1 are both there
          ASSERT_EQ(world.send(value, Rank{victim}, Tag{2}), Status::ok);
          EXPECT_EQ(from_any.wait().status, Status::peer_gone);
          if (world.rank() == 0) {
            ASSERT_EQ(between.send(7, Rank{0}, Tag{1}), Status::ok);
          }
          EXPECT_EQ(between.send(7, Rank{1}, Tag{1}), Status::peer_gone);
        } else {
          ASSERT_EQ(world.send(value, Rank{victim}, Tag{2}), Status::ok);
          ASSERT_EQ(from_any.wait().status, Status::ok);
          EXPECT_EQ(value, 7);
        }
        if (world.rank() == 1) {
          EXPECT_EQ(waiting.wait().status, Status::peer_gone);
          ASSERT_EQ(world.send(value, Rank{0}, Tag{3}), Status::ok);
        } else if (world.rank() == 0) {
          EXPECT_EQ(between.barrier(), Status::peer_gone);
          ASSERT_EQ(world.receive(value, Rank{1}, Tag{3}).status, Status::ok);  // until then it does not leave
        }
        EXPECT_EQ(message::duplicate(*inter.value).status, Status::peer_gone);
        EXPECT_EQ(message::merge(*inter.value, false).status, Status::peer_gone);
        EXPECT_EQ(between.barrier(), Status::peer_gone);
      },
      GetParam().settings);
}

}  // namespace
}  // namespace tonari
