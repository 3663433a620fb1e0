#include "../support/random.hpp"
#include "../support/ranks.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace tonari {
namespace {

using test::as_ranks;
using test::pattern;

class Collectives : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, Collectives, testing::ValuesIn(test::variants_and_network()), test::name_of);

constexpr std::array<std::size_t, 7> sizes{0, 1, 8, 49, 1000, 9001, 100003};
constexpr int ranks_max = 9;

// Returns the contribution of a rank to the collective that `turn` names. No two contributions are the same.
std::vector<std::byte> part(int rank, std::size_t turn, std::size_t bytes) {
  return pattern(bytes, turn * ranks_max + static_cast<std::size_t>(rank));
}

TEST_P(Collectives, ErrorOfOneRankDoesNotDisturbTheNextCollective) {
  for (const std::size_t bytes : {4, 5000, 100000}) {
    run(3, [bytes](Communicator& world) {
      const bool wrong = world.rank() == 1;
      const auto mine = pattern(bytes, 1);
      std::vector<std::byte> all(2 * bytes);  // too short for three parts
      const std::span<int> nothing;           // an empty message, whose send never waits, whatever the settings

      EXPECT_EQ(world.gather(mine, all, Rank{1}), wrong ? Status::invalid : Status::ok);
      EXPECT_EQ(world.broadcast(nothing, Rank{wrong ? 99 : 0}), wrong ? Status::invalid : Status::ok);

      int sum = 1;
      EXPECT_EQ(world.all_reduce(sum), Status::ok);
      EXPECT_EQ(sum, 3);
    });
  }
}

TEST_P(Collectives, GatherAndBroadcastTheRightData) {
  for (int ranks = 1; ranks <= ranks_max; ++ranks) {
    run(ranks, [ranks](Communicator& world) {
      std::size_t turn = 0;
      for (const std::size_t bytes : sizes) {
        for (int root = 0; root < ranks; root += 1 + ranks / 4, ++turn) {
          auto values = part(world.rank().value(), turn, bytes);
          const auto mine = values;
          std::vector<std::byte> all(world.rank() == root ? bytes * static_cast<std::size_t>(ranks) : 0);

          ASSERT_EQ(world.gather(mine, all, Rank{root}), Status::ok);
          ASSERT_EQ(world.broadcast(values, Rank{root}), Status::ok);

          ASSERT_TRUE(values == part(root, turn, bytes)) << bytes << " bytes from " << root << " of " << ranks;
          for (int rank = 0; world.rank() == root && rank < ranks; ++rank) {
            const auto expected = part(rank, turn, bytes);
            const auto at = all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * bytes);
            ASSERT_TRUE(std::equal(expected.begin(), expected.end(), at)) << bytes << " bytes of " << rank;
          }
        }
      }
    });
  }
}

// Returns how many elements `rank` has in the collectives with counts. Some ranks have none.
std::vector<std::size_t> uneven_counts(int ranks, std::size_t most) {
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < ranks; ++rank)
    counts.push_back(rank % 3 == 1 ? 0 : most / static_cast<std::size_t>(rank + 1));
  return counts;
}
std::size_t sum_of(std::span<const std::size_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}
// Returns the parts of all ranks, one after the other.
std::vector<std::byte> all_parts(std::size_t turn, std::span<const std::size_t> counts) {
  std::vector<std::byte> all;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const auto each = part(static_cast<int>(rank), turn, counts[rank]);
    all.insert(all.end(), each.begin(), each.end());
  }
  return all;
}

