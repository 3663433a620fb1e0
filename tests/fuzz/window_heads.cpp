#include "../support/require.hpp"
#include "../support/windows.hpp"

#include "fabric/engine.hpp"
#include "window/create/rendezvous.hpp"
#include "window/local/assisted_copy.hpp"
#include "window/locks/remote_locks.hpp"
#include "window/remote/service.hpp"
#include "window/sync/host_barrier.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

// Fuzzes the decoding of heads by windows. One rank, the liar, sends forged heads to two honest ranks, which make, use
// and free windows with each other. The heads name the liar as their source, or ranks that do not exist: receivers
// trust a head's source.
// The liar's accesses may overlap, as accesses of any program may. Such races are the program's own, so
// ThreadSanitizer does not report them.
#ifdef __SANITIZE_THREAD__
extern "C" const char* __tsan_default_suppressions() {
  return "race:tonari::window::Target::copy\nrace:tonari::window::Target::perform\nrace:tonari::window::help\n";
}
#endif

namespace tonari {
namespace {

using fabric::Head;
using fabric::Lane;
using test::between;
using test::chance;
using test::Part;
using window::Kind;

constexpr int honest_ranks = 2;
constexpr int liar = 2;
constexpr int ranks = 3;
constexpr int heads_between_looks = 200;
constexpr std::size_t part_bytes = 40'000;
constexpr std::size_t margin = 4096;
constexpr std::byte guard{0xa5};

struct Exposed {};

/// The numbers of the windows that the liar knows.
struct Known {
  std::uint32_t closed;  // a window whose memory the liar may not access
  std::uint32_t shown;   // a window that it may read
  std::uint32_t open;    // a window to which it has all rights
};

class Liar {
 public:
  Liar(Job& job, const Known& known, std::uint64_t seed)
      : engine_(fabric::Engine::of(job.session())), known_(known), random_(seed) {}

  void tell(int victim) {
    Head head;
    for (std::byte& each : head.payload) each = static_cast<std::byte>(random_());
    head.kind = kind(victim);
    head.inline_bytes = static_cast<std::uint8_t>(number(fabric::inline_bytes_max));
    // A transport between hosts refuses heads in another rank's name.
    const bool own_name = engine_.is_remote(victim) || chance(random_, 90);
    head.source = own_name ? liar : static_cast<std::uint32_t>(liar + 1 + number(0) % 1'000'000);
    head.context = number32(one_of({known_.closed, known_.shown, known_.open, known_.open, 0}));
    switch (head.kind.to<Kind>()) {
      case Kind::window_access: head.set(request(victim)); break;
      case Kind::window_help: head.set(help_request()); break;
      case Kind::window_push: head.set(request_with_tail(victim)); break;
      case Kind::window_data: head.set(reply_with_tail(victim)); break;
      case Kind::window_lock: head.set(lock_step()); break;
      case Kind::window_granted:
        head.set(window::LockOutcome{number32(0),
                                     number32(between(random_, 0, 20)),
                                     static_cast<window::LockOutcomeKind>(number(between(random_, 0, 7))),
                                     {}});
        break;
      case Kind::window_met:
        head.set(window::Met{number(between(random_, 0, 9)), number32(between(random_, 0, 2)), number32(0)});
        break;
      case Kind::window_told:
        head.set(window::Told{group(), number(part_bytes), number32(between(random_, 0, 30)), number32(known_.open),
                              number32(1), number32(64), number32(7), number32(0)});
        break;
      case Kind::window_ready: head.set(window::Ready{group(), number32(between(random_, 0, 30)), number32(0)}); break;
      case Kind::window_done:
        head.set(reply({random_(), random_(), random_()}, number32(between(random_, 0, 3))));
        break;
      case Kind::window_join:
        head.set(window::Join{group(), number(part_bytes), number32(between(random_, 0, 30)), number32(1), number32(64),
                              number32(0)});
        break;
      case Kind::window_made:
        head.set(window::Made{group(), number(1 << 20), number32(between(random_, 0, 30)), number32(known_.open)});
        break;
      default: break;  // arbitrary bytes
    }
    const bool is_reply = head.kind == Kind::window_done || head.kind == Kind::window_data;
    const Lane lane = is_reply != chance(random_, 5) ? Lane::reply : Lane::request;
    while (engine_.send(victim, head, lane) == Status::again) {
      engine_.progress();
      std::this_thread::yield();
    }
    engine_.progress();  // as an honest rank does; otherwise heads for it would pile up
  }

