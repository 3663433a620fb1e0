#include "../support/lies.hpp"
#include "../support/ranks.hpp"
#include "../support/traffic.hpp"

#include <algorithm>
#include <array>
#include <optional>

// Fuzzes the decoding of messages. One rank, the liar, sends forged heads to two honest ranks, which exchange messages
// with each other and with it.
namespace tonari {
namespace {

constexpr int honest_ranks = 2;
constexpr int liar = 2;
constexpr int silent = 3;
constexpr int ranks = 4;
constexpr int heads_between_looks = 400;

struct Exposed {};

// Receives and sends of an honest rank that only the liar or the silent rank can complete, with any status. A margin
// around each buffer must stay unchanged.
class Targets {
 public:
  explicit Targets(Communicator& world) : world_(world) {
    for (Target& each : targets_) each.memory.assign(bytes_max + 2 * margin, guard);
  }
  /// Checks the requests that are complete, and starts new ones in their place.
  void renew(test::Random& random) {
    for (Target& each : targets_) {
      if (each.request && !each.request->test().has_value()) continue;
      check(each);
      start(each, random);
    }
  }
  void end() {
    for (Target& each : targets_) {
      if (!each.request) continue;
      if (!each.request->cancel()) (void)each.request->wait();
      check(each);
    }
  }

 private:
  static constexpr std::size_t bytes_max = 30000;
  static constexpr std::size_t margin = 256;
  static constexpr std::byte guard{0xa5};
  struct Target {
    std::vector<std::byte> memory;
    std::size_t bytes = 0;
    std::size_t room = 0;  // the longest message that fits
    bool sends = false;
    std::optional<Request> request;
  };

  void start(Target& target, test::Random& random) {
    const int peer = test::chance(random, 70) ? liar : silent;
    const int tag = static_cast<int>(test::between(random, 0, 2));
    target.bytes = test::between(random, 0, test::chance(random, 50) ? 100 : bytes_max);
    target.sends = test::chance(random, 40);
    target.room = target.bytes;
    const auto buffer = std::span(target.memory).subspan(margin, target.bytes);
    if (target.sends) {
      target.request = world_.start_send(buffer, Rank{peer}, Tag{tag}, SendMode::when_posted);
    } else if (test::chance(random, 30)) {
      target.room = target.bytes / 5 * 2;
      target.request = world_.start_receive(Strided{buffer, target.bytes / 5, 2, 5}, Rank{peer}, Tag::any);
    } else {
      target.request = world_.start_receive(buffer, test::chance(random, 50) ? Rank{peer} : Rank::any, Tag::any);
    }
  }
  void check(Target& target) {
    if (!target.request) return;
    const Result<Envelope> result = target.request->wait();
    EXPECT_NE(to_string(result.status), "unknown");
    EXPECT_NE(result.status, Status::again);
    if (result.status == Status::ok || result.status == Status::truncated) {
      EXPECT_GE(result.value.tag, target.sends ? Tag::any : Tag{0});
      EXPECT_EQ(result.value.bytes > target.room, result.status == Status::truncated);
    }
    const auto untouched = [](std::byte each) { return each == guard; };
    const std::span memory(target.memory);
    EXPECT_TRUE(std::ranges::all_of(memory.first(margin), untouched)) << "a message was written in front of its buffer";
    EXPECT_TRUE(std::ranges::all_of(memory.subspan(margin + target.bytes), untouched))
        << "a message was written behind its buffer";
    std::ranges::fill(target.memory, guard);
  }

  Communicator& world_;
  std::array<Target, 12> targets_;
};

// Sends forged heads until both honest ranks report that they are done.
void lie(Job& job, Communicator& control, bool any_address, std::uint64_t seed) {
  const std::vector<std::byte> readable(64 * 1024, std::byte{1});
  std::array<std::vector<std::byte>, honest_ranks> writable;
  std::vector<test::Liar> liars;
  for (int victim = 0; victim < honest_ranks; ++victim) {
    auto& own = writable[static_cast<std::size_t>(victim)];  // each victim writes into its own buffer, as granted
    own.resize(64 * 1024);
    liars.emplace_back(job, test::Claims{liar, silent, readable, own, any_address},
                       seed * 2 + static_cast<std::uint64_t>(victim));
  }
  const auto has_enough = [&](int rank) {
    return !job.alive(JobRank{rank}) || control.probe_now(Rank{rank}, Tag::any).has_value();
  };
  while (!has_enough(0) || !has_enough(1)) {
    for (int i = 0; i < heads_between_looks; ++i) {
      const auto victim = static_cast<std::size_t>(i % honest_ranks);
      liars[victim].tell(static_cast<int>(victim));
    }
  }
  throw Exposed{};
}

void talk(Communicator& world, Communicator& control, std::uint64_t seed) {
  std::optional<Communicator> pair = world.split(0, 0);
  test::Random random(seed + static_cast<std::uint64_t>(world.rank().value()));
  Targets targets(world);
  for (int turn = 0; turn < test::rounds(6); ++turn) {
    const test::Plan plan(honest_ranks, 100, seed * 100 + static_cast<std::uint64_t>(turn));
    targets.renew(random);
    test::Player(*pair, plan, seed).play([](int) { return true; });
    for (int i = 0; i < 50; ++i) targets.renew(random);
    test::require_ok(pair->barrier());
  }
  for (const int each : {liar, silent}) test::require_ok(control.send(std::span<const int>(), Rank{each}));
  targets.end();
  test::require_ok(pair->barrier());
}

class Lies : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, Lies, testing::ValuesIn(test::variants()), test::name_of);

TEST_P(Lies, HarmOnlyTheLiar) {
  const auto& settings = GetParam().settings;
  // Without direct copies payloads travel in pieces and no address is used, so the liar may claim any address. The
  // kernel checks addresses between processes; tests/system/programs/message_lies.cpp claims wrong ones there.
  const bool any_address = std::ranges::find(settings, "TONARI_DIRECT_COPIES=off") != settings.end();
  const auto body = [&](Job& job) {
    Communicator world(job);
    Communicator control = world.duplicate();
    if (world.rank() < honest_ranks) return talk(world, control, test::seed());
    (void)world.split(-1, 0);
    if (world.rank() == liar) lie(job, control, any_address, test::seed());
    for (const int each : {0, 1}) test::require_ok(control.receive(std::span<int>(), Rank{each}).status);
    throw Exposed{};  // only a death ends the requests that wait for this rank or for the liar
  };
  EXPECT_THROW(run_as_threads(ranks, body, settings), Exposed);
}

}  // namespace
}  // namespace tonari