TEST_P(Collectives, GatherAndScatterPartsOfAllSizes) {
  for (int ranks = 1; ranks <= ranks_max; ++ranks) {
    run(ranks, [ranks](Communicator& world) {
      const auto me = world.rank().index();
      for (const std::size_t bytes : {0, 1, 48, 3000, 60001}) {
        const std::vector<std::size_t> equal(static_cast<std::size_t>(ranks), bytes);
        const auto uneven = uneven_counts(ranks, bytes);
        for (int root = 0; root < ranks; root += 1 + ranks / 2) {
          const bool is_root = world.rank() == root;
          const auto turn = bytes + static_cast<std::size_t>(root);
          const auto expected = all_parts(turn, equal);
          const auto expected_uneven = all_parts(turn, uneven);
          std::vector<std::byte> mine(bytes);
          std::vector<std::byte> mine_uneven(uneven[me]);
          std::vector<std::byte> all(is_root ? sum_of(uneven) : 0);

          ASSERT_EQ(world.scatter(is_root ? expected : all, mine, Rank{root}), Status::ok);
          ASSERT_EQ(world.scatter_v(is_root ? expected_uneven : all, uneven, mine_uneven, Rank{root}), Status::ok);
          ASSERT_EQ(world.gather_v(mine_uneven, all, uneven, Rank{root}), Status::ok);

          ASSERT_TRUE(mine == part(world.rank().value(), turn, bytes));
          ASSERT_TRUE(mine_uneven == part(world.rank().value(), turn, uneven[me]));
          if (is_root) {
            ASSERT_TRUE(all == expected_uneven);
          }

          std::vector<std::byte> everywhere(expected.size());
          std::vector<std::byte> everywhere_uneven(expected_uneven.size());
          ASSERT_EQ(world.all_gather(mine, everywhere), Status::ok);
          ASSERT_EQ(world.all_gather_v(mine_uneven, everywhere_uneven, uneven), Status::ok);
          ASSERT_TRUE(everywhere == expected);
          ASSERT_TRUE(everywhere_uneven == expected_uneven);
        }
      }
    });
  }
}

TEST_P(Collectives, ExchangePartsOfAllSizes) {
  for (int ranks = 1; ranks <= ranks_max; ++ranks) {
    run(ranks, [ranks](Communicator& world) {
      // Rank i sends i * j % 5 * `scale` ints to rank j.
      const auto count = [](int from, int to, int scale) { return static_cast<std::size_t>(from * to % 5 * scale); };
      const auto value = [](int from, int to) { return from * 100 + to; };
      for (const int scale : {0, 1, 5000}) {
        std::vector<int> sent;
        std::vector<int> expected;
        std::vector<int> equal;
        std::vector<int> equal_expected;
        std::vector<std::size_t> to;
        std::vector<std::size_t> from;
        for (int other = 0; other < ranks; ++other) {
          to.push_back(count(world.rank().value(), other, scale));
          from.push_back(count(other, world.rank().value(), scale));
          sent.insert(sent.end(), to.back(), value(world.rank().value(), other));
          expected.insert(expected.end(), from.back(), value(other, world.rank().value()));
          equal.insert(equal.end(), static_cast<std::size_t>(scale), value(world.rank().value(), other));
          equal_expected.insert(equal_expected.end(), static_cast<std::size_t>(scale),
                                value(other, world.rank().value()));
        }
        std::vector<int> received(expected.size(), -1);
        std::vector<int> equal_received(equal_expected.size(), -1);

        Request uneven = world.start_all_to_all_v(sent, to, received, from);
        ASSERT_EQ(world.all_to_all(equal, equal_received), Status::ok);
        ASSERT_EQ(uneven.wait().status, Status::ok);

        ASSERT_EQ(received, expected);
        ASSERT_EQ(equal_received, equal_expected);
      }
    });
  }
}

TEST(CollectiveArguments, MismatchReturnsInvalidAndStartsNothing) {
  as_ranks(2, [](Communicator& world) {
    std::vector<int> some(4);
    std::vector<int> others(4);
    const std::vector<std::size_t> good{2, 2};
    const std::vector<std::size_t> too_many{2, 3};
    const std::vector<std::size_t> overflow{2, ~std::size_t{0}};
    const std::vector<std::size_t> of_three{1, 1, 1};
    EXPECT_EQ(world.reduce(some, Rank{2}), Status::invalid);
    EXPECT_EQ(world.scatter(some, others, Rank{-1}), Status::invalid);
    EXPECT_EQ(world.all_gather(some, others), Status::invalid);
    EXPECT_EQ(world.all_to_all(std::vector<int>(3), others), Status::invalid);
    for (const auto& counts : {too_many, overflow, of_three}) {
      EXPECT_EQ(world.all_gather_v(some, others, counts), Status::invalid);
      EXPECT_EQ(world.all_to_all_v(some, counts, others, good), Status::invalid);
      EXPECT_EQ(world.all_to_all_v(some, good, others, counts), Status::invalid);
      EXPECT_EQ(world.gather_v(some, others, counts, Rank{0}), world.rank() == 0 ? Status::invalid : Status::ok);
      EXPECT_EQ(world.scatter_v(some, counts, others, Rank{0}), Status::invalid);
    }
    ASSERT_EQ(world.barrier(), Status::ok);
  });
}