 private:
  static constexpr std::array kinds{Kind::window_join,    Kind::window_made,    Kind::window_access, Kind::window_done,
                                    Kind::window_help,    Kind::window_told,    Kind::window_ready,  Kind::window_push,
                                    Kind::window_data,    Kind::window_freed,   Kind::window_met,    Kind::window_lock,
                                    Kind::window_granted, Kind::window_returned};

  // Returns one of the kinds above, or any of this protocol. Between hosts it has no tail, as the transport would not
  // find the tail.
  Kind kind(int victim) {
    if (chance(random_, 90)) return kinds[between(random_, 0, kinds.size() - 1)];
    const auto any = static_cast<std::uint8_t>(between(random_, 64, 127));
    const bool may_have_tail = !engine_.is_remote(victim);
    return static_cast<Kind>(may_have_tail ? any : any & ~fabric::HeadKind::tail_bit);
  }
  std::uint64_t one_of(std::initializer_list<std::uint64_t> choices) {
    return *(choices.begin() + between(random_, 0, choices.size() - 1));
  }
  // Returns the right number, one near it, one near a power of two, or a random one.
  std::uint64_t number(std::uint64_t right) {
    switch (between(random_, 0, 7)) {
      case 0: return random_();
      case 1: return (std::uint64_t{1} << between(random_, 0, 63)) - between(random_, 0, 2);
      case 2: return right + between(random_, 0, 2) - 1;
      default: return right;
    }
  }
  std::uint32_t number32(std::uint64_t right) { return static_cast<std::uint32_t>(number(right)); }
  // Returns the number of the group of all ranks, of the honest ranks, or of no group.
  std::uint64_t group() {
    return one_of({window::number_of(Group::first(ranks)), window::number_of(Group::first(honest_ranks)), random_()});
  }
  window::ServiceRequest request(int victim) {
    const std::size_t bytes = between(random_, 0, fabric::bulk_tail_bytes_max);
    const auto place = engine_.bulk().allocate(bytes, victim);
    if (place) fabric::BulkReader::give_back(engine_.bulk_of(liar), *place);  // no other rank gives it back
    window::ServiceRequest request{};
    request.offset = number(between(random_, 0, 1) == 0 ? part_bytes - bytes : between(random_, 0, part_bytes));
    request.words = {number(place ? place->value : 0), random_(), random_()};
    request.bytes = number32(chance(random_, 50) ? bytes : one_of({4, 8, 0, 1, window::carried_bytes_max}));
    request.ticket.index = number32(0);
    request.ticket.generation = number32(1);
    request.service = static_cast<window::Service>(number(between(random_, 0, 6)));
    request.operation = static_cast<detail::AtomicOperation>(number(between(random_, 0, 6)));
    request.carried = static_cast<std::uint8_t>(number(1));
    request.reserved = static_cast<std::uint8_t>(number(0));
    return request;
  }

