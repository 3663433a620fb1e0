#include "message/collectives.hpp"
#include "predict/applications.hpp"
#include "predict/fitting.hpp"
#include "predict/operations.hpp"
#include "predict/simulation.hpp"

#include "../support/random.hpp"
#include "../support/ranks.hpp"

#include <tonari/status.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

namespace tonari::bench::predict {
namespace {

constexpr std::size_t kib = 1024;

// Costs that depend on the size linearly, so that closed forms are short.
Parameters linear(double latency_us, double send_us, double receive_us, double gap_us, double us_per_byte = 0) {
  const std::vector<MessageCost> points{
      {0, latency_us, send_us, receive_us, 0, gap_us},
      {kib, latency_us + kib * us_per_byte, send_us, receive_us, 0, gap_us + kib * us_per_byte}};
  return {.in_host = Costs(points, std::size_t{1} << 40),
          .between_hosts = Costs(points, std::size_t{1} << 40),
          .copy_us_per_byte = 0,
          .fold_us_per_byte = 0,
          .switch_us = 0,
          .lu_gflops = {},
          .himeno_mflops = {}};
}

int log2_above(int ranks) { return std::bit_width(static_cast<unsigned>(ranks) - 1); }

TEST(Prediction, NeedsNoTimeAndNoMessagesForOneRank) {
  for (const auto collective :
       {Collective::barrier, Collective::broadcast, Collective::all_reduce, Collective::all_to_all}) {
    const Outcome outcome = predict(collective, 8, {.ranks = 1}, linear(1, 2, 3, 4));
    EXPECT_EQ(outcome.time_us, 0) << name_of(collective);
    EXPECT_EQ(outcome.messages, 0U);
    EXPECT_EQ(outcome.rounds, 0U);
  }
}

TEST(Prediction, HasTheRoundsOfADisseminationForABarrier) {
  for (const int ranks : {2, 3, 4, 7, 8, 9, 64, 65, 1000}) {
    const auto rounds = log2_above(ranks);
    const Outcome outcome = predict(Collective::barrier, 0, {.ranks = ranks}, linear(5, 1, 2, 0));
    EXPECT_EQ(outcome.rounds, static_cast<std::uint64_t>(rounds)) << ranks;
    EXPECT_EQ(outcome.messages, static_cast<std::uint64_t>(rounds) * static_cast<std::uint64_t>(ranks));
    EXPECT_EQ(outcome.messages_between_hosts, outcome.messages);
    EXPECT_DOUBLE_EQ(outcome.time_us, rounds * (1 + 5 + 2.0)) << ranks;
  }
}

TEST(Prediction, HasOneMessagePerHostAndRoundForABarrierOfSeveralRanksPerHost) {
  const Outcome outcome = predict(Collective::barrier, 0, {.ranks = 24, .ranks_per_host = 4}, linear(5, 1, 2, 0));
  EXPECT_EQ(outcome.messages_between_hosts, 6U * 3U);
  EXPECT_EQ(outcome.messages, 6U * 3U + 2U * 6U * 3U);  // each rank but the first of a host sends one and receives one
}

// In a binomial tree of 2^k ranks the last rank has the data after k steps, if sends take no longer than the way.
TEST(Prediction, FollowsABinomialTreeForABroadcast) {
  for (const int ranks : {2, 4, 8, 64, 1024}) {
    const Outcome outcome = predict(Collective::broadcast, kib, {.ranks = ranks}, linear(5, 1, 2, 0));
    EXPECT_EQ(outcome.messages, static_cast<std::uint64_t>(ranks) - 1);
    EXPECT_DOUBLE_EQ(outcome.time_us, log2_above(ranks) * (1 + 5 + 2.0)) << ranks;
  }
}

// If only the root's sends cost, its children get the data one after the other; the farthest, which has the most to
// forward, is the first.
TEST(Prediction, CountsTheTimeOfEachSendOfABroadcast) {
  EXPECT_DOUBLE_EQ(predict(Collective::broadcast, 8, {.ranks = 4}, linear(0, 1, 0, 0)).time_us, 2);
  EXPECT_DOUBLE_EQ(predict(Collective::broadcast, 8, {.ranks = 1024}, linear(0, 1, 0, 0)).time_us, 10);
}

TEST(Prediction, HasAReduceAndABroadcastForALargeAllReduce) {
  for (const int ranks : {128, 1024}) {
    const Outcome outcome = predict(Collective::all_reduce, 8, {.ranks = ranks}, linear(5, 0, 0, 0));
    EXPECT_EQ(outcome.messages, 2 * (static_cast<std::uint64_t>(ranks) - 1));
    EXPECT_DOUBLE_EQ(outcome.time_us, 2 * log2_above(ranks) * 5.0);
  }
}

TEST(Prediction, GathersAllValuesForASmallAllReduce) {
  auto parameters = linear(5, 0, 0, 0);
  parameters.fold_us_per_byte = 0.5;
  const Outcome outcome = predict(Collective::all_reduce, 8, {.ranks = 16}, parameters);
  EXPECT_EQ(outcome.messages, 16U * 4U);
  EXPECT_DOUBLE_EQ(outcome.time_us, 4 * 5.0 + 15 * 8 * 0.5);
}

TEST(Prediction, WithoutCostsTakesNoTime) {
  for (const int ranks : {2, 5, 100}) {
    EXPECT_EQ(predict(Collective::all_reduce, 64 * kib, {.ranks = ranks}, linear(0, 0, 0, 0)).time_us, 0);
    EXPECT_EQ(predict(Collective::all_to_all, 64, {.ranks = ranks}, linear(0, 0, 0, 0)).time_us, 0);
  }
}

TEST(Prediction, IsTheClosedFormOfAnAllToAllIfAllRanksDoTheSame) {
  for (const int ranks : {2, 3, 64, 65, 200}) {
    const auto parameters = linear(5, 1, 2, 1.5, 0.001);
    const Outcome simulated = predict(Collective::all_to_all, kib, {.ranks = ranks}, parameters);
    const Outcome closed = symmetric_all_to_all(kib, {.ranks = ranks}, parameters);
    EXPECT_EQ(simulated.messages, static_cast<std::uint64_t>(ranks) * (static_cast<std::uint64_t>(ranks) - 1));
    EXPECT_EQ(closed.messages, simulated.messages);
    EXPECT_EQ(closed.messages_between_hosts, simulated.messages_between_hosts);
    EXPECT_EQ(closed.rounds, simulated.rounds);
    EXPECT_NEAR(closed.time_us, simulated.time_us, 1e-9 * closed.time_us) << ranks;
  }
}

TEST(Prediction, IsNearTheClosedFormOfAnAllToAllOfManyRanksPerHost) {
  const Shape shape{.ranks = 100, .ranks_per_host = 8};  // the last host has fewer
  const auto parameters = linear(5, 1, 2, 1.5, 0.01);
  const Outcome simulated = predict(Collective::all_to_all, kib, shape, parameters);
  const Outcome closed = symmetric_all_to_all(kib, shape, parameters);
  EXPECT_EQ(closed.messages_between_hosts, simulated.messages_between_hosts);
  EXPECT_NEAR(closed.time_us, simulated.time_us, 0.2 * simulated.time_us);
}

// A job between hosts sends as many messages as the simulated ranks.
TEST(Prediction, CountsTheMessagesOfAJob) {
  for (const int ranks : {3, 5, 8}) {
    std::atomic<std::uint64_t> barrier{0}, broadcast{0}, all_reduce{0};
    test::as_jobs(ranks,
                  [&](Job& job) {
                    Communicator world(job);
                    std::vector<double> values(1000, 1.0);
                    const auto count = [&](std::atomic<std::uint64_t>& messages, auto call) {
                      const auto before = job.statistics().messages_sent;
                      ASSERT_EQ(call(), Status::ok);
                      messages += job.statistics().messages_sent - before;
                    };
                    count(barrier, [&] { return world.barrier(); });
                    count(broadcast, [&] { return world.broadcast(values, Rank{0}); });
                    count(all_reduce, [&] { return world.all_reduce(values, std::plus<>()); });
                  },
                  {"TONARI_APART=network", "TONARI_APART_RANKS=2", test::network_setting()});
    const Shape shape{.ranks = ranks, .ranks_per_host = 2};
    const auto expected = [&](Collective collective) {
      return predict(collective, 8000, shape, linear(5, 1, 2, 3)).messages;
    };
    EXPECT_EQ(barrier, expected(Collective::barrier)) << ranks;
    EXPECT_EQ(broadcast, expected(Collective::broadcast)) << ranks;
    EXPECT_EQ(all_reduce, expected(Collective::all_reduce)) << ranks;
  }
}

// The sender's messages leave one gap apart, and the link of the host carries one at a time.
TEST(Simulation, KeepsMessagesAGapApart) {
  Programs programs;
  programs.begin_rank();
  for (int i = 0; i < 3; ++i) programs.send(1, 0);
  programs.wait();
  programs.begin_rank();
  for (int i = 0; i < 3; ++i) programs.receive(0, 0);
  programs.wait();
  EXPECT_DOUBLE_EQ(simulate(linear(5, 1, 2, 10), {.ranks = 2}, programs).time_us, 1 + 2 * 10 + 5 + 2);
}

TEST(Simulation, SharesTheLinkOfAHost) {
  Programs programs;  // two ranks of one host send 1 KiB each to two of another
  for (int rank = 0; rank < 4; ++rank) {
    programs.begin_rank();
    rank < 2 ? programs.send(rank + 2, kib) : programs.receive(rank - 2, kib);
    programs.wait();
  }
  const auto parameters = linear(5, 0, 0, 0, 0.01);
  EXPECT_DOUBLE_EQ(simulate(parameters, {.ranks = 4, .ranks_per_host = 2}, programs).time_us, 5 + 2 * 10.24);
  EXPECT_DOUBLE_EQ(simulate(parameters, {.ranks = 4, .ranks_per_host = 4}, programs).time_us, 5 + 10.24);
}

TEST(Simulation, SharesCores) {
  Programs programs;
  for (int rank = 0; rank < 6; ++rank) {
    programs.begin_rank();
    programs.work(10);
  }
  EXPECT_DOUBLE_EQ(simulate(linear(0, 0, 0, 0), {.ranks = 6}, programs).time_us, 10);
  EXPECT_DOUBLE_EQ(simulate(linear(0, 0, 0, 0), {.ranks = 6, .cores = 2}, programs).time_us, 30);
  auto parameters = linear(0, 0, 0, 0);
  parameters.switch_us = 3;
  EXPECT_DOUBLE_EQ(simulate(parameters, {.ranks = 6, .cores = 2}, programs).time_us, 3 * 13);
}

// A message that comes before its receive waits. An announced one leaves only when the receive is posted, and its
// sender waits for it.
TEST(Simulation, ReceivesMessagesThatCameEarly) {
  const auto late = [](std::size_t eager_bytes_max) {
    auto parameters = linear(5, 0, 0, 0);
    parameters.between_hosts = Costs({{0, 5, 0, 0, 0, 0}, {kib, 20, 0, 0, 0, 0}}, eager_bytes_max);
    Programs programs;
    programs.begin_rank();
    programs.send(1, kib);
    programs.wait();
    programs.begin_rank();
    programs.work(100);
    programs.receive(0, kib);
    programs.wait();
    return simulate(parameters, {.ranks = 2}, programs).time_us;
  };
  EXPECT_DOUBLE_EQ(late(kib), 100);
  EXPECT_DOUBLE_EQ(late(kib - 1), 100 + 20 - 5);
}

TEST(Simulation, RefusesProgramsThatDeadlock) {
  Programs programs;
  for (int rank = 0; rank < 2; ++rank) {
    programs.begin_rank();
    programs.receive(1 - rank, 0);
    programs.wait();
  }
  EXPECT_THROW(simulate(linear(1, 1, 1, 1), {.ranks = 2}, programs), std::logic_error);
}

TEST(Simulation, GivesTheSameResultAgain) {
  test::Random random(test::seed());
  for (int trial = 0; trial < 20; ++trial) {
    const Shape shape{.ranks = static_cast<int>(test::between(random, 2, 300)),
                      .ranks_per_host = static_cast<int>(test::between(random, 1, 9))};
    const auto parameters = linear(5, 1, 2, 3, 0.001);
    const auto bytes = 8 * test::between(random, 0, 4000);
    EXPECT_EQ(predict(Collective::all_reduce, bytes, shape, parameters).time_us,
              predict(Collective::all_reduce, bytes, shape, parameters).time_us);
  }
}

// Each send of a collective must have its receive, with the same number of bytes, for any number of ranks and hosts.
TEST(Recording, PairsSendsWithReceives) {
  test::Random random(test::seed());
  for (int trial = 0; trial < 60; ++trial) {
    const Shape shape{.ranks = static_cast<int>(test::between(random, 1, 150)),
                      .ranks_per_host = static_cast<int>(test::between(random, 1, 20))};
    const auto bytes = 8 * test::between(random, 0, 2000);
    for (const auto collective :
         {Collective::barrier, Collective::broadcast, Collective::all_reduce, Collective::all_to_all}) {
      auto programs = record(collective, bytes, shape, {0, 0});
      std::map<std::tuple<int, int, std::size_t>, int> open;
      for (int rank = 0; rank < shape.ranks; ++rank) {
        for (std::size_t i = programs.start(rank); i < programs.end(rank); ++i) {
          const auto step = programs.step(i);
          if (step.kind() == Programs::Kind::send) ++open[{rank, step.peer(), step.bytes()}];
          if (step.kind() == Programs::Kind::receive) --open[{step.peer(), rank, step.bytes()}];
        }
      }
      for (const auto& [message, count] : open) ASSERT_EQ(count, 0) << name_of(collective);
    }
  }
}

// The sender's core is busy with the data of an announced message once the receive is posted.
TEST(Simulation, CountsTheSendersTimeForTheData) {
  const auto time_us = [](int cores) {
    auto parameters = linear(0, 0, 0, 0);
    parameters.between_hosts = Costs({{0, 5, 0, 4, 0, 0}, {kib, 20, 0, 4, 16, 0}}, 0);
    Programs programs;
    programs.begin_rank();
    programs.send(1, kib);
    programs.wait();
    programs.begin_rank();
    programs.receive(0, kib);
    programs.wait();
    return simulate(parameters, {.ranks = 2, .cores = cores}, programs).time_us;
  };
  EXPECT_DOUBLE_EQ(time_us(0), 20 + 4);
  EXPECT_DOUBLE_EQ(time_us(1), 5 + 16 + 4);
}

TEST(Applications, TakeTheTimeOfTheirOperationsOnOneRank) {
  auto parameters = linear(5, 1, 2, 3);
  EXPECT_THROW(predict_lu({}, {.ranks = 1}, parameters), SetupError);
  EXPECT_THROW(predict_himeno({}, {.ranks = 1}, parameters), SetupError);
  parameters.lu_gflops = 2;
  parameters.himeno_mflops = 1000;
  const LuSize size{.order = 960, .block = 32};
  const double lu_us = size.operations() / 2e3;
  EXPECT_NEAR(predict_lu(size, {.ranks = 1}, parameters).time_us, lu_us, 0.02 * lu_us);
  EXPECT_NEAR(predict_himeno({}, {.ranks = 1}, parameters).time_us, 126 * HimenoSize{}.operations_per_plane() / 1000,
              1);
}

TEST(Applications, ExchangeWhatTheBenchmarksExchange) {
  auto parameters = linear(0, 0, 0, 0);
  parameters.lu_gflops = 2;
  parameters.himeno_mflops = 1000;
  const LuSize size{.order = 960, .block = 32};
  const Outcome lu = predict_lu(size, {.ranks = 4}, parameters);
  EXPECT_EQ(lu.messages, 30U * 3U);  // each panel goes to three ranks
  EXPECT_LT(lu.time_us, size.operations() / 2e3 / 2);
  EXPECT_GT(lu.time_us, size.operations() / 2e3 / 4);
  const Outcome himeno = predict_himeno({}, {.ranks = 4}, parameters);
  EXPECT_EQ(himeno.messages, 3U * 2U);
  EXPECT_NEAR(himeno.time_us, 32 * HimenoSize{}.operations_per_plane() / 1000, 1);
  EXPECT_THROW(predict_lu(size, {.ranks = 31}, parameters), SetupError);
  EXPECT_THROW(predict_himeno({}, {.ranks = 127}, parameters), SetupError);
}

TEST(Fitting, DividesHalfARoundTrip) {
  const auto fitted = [](const Measured& measured) { return fit_costs({measured}, 100)["sizes"][0]; };
  const auto slow = fitted({.bytes = 8, .half_round_trip_us = 20, .send_us = 3, .gap_us = 4, .exchange_us = 19});
  EXPECT_DOUBLE_EQ(slow["receive_us"], 4);
  EXPECT_DOUBLE_EQ(slow["latency_us"], 13);
  const auto busy = fitted({.bytes = 8, .half_round_trip_us = 5, .send_us = 4, .gap_us = 4, .exchange_us = 7});
  EXPECT_DOUBLE_EQ(busy["receive_us"], 3);
  EXPECT_DOUBLE_EQ(busy["latency_us"], -2);
  const auto announced =
      fitted({.bytes = 200, .half_round_trip_us = 20, .send_us = 3, .gap_us = 10, .exchange_us = 30});
  EXPECT_DOUBLE_EQ(announced["receive_us"], 10);
  EXPECT_DOUBLE_EQ(announced["push_us"], 17);
  EXPECT_DOUBLE_EQ(announced["latency_us"], 7);
}

TEST(Fitting, HasAnErrorForSizesThatWereNotMeasured) {
  const auto of = [](std::size_t bytes, double us) { return Measured{.bytes = bytes, .half_round_trip_us = us}; };
  EXPECT_EQ(residual_error({}), 0);
  EXPECT_EQ(residual_error({of(8, 1), of(16, 2)}), 0);
  EXPECT_DOUBLE_EQ(residual_error({of(8, 1), of(16, 2), of(24, 3)}), 0);
  EXPECT_DOUBLE_EQ(residual_error({of(8, 1), of(16, 4), of(24, 3)}), 0.5);
}

TEST(Costs, AreInterpolatedAndExtrapolated) {
  const Costs costs({{8, 1, 2, 3, 0, 4}, {16, 2, 2, 3, 0, 8}, {32, 4, 2, 3, 0, 16}}, 20);
  EXPECT_DOUBLE_EQ(costs.at(0).latency_us, 1);
  EXPECT_DOUBLE_EQ(costs.at(8).latency_us, 1);
  EXPECT_DOUBLE_EQ(costs.at(12).latency_us, 1.5);
  EXPECT_DOUBLE_EQ(costs.at(12).gap_us, 6);
  EXPECT_DOUBLE_EQ(costs.at(64).latency_us, 8);
  EXPECT_EQ(costs.at(64).bytes, 64U);
  EXPECT_DOUBLE_EQ(costs.link_us(costs.at(24)), 8);
  EXPECT_TRUE(costs.is_eager(20));
  EXPECT_FALSE(costs.is_eager(21));
}

}  // namespace
}  // namespace tonari::bench::predict
