#include "../support/ranks.hpp"
#include "../support/traffic.hpp"

#include "message/context.hpp"
#include "message/creation.hpp"
#include "message/message_runtime.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

// Fuzzes the decoding of the messages that make communicators. One rank makes communicators together with the other,
// the liar, which sends it malformed messages instead.
namespace tonari {
namespace {

using message::Context;
using message::MessageRuntime;
using message::NewContext;

constexpr std::uint32_t first_id = 6000;  // of contexts that both ranks make without asking each other
constexpr int tags = 4;                   // of the collectives of one call, at most
constexpr int messages_per_tag = 6;       // at least as many as a call receives

// A turn, as both ranks know it.
struct Turn {
  Turn(int number, std::uint64_t seed)
      : random(seed * 1000 + static_cast<std::uint64_t>(number)),
        id(first_id + message::ids_per_context * static_cast<std::uint32_t>(number)),
        honest(static_cast<int>(seed % 2)),
        liar(1 - honest),
        call(static_cast<int>(test::between(random, 0, 6))),
        honest_first(test::chance(random, 50)) {}

  [[nodiscard]] Group both() const {
    return honest_first ? Group({JobRank{honest}, JobRank{liar}}) : Group({JobRank{liar}, JobRank{honest}});
  }

  test::Random random;
  std::uint32_t id;
  int honest;
  int liar;
  int call;
  bool honest_first;
};

// Numbers that are plausible as a status, rank, side, color, key, context's id or board.
class Lie {
 public:
  explicit Lie(test::Random& random) : random_(random) {}

  std::vector<std::uint32_t> tell() {
    std::vector<std::uint32_t> words = truth();
    if (test::chance(random_, 80)) words[test::between(random_, 0, words.size() - 1)] = any();
    if (test::chance(random_, 10)) words.resize(test::between(random_, 0, 40), any());
    return words;
  }

 private:
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(test::between(random_, 0, end - 1)); }
  std::uint32_t id() { return message::ids_per_context * below(1000); }
  std::uint32_t any() {
    switch (below(5)) {
      case 0: return static_cast<std::uint32_t>(random_());
      case 1: return (std::uint32_t{1} << below(32)) - below(3);
      case 2: return id();
      case 3: return 0 - below(10);
      default: return below(10);
    }
  }
  // The contents of correct messages.
  std::vector<std::uint32_t> truth() {
    const auto board = [&](std::vector<std::uint32_t>& words) { words.insert(words.end(), {below(8), below(100)}); };
    std::vector<std::uint32_t> words;
    switch (below(6)) {
      case 0: board(words); break;
      case 1: board(words), board(words); break;
      case 2: words = {id(), below(2), id(), below(2)}; break;  // Facts of both sides
      case 3: words = {0, 1, id()}; break;                      // SideFacts
      case 4: words = {below(2)}; break;                        // ranks
      default:                                                  // choices of both ranks
        const std::uint32_t made = id();
        const std::uint32_t first = below(2);
        for (const std::uint32_t rank : {first, 1 - first}) {
          words.insert(words.end(), {0, 0, below(2) * rank, rank, made});
          board(words);
        }
        if (test::chance(random_, 40)) words.resize(7);
    }
    return words;
  }

  test::Random& random_;
};

NewContext call(MessageRuntime& runtime, Turn& turn) {
  const auto own_side =
      std::make_shared<Context>(runtime, Group({JobRank{turn.honest}}), Group({JobRank{turn.liar}}), turn.id);
  const auto both = std::make_shared<Context>(runtime, turn.both(), turn.id, std::span<const fabric::BoardPlace>());
  const bool inter = test::chance(turn.random, 50);
  switch (turn.call) {
    case 0: return message::duplicate(inter ? *own_side : *both);
    case 1: return message::split(inter ? *own_side : *both, 0, 0);
    case 2: return message::split(*both, -1, 0);
    case 3: return message::create(*both, both->group());
    case 4: return message::create_context(runtime, both->group(), turn.id, 0);
    case 5: return message::merge(*own_side, test::chance(turn.random, 50));
    default: {
      Context alone(runtime, Group({JobRank{turn.honest}}), turn.id + 60'000'000, {});
      return message::create_inter_context(alone, 0, {both.get(), turn.honest_first ? 1 : 0}, 0);
    }
  }
}

// A context that was made has ranks of the job and boards that exist.
void check(const NewContext& made, const Job& job) {
  EXPECT_TRUE(made.status == Status::ok || made.status == Status::invalid || made.status == Status::no_memory)
      << to_string(made.status);
  if (made.value == nullptr) return;
  EXPECT_EQ(made.status, Status::ok);
  EXPECT_EQ(made.value->id() % message::ids_per_context, 0U);
  EXPECT_LE(made.value->id(), message::context_id_max);
  EXPECT_EQ(made.value->group().at(Rank{made.value->rank()}), job.rank());
  for (const Group* const side : {&made.value->group(), &made.value->peers()}) {
    for (const JobRank rank : side->ranks()) EXPECT_TRUE(rank >= 0 && rank < job.size()) << rank.value();
  }
  if (made.value->board() != nullptr) (void)made.value->board()->is_free();  // reads the board of each rank
}

void believe(Job& job, Communicator& control, std::uint64_t seed, int turns) {
  MessageRuntime& runtime = MessageRuntime::of(job.session());
  for (int number = 0; number < turns; ++number) {
    Turn turn(number, seed);
    check(call(runtime, turn), job);
    test::require_ok(control.send(number, Rank{turn.liar}));
  }
}

void lie(Job& job, Communicator& control, std::uint64_t seed, int turns) {
  MessageRuntime& runtime = MessageRuntime::of(job.session());
  for (int number = 0; number < turns; ++number) {
    Turn turn(number, seed);
    Lie of(turn.random);
    for (const std::uint32_t offset :
         {message::collective_id_offset, message::creation_id_offset, message::inter_creation_id_offset}) {
      Context target(runtime, Group::first(job.size()), turn.id + offset, {});
      Communicator towards = message::Communicators::borrow(target);
      for (int tag = 0; tag < tags; ++tag) {
        for (int i = 0; i < messages_per_tag; ++i) {
          test::require_ok(towards.send(of.tell(), Rank{turn.honest}, Tag{tag}));
        }
      }
    }
    int done = -1;
    test::require_ok(control.receive(done, Rank{turn.honest}).status);
  }
}

// The liar sends more than is received, so its sends must not wait for a receive.
std::vector<test::Variant> variants() {
  std::vector<test::Variant> all = test::variants_and_network();
  std::erase_if(all, [](const test::Variant& each) {
    return std::ranges::find(each.settings, "TONARI_DIRECT_BYTES=0") != each.settings.end();
  });
  return all;
}

class CreationLies : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, CreationLies, testing::ValuesIn(variants()), test::name_of);

TEST_P(CreationLies, HarmOnlyTheCall) {
  const std::uint64_t seed = test::seed();
  const int turns = test::rounds(300);
  test::as_jobs(
      2,
      [&](Job& job) {
        Communicator control = Communicator(job).duplicate();
        if (job.rank() == static_cast<int>(seed % 2)) return believe(job, control, seed, turns);
        lie(job, control, seed, turns);
      },
      GetParam().settings);
}

}  // namespace
}  // namespace tonari