  // Returns the place of a tail of the right length: the transport refuses any other length.
  fabric::BulkPlace tail(int victim, std::size_t bytes) {
    // The receiver gives the place back. If no place is free, one that is in use serves as well.
    auto place = engine_.bulk().allocate(bytes, victim);
    if (!place) place = fabric::BulkPlace{3 << 6 | between(random_, 0, 63)};
    for (std::size_t at = 0; at + sizeof(window::Stretch) <= bytes; at += sizeof(window::Stretch)) {
      const window::Stretch stretch{number32(between(random_, 0, part_bytes)), number32(between(random_, 0, 64))};
      std::memcpy(engine_.bulk().at(*place) + at, &stretch, sizeof stretch);
    }
    return *place;
  }
  window::ServiceRequest request_with_tail(int victim) {
    const std::size_t bytes = between(random_, 1, chance(random_, 50) ? 200 : fabric::bulk_tail_bytes_max);
    const std::uint64_t stretches = chance(random_, 40) ? 0 : bytes / between(random_, 8, 40);
    const window::RequestExtras extras{number32(stretches), number32(between(random_, 0, 2))};
    window::ServiceRequest made = request(victim);
    made.service = static_cast<window::Service>(chance(random_, 90) ? between(random_, 1, 2) : number(3));
    made.offset = chance(random_, 50) ? 0 : made.offset;
    made.bytes = number32(bytes - std::min<std::uint64_t>(bytes, stretches * sizeof(window::Stretch)));
    made.words = {bytes, tail(victim, bytes).value, 0};
    std::memcpy(&made.words[2], &extras, sizeof extras);
    return made;
  }
  window::ServiceReply reply(const window::Carried& words, std::uint32_t generation) {
    window::ServiceReply made{};
    made.words = words;
    made.status = number32(0);
    made.ticket = {number32(between(random_, 0, 8)), generation};
    return made;
  }
  window::ServiceReply reply_with_tail(int victim) {
    const std::size_t bytes = between(random_, 1, 5000);
    return reply({bytes, tail(victim, bytes).value, random_()}, number32(between(random_, 0, 300)));
  }
  // Names other locks than the honest ranks use: a holder of theirs could keep them waiting.
  window::LockStep lock_step() {
    const auto lock = static_cast<std::uint32_t>(chance(random_, 90) ? 1 : number(1) | 1);
    return {lock, number32(between(random_, 0, 4)), static_cast<window::LockStepKind>(number(between(random_, 0, 5))),
            static_cast<LockMode>(number(between(random_, 0, 2))), 0};
  }

  // Names the liar's own memory correctly, as a wrong address cannot be detected where ranks are threads.
  window::HelpRequest help_request() {
    const auto ticket = engine_.tickets().take();
    if (ticket) engine_.tickets().give_back(ticket->index);  // the ticket stays valid until it is taken again
    window::HelpRequest request{};
    request.offset = number(between(random_, 0, part_bytes - own_.size()));
    request.address = reinterpret_cast<std::uint64_t>(own_.data());
    request.bytes = between(random_, 0, own_.size());
    request.chunk_bytes = one_of({number(4096), 1, own_.size()});
    request.ticket.index = number32(ticket ? ticket->index : 0);
    request.ticket.generation = number32(ticket ? ticket->generation : 0);
    request.service = static_cast<window::Service>(number(between(random_, 0, 6)));
    return request;
  }

  fabric::Engine& engine_;
  Known known_;
  test::Random random_;
  inline static std::array<std::byte, 10'000> own_{};  // static, as it may be accessed after the liar's end
};

/// Memory of the program with a margin around it that must stay unchanged.
class Guarded {
 public:
  explicit Guarded(std::byte content) : memory_(part_bytes + 2 * margin, guard) { std::ranges::fill(bytes(), content); }
  [[nodiscard]] std::span<std::byte> bytes() { return std::span(memory_).subspan(margin, part_bytes); }
  void expect_margins() const {
    const auto untouched = [](std::byte each) { return each == guard; };
    const std::span all(memory_);
    EXPECT_TRUE(std::ranges::all_of(all.first(margin), untouched)) << "an access wrote in front of the window";
    EXPECT_TRUE(std::ranges::all_of(all.subspan(margin + part_bytes), untouched))
        << "an access wrote behind the window";
  }