// Composes the maps x -> a x + b: an associative operation that does not commute.
struct Affine {
  std::uint64_t a;
  std::uint64_t b;
  bool operator==(const Affine&) const = default;
};
constexpr auto then = [](const Affine& first, const Affine& second) {
  return Affine{first.a * second.a, first.b * second.a + second.b};
};
Affine affine_of(int rank, std::size_t i) {
  const auto seed = static_cast<std::uint64_t>(rank) * 1000003 + i;
  return {seed * 2 + 3, seed + 7};
}

TEST_P(Collectives, ReduceInTheOrderOfRanks) {
  for (int ranks = 1; ranks <= ranks_max; ++ranks) {
    run(ranks, [ranks](Communicator& world) {
      for (const std::size_t count : {0, 1, 3, 255, 700, 7001}) {
        std::vector<Affine> values(count);
        for (std::size_t i = 0; i < count; ++i) values[i] = affine_of(world.rank().value(), i);

        ASSERT_EQ(world.all_reduce(values, then), Status::ok);

        for (std::size_t i = 0; i < count; ++i) {
          Affine expected = affine_of(0, i);
          for (int rank = 1; rank < ranks; ++rank) expected = then(expected, affine_of(rank, i));
          ASSERT_EQ(values[i], expected) << "element " << i << " of " << count << " on " << ranks << " ranks";
        }
      }
    });
  }
}

TEST_P(Collectives, ReduceToOneAndScanInTheOrderOfRanks) {
  for (int ranks = 1; ranks <= ranks_max; ++ranks) {
    run(ranks, [ranks](Communicator& world) {
      const auto up_to = [](int last, std::size_t i) {
        Affine result = affine_of(0, i);
        for (int rank = 1; rank <= last; ++rank) result = then(result, affine_of(rank, i));
        return result;
      };
      for (const std::size_t count : {0, 1, 3, 700, 7001}) {
        std::vector<Affine> mine(count);
        for (std::size_t i = 0; i < count; ++i) mine[i] = affine_of(world.rank().value(), i);
        for (int root = 0; root < ranks; root += 1 + ranks / 3) {
          auto values = mine;
          ASSERT_EQ(world.reduce(values, Rank{root}, then), Status::ok);
          for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(values[i], world.rank() == root ? up_to(ranks - 1, i) : mine[i]);
          }
        }
        auto values = mine;
        auto exclusive = mine;
        Request scan = world.start_scan(values, then);
        ASSERT_EQ(world.exclusive_scan(exclusive, then), Status::ok);
        ASSERT_EQ(scan.wait().status, Status::ok);
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(values[i], up_to(world.rank().value(), i));
          ASSERT_EQ(exclusive[i], world.rank() == 0 ? mine[i] : up_to(world.rank().value() - 1, i));
        }
      }
    });
  }
}

// This holds for each way of the data: in a line, in a block, between programs, and as messages where no board is left.
// Each host combines the values of its own ranks first.
TEST_P(Collectives, GiveTheSameRoundingEachTimeAndOnEveryRank) {
  const auto value_of = [](int rank, std::size_t i) { return 1.0 / (1.0 + static_cast<double>(i) + 1e6 * rank); };
  const int of_host = GetParam().name == "TwoAHost" ? 2 : 1;
  const auto value_of_host = [&](int first, int ranks, std::size_t i) {
    double sum = value_of(first, i);
    for (int rank = first + 1; rank < std::min(first + of_host, ranks); ++rank) sum += value_of(rank, i);
    return sum;
  };
  for (const int ranks : {2, 5, 8}) {
    run(ranks, [&](Communicator& world) {
      std::vector<Communicator> others;
      for (int i = 0; i < 10; ++i) others.push_back(world.duplicate());
      for (const std::size_t count : {std::size_t{4}, std::size_t{501}, std::size_t{9001}}) {
        std::vector<double> values(count);
        std::vector<double> in_order(count);
        for (std::size_t i = 0; i < count; ++i) {
          values[i] = value_of(world.rank().value(), i);
          in_order[i] = value_of_host(0, ranks, i);
          for (int rank = of_host; rank < ranks; rank += of_host) in_order[i] += value_of_host(rank, ranks, i);
        }
        for (Communicator& each : others) {
          std::vector<double> sum = values;
          ASSERT_EQ(each.all_reduce(sum), Status::ok);
          ASSERT_EQ(std::memcmp(sum.data(), in_order.data(), count * sizeof(double)), 0);
        }
      }
    });
  }
}

