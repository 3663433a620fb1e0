#include "../support/traffic.hpp"

#include "../support/collective.hpp"
#include "../support/ranks.hpp"

namespace tonari {
namespace {

class Traffic : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, Traffic, testing::ValuesIn(test::variants_and_network()), test::name_of);

TEST_P(Traffic, RandomMessagesOfEightRanksArriveWholeAndInOrder) {
  constexpr int ranks = 8;
  for (int turn = 0; turn < test::rounds(2); ++turn) {
    const std::uint64_t seed = test::seed() * 1000 + static_cast<std::uint64_t>(turn);
    const test::Plan plan(ranks, 150, seed);
    run(ranks, [&](Communicator& world) {
      test::Player(world, plan, seed).play([](int) { return true; });
      for (std::size_t i = 0; i < 8; ++i) ASSERT_EQ(test::collective(world, i, i * 700), Status::ok);
      ASSERT_FALSE(world.probe_now(Rank::any, Tag::any).has_value());
    });
  }
}

}  // namespace
}  // namespace tonari