 private:
  std::vector<std::byte> memory_;
};

// The work of the two honest ranks. They pull what they pushed, count with atomic operations, lock, and make and free
// windows.
void work(Job& job, Window& closed, std::uint64_t seed) {
  const Group pair = Group::first(honest_ranks);
  const int other = 1 - job.rank().value();
  test::Random random(seed);  // both ranks use the same seed
  std::uint64_t counted = 0;
  for (int turn = 0; turn < test::rounds(3); ++turn) {
    Part part = test::make_part(job, pair, turn % 2 == 0 ? test::Owner::program : test::Owner::tonari, part_bytes);
    for (Window* const window : {&part.window, &closed}) {
      for (std::size_t i = 0; i < 6; ++i) {
        const std::size_t bytes = between(random, 0, 20'000);
        const std::uint64_t offset = 64 + between(random, 0, part_bytes - 64 - bytes);
        const auto sent = test::pattern(bytes, i * 2 + job.rank().index());
        std::vector<std::byte> got(bytes);
        ASSERT_EQ(window->push(window->at(JobRank{other}, offset), sent), Status::ok);
        ASSERT_EQ(window->pull(got, window->at(JobRank{other}, offset)), Status::ok);
        ASSERT_TRUE(got == sent);
        ASSERT_EQ(window->lock(JobRank{1}), Status::ok);
        ASSERT_EQ(window->unlock(JobRank{1}), Status::ok);
      }
    }
    for (int i = 0; i < 10; ++i) {
      const auto fetched = closed.fetch_add(closed.at(JobRank{other}, 8), std::uint64_t{1});
      ASSERT_EQ(fetched.status, Status::ok);
      ASSERT_EQ(fetched.value, counted++);
    }
    ASSERT_EQ(part.window.barrier(), Status::ok);
  }
}

class WindowLies : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, WindowLies, testing::ValuesIn(test::window_variants()), test::name_of);

TEST_P(WindowLies, HarmOnlyTheLiar) {
  const auto body = [&](Job& job) {
    Communicator world(job);
    Communicator control = world.duplicate();
    const auto options = [&](Rights of_liar) {
      WindowOptions made;
      made.locks = 2;
      if (job.rank() != liar) made.rights_of = {{JobRank{liar}, of_liar}};
      return made;
    };
    Guarded closed_memory{std::byte{0}};
    Guarded shown_memory{std::byte{1}};
    Guarded open_memory{std::byte{0}};
    Window closed(job, closed_memory.bytes(), options(Rights::none));
    Window shown(job, shown_memory.bytes(), options(Rights::read));
    Window open(job, open_memory.bytes());
    if (job.rank() == liar) {
      Liar tongue(job, {closed.number(), shown.number(), open.number()}, test::seed());
      const auto has_enough = [&](int rank) {
        return !job.alive(JobRank{rank}) || control.probe_now(Rank{rank}, Tag::any).has_value();
      };
      while (!has_enough(0) || !has_enough(1)) {
        for (int i = 0; i < heads_between_looks; ++i) tongue.tell(i % honest_ranks);
      }
      throw Exposed{};
    }
    work(job, closed, test::seed());
    test::require(!testing::Test::HasFatalFailure(), "an honest rank failed");
    test::require_ok(control.send(std::span<const int>(), Rank{liar}));
    EXPECT_EQ(control.receive(std::span<int>(), Rank{liar}).status, Status::peer_gone);
    closed_memory.expect_margins();
    shown_memory.expect_margins();
    EXPECT_TRUE(std::ranges::all_of(shown_memory.bytes(), [](std::byte each) { return each == std::byte{1}; }));
    open_memory.expect_margins();
    Part last = test::make_part(job, Group::first(honest_ranks), test::Owner::program, part_bytes);
    EXPECT_EQ(last.window.barrier(), Status::ok);
  };
  EXPECT_THROW(run_as_threads(ranks, body, GetParam().settings), Exposed);
}

}  // namespace
}  // namespace tonari