TEST_P(Collectives, DifferentLengthsLeaveNoRankWaiting) {
  using Call = std::function<Status(Communicator&, std::span<int>)>;
  constexpr std::plus<> plus;
  const std::vector<Call> calls{
      [&](Communicator& world, std::span<int> values) { return world.reduce(values, Rank{0}, plus); },
      [&](Communicator& world, std::span<int> values) { return world.reduce(values, Rank{2}, plus); },
      [&](Communicator& world, std::span<int> values) { return world.scan(values, plus); },
      [&](Communicator& world, std::span<int> values) { return world.exclusive_scan(values, plus); },
      [&](Communicator& world, std::span<int> values) { return world.all_reduce(values); },
      [&](Communicator& world, std::span<int> values) { return world.broadcast(values, Rank{1}); },
  };
  run(5, [&](Communicator& world) {
    for (const Call& call : calls) {
      for (int other = 0; other < world.size(); ++other) {
        for (const std::size_t count : {10, 100, 5000, 50000}) {
          std::vector<int> values(world.rank() == other ? count + 7 : count, 1);
          const Status status = call(world, values);
          EXPECT_TRUE(status == Status::ok || status == Status::invalid) << to_string(status);
          int wrong = status == Status::ok ? 0 : 1;
          ASSERT_EQ(world.all_reduce(wrong), Status::ok);
          EXPECT_GT(wrong, 0);
        }
      }
    }
  });
}

double larger(double a, double b) { return a > b ? a : b; }

TEST(CollectiveArguments, TheOperationMayBeAFunction) {
  test::as_ranks(3, [](Communicator& world) {
    double value = world.rank().value();
    ASSERT_EQ(world.all_reduce(value, larger), Status::ok);
    EXPECT_EQ(value, 2);
    value = -world.rank().value();
    ASSERT_EQ(world.start_all_reduce(value, larger).wait().status, Status::ok);
    EXPECT_EQ(value, 0);
    value = world.rank().value();
    ASSERT_EQ(world.all_reduce(value, &larger), Status::ok);
    EXPECT_EQ(value, 2);
  });
}

TEST_P(Collectives, StartedTogetherEndInAnyOrder) {
  for (const int ranks : {1, 2, 3, 6}) {
    run(ranks, [ranks](Communicator& world) {
      Communicator other = world.duplicate();
      test::Random random(test::seed() +
                          static_cast<std::uint64_t>(world.rank().value()));  // each rank waits in another order
      for (int turn = 0; turn < test::rounds(10); ++turn) {
        const int root = turn % ranks;
        std::vector<int> sent(5000, world.rank() == root ? turn : -1);
        std::vector<int> sent_too(30, world.rank() == root ? turn + 1 : -1);
        std::vector<int> gathered(static_cast<std::size_t>(ranks));
        long sum = world.rank().value();
        long product = world.rank().value() + 1;
        const int mine = world.rank().value() + turn;
        constexpr std::multiplies<> times;
        std::vector<Request> requests;
        requests.push_back(world.start_broadcast(sent, Rank{root}));
        requests.push_back(other.start_all_reduce(product, times));
        requests.push_back(world.start_all_reduce(sum));
        requests.push_back(world.start_barrier());
        requests.push_back(other.start_broadcast(sent_too, Rank{root}));
        requests.push_back(world.start_gather(mine, gathered, Rank{root}));

        std::shuffle(requests.begin(), requests.end(), random);
        if (turn % 3 == 0) {
          ASSERT_EQ(wait_all(requests), Status::ok);
        } else if (turn % 3 == 1) {
          for (Request& request : requests) ASSERT_EQ(request.wait().status, Status::ok);
        } else {
          while (wait_any(requests) != requests.size()) {
          }
        }

        ASSERT_EQ(sent, std::vector<int>(5000, turn));
        ASSERT_EQ(sent_too, std::vector<int>(30, turn + 1));
        ASSERT_EQ(sum, ranks * (ranks - 1) / 2);
        long factorial = 1;
        for (int i = 1; i <= ranks; ++i) factorial *= i;
        ASSERT_EQ(product, factorial);
        for (int rank = 0; world.rank() == root && rank < ranks; ++rank) {
          ASSERT_EQ(gathered[static_cast<std::size_t>(rank)], rank + turn);
        }
      }
    });
  }
}

TEST_P(Collectives, AStartedOneProceedsWhileItsRankWaitsForAMessage) {
  // Rank 2 forwards rank 0's broadcast to rank 3. Rank 3 sends to rank 2 only after it has the broadcast.
  run(4, [](Communicator& world) {
    std::vector<int> values(20000, world.rank() == 0 ? 7 : 0);
    Request broadcast = world.start_broadcast(values, Rank{0});
    int answer = 0;
    if (world.rank() == 2) {
      ASSERT_EQ(world.receive(answer, Rank{3}).status, Status::ok);
    }
    ASSERT_EQ(broadcast.wait().status, Status::ok);
    if (world.rank() == 3) {
      ASSERT_EQ(world.send(answer, Rank{2}), Status::ok);
    }
    ASSERT_EQ(values, std::vector<int>(20000, 7));
  });
}

TEST_P(Collectives, AreSeparateFromMessagesAndFromEachOther) {
  // Messages with the same tags and ranks go through three communicators, while collectives run.
  run(4, [](Communicator& world) {
    Communicator copy = world.duplicate();
    auto half = world.split(world.rank().value() % 2, -world.rank().value());
    ASSERT_TRUE(half.has_value());
    ASSERT_EQ(half->size(), 2);
    ASSERT_EQ(half->rank(), world.rank() < 2 ? 1 : 0);  // ordered by descending rank
    EXPECT_FALSE(world.split(world.rank() == 0 ? 0 : -1, 0).has_value() != (world.rank() == 0));

    const std::array<Communicator*, 3> communicators{&world, &copy, &*half};
    std::array<std::array<int, 3>, 3> received{};
    std::vector<Request> requests;
    for (std::size_t which = 0; which < 3; ++which) {
      Communicator& each = *communicators[which];
      const int next = (each.rank().value() + 1) % each.size();
      for (int i = 0; i < 3; ++i) {
        requests.push_back(each.start_receive(received[which][static_cast<std::size_t>(i)], Rank::any, Tag{i}));
      }
      for (int i = 2; i >= 0; --i) {
        const int value = static_cast<int>(which) * 100 + each.rank().value() * 10 + i;
        ASSERT_EQ(each.send(value, Rank{next}, Tag{i}), Status::ok);
      }
    }
    ASSERT_EQ(world.barrier(), Status::ok);
    ASSERT_EQ(wait_all(requests), Status::ok);
    for (std::size_t which = 0; which < 3; ++which) {
      Communicator& each = *communicators[which];
      const int previous = (each.rank().value() + each.size() - 1) % each.size();
      for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(received[which][static_cast<std::size_t>(i)], static_cast<int>(which) * 100 + previous * 10 + i);
      }
    }
  });
}

TEST(CollectivesThatFail, EndOnlyWhenNoneOfTheirBuffersIsInUse) {
  // Rank 1 gives more than the root expects; rank 2 gives its part last.
  as_ranks(3, [](Communicator& world) {
    std::array<int, 2> both{11, 12};
    std::array<int, 3> all{};
    const int mine = world.rank().value() + 10;
    int go = 0;
    if (world.rank() == 0) {
      Request request = world.start_gather(mine, all, Rank{0});
      ASSERT_EQ(world.receive(go, Rank{1}).status, Status::ok);  // rank 1's part has arrived
      ASSERT_FALSE(request.test().has_value());
      ASSERT_FALSE(request.test().has_value());
      ASSERT_EQ(world.send(go, Rank{2}), Status::ok);
      ASSERT_EQ(request.wait().status, Status::invalid);
      ASSERT_EQ(all[2], 12);
    } else if (world.rank() == 1) {
      ASSERT_EQ(world.gather(both, all, Rank{0}), Status::ok);
      ASSERT_EQ(world.send(go, Rank{0}), Status::ok);
    } else {
      ASSERT_EQ(world.receive(go, Rank{0}).status, Status::ok);
      ASSERT_EQ(world.gather(mine, all, Rank{0}), Status::ok);
    }
  });
}

}  // namespace
}  // namespace tonari
