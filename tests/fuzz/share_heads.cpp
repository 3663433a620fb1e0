#include "../support/require.hpp"
#include "../support/shared.hpp"

#include "fabric/engine.hpp"
#include "share/coherence/copyset.hpp"
#include "share/coherence/diffs.hpp"
#include "share/coherence/heads.hpp"
#include "share/guarded/heads.hpp"

#include <tonari/guarded.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

// Fuzzes the decoding of heads by shared arrays and guarded data. One rank, the liar, sends forged heads to two honest
// ranks, which use arrays and data with each other. The heads name the liar as their source, or ranks that do not
// exist: receivers trust a head's source.
//
// The promises under test: no forged head ends a rank or writes outside shared memory. Arrays and guarded data that the
// heads do not name keep their contents and stay usable.
//
// The liar may fill the arrays and data that it names with anything, as any rank may. It may also hold them for as long
// as it likes, as a page's home or as the owner of data. So honest ranks only try to lock such data. They wait for such
// pages only where a forged head cannot send them from home to home without end: in arrays whose homes do not move.
// Only one honest rank uses the array whose home is the liar.
namespace tonari {
namespace {

using fabric::Head;
using fabric::Lane;
using share::Entry;
using share::Kind;
using share::PageRun;
using share::ShortRank;
using share::Words;
using test::between;
using test::chance;
using test::Random;
using test::require_ok;

constexpr int honest_ranks = 2;
constexpr int liar = 2;
constexpr int ranks = 3;
constexpr int heads_between_looks = 200;
constexpr std::size_t stride = 134;  // between the words that a rank writes
constexpr std::size_t page_words = share::page_bytes / sizeof(std::uint64_t);

struct Exposed {};

/// The arrays, by the numbers that all ranks know.
enum Object : std::uint32_t { shown, sure, updated, of_liar, wandering, objects };
constexpr std::array<std::size_t, objects> pages_of{200, 130, 70, 70, 100};
/// The numbers of guarded data. The liar does not name the first two and the last.
constexpr std::uint32_t sure_data = 2;
constexpr std::uint32_t tried_data = 6;
constexpr std::uint32_t late = sure_data + tried_data;
constexpr std::size_t long_bytes = 20'000;

/// For each honest rank, a ticket that it is about to use, or one near it.
struct Hints {
  std::array<std::atomic<std::uint64_t>, honest_ranks> tickets{};

  void show(Job& job) {
    fabric::Tickets& all = fabric::Engine::of(job.session()).tickets();
    const auto ticket = all.take();
    if (!ticket) return;
    all.give_back(ticket->index);
    tickets[job.rank().index()] = std::uint64_t{ticket->generation} << 32 | ticket->index;
  }
};

class Liar {
 public:
  Liar(Job& job, const Hints& hints, std::uint64_t seed)
      : engine_(fabric::Engine::of(job.session())), one_host_(job.hosts() == 1), hints_(hints), random_(seed) {}

  void tell(int victim) {
    Head head;
    for (std::byte& each : head.payload) each = static_cast<std::byte>(random_());
    head.inline_bytes = static_cast<std::uint8_t>(number(fabric::inline_bytes_max));
    // A transport between hosts refuses heads in another rank's name.
    const bool own_name = engine_.is_remote(victim) || chance(random_, 90);
    head.source = own_name ? liar : static_cast<std::uint32_t>(liar + 1 + number(0) % 1'000'000);
    head.tag = number32(0);
    if (chance(random_, 50)) {
      head.kind = kind(array_kinds, 0, victim);
      if (head.kind == Kind::share_gone)
        head.kind = Kind::share_moved;  // share_gone counts as the liar's death and would raise SIGBUS
      head.context = number32(0);
      head.set(words(head.kind.to<Kind>(), victim));
    } else {
      head.kind = kind(guard_kinds, 16, victim);
      head.context = not_sure([&] { return number32(between(random_, sure_data, late - 1)); },
                              [](std::uint32_t each) { return each < sure_data || each == late; });
      fill(head, victim);
    }
    const bool is_reply = head.kind == Kind::share_pages || head.kind == Kind::share_moved ||
                          head.kind == Kind::share_taken || head.kind == Kind::share_copies ||
                          head.kind == Kind::share_noted || head.kind == Kind::share_reached;
    const Lane lane = is_reply != chance(random_, 5) ? Lane::reply : Lane::request;
    const auto tail = change_tail(head, victim);
    while (engine_.send(victim, head, lane) == Status::again) rest();
    if (tail) fabric::BulkReader::give_back(engine_.bulk_of(liar), *tail);
    // An honest rank makes progress, too; otherwise heads for it would pile up. The liar does so only at times, so that
    // its forged heads can arrive before genuine replies.
    if (chance(random_, 30)) engine_.progress();
  }

 private:
  static constexpr std::array array_kinds{
      Kind::share_fetch,  Kind::share_pages,  Kind::share_moved,   Kind::share_changes, Kind::share_taken,
      Kind::share_copies, Kind::share_notice, Kind::share_notices, Kind::share_noted,   Kind::share_told,
      Kind::share_update, Kind::share_await,  Kind::share_reached, Kind::share_set,     Kind::share_gone};
  static constexpr std::array guard_kinds{
      Kind::guard_want,  Kind::guard_deed, Kind::guard_given,   Kind::guard_given_tail, Kind::guard_fetch,
      Kind::guard_more,  Kind::guard_stop, Kind::guard_stopped, Kind::guard_inherit,    Kind::guard_has,
      Kind::guard_waits, Kind::guard_lost, Kind::guard_freed,   Kind::guard_over};

  // Returns one of `kinds`, or any of the 16 operations from `first` on. Between hosts it has no tail, as the transport
  // would not find the tail.
  Kind kind(std::span<const Kind> kinds, unsigned first, int victim) {
    if (chance(random_, 95)) return kinds[between(random_, 0, kinds.size() - 1)];
    const auto plain = 128 + first + between(random_, 0, 15);
    const bool has_tail = !engine_.is_remote(victim) && chance(random_, 50);
    return static_cast<Kind>(plain | (has_tail ? fabric::HeadKind::tail_bit : 0));
  }
  void rest() {
    engine_.progress();
    std::this_thread::yield();
  }
  std::uint64_t one_of(std::initializer_list<std::uint64_t> choices) {
    return *(choices.begin() + between(random_, 0, choices.size() - 1));
  }
  // Returns the right number, one near it, one near a power of two, or a random one.
  std::uint64_t number(std::uint64_t right) {
    switch (between(random_, 0, 9)) {
      case 0: return random_();
      case 1: return (std::uint64_t{1} << between(random_, 0, 63)) - between(random_, 0, 2);
      case 2: return right + between(random_, 0, 2) - 1;
      default: return right;
    }
  }
  std::uint32_t number32(std::uint64_t right) { return static_cast<std::uint32_t>(number(right)); }
  ShortRank rank16() { return static_cast<ShortRank>(number(between(random_, 0, ranks - 1))); }
  template <class Choose, class IsSure>
  std::uint32_t not_sure(Choose choose, IsSure is_sure) {
    for (;;) {
      if (const std::uint32_t chosen = choose(); !is_sure(chosen)) return chosen;
    }
  }

  // Arrays

  Words words(Kind kind, int victim) {
    const std::uint64_t hint = hints_.tickets[static_cast<std::size_t>(victim)];
    Words made;
    made.object = not_sure([&] { return number32(between(random_, 0, objects - 1)); },
                           [](std::uint32_t each) { return each == sure; });
    made.ticket.index = number32((hint & 0xffffffff) + between(random_, 0, 1));
    made.ticket.generation = number32((hint >> 32) + between(random_, 0, 4));
    made.first = number(page());
    made.extra = number(between(random_, 0, 7));
    made.count = number32(between(random_, 1, 4));
    const std::size_t few = between(random_, 1, chance(random_, 90) ? 9 : 600);
    switch (kind) {
      case Kind::share_pages: put_tail(made, victim, std::vector<std::byte>(data_bytes())); break;
      case Kind::share_changes:
      case Kind::share_update: {
        std::vector<std::byte> all;
        const std::size_t count = between(random_, 1, 6);
        for (std::size_t i = 0; i < count; ++i) add_change(all);
        made.count = number32(count);
        put_tail(made, victim, std::move(all));
        break;
      }
      case Kind::share_told:
      case Kind::share_copies: put_tail(made, victim, entries(few)); break;
      case Kind::share_notices: put_tail(made, victim, several([this] { return run(); }, few)); break;
      default: break;
    }
    return made;
  }
  std::uint64_t page() { return between(random_, 0, pages_of[between(random_, 0, objects - 1)] - 1); }
  std::size_t data_bytes() {
    return chance(random_, 70) ? between(random_, 1, 4) * share::page_bytes
                               : between(random_, 1, fabric::bulk_tail_bytes_max);
  }
  PageRun run() { return {number(page()), number(between(random_, 1, 70))}; }
  // Returns entries of some pages, or of all pages, so that they include the pages that were asked about.
  std::vector<std::byte> entries(std::size_t few) {
    if (chance(random_, 70)) return several([this] { return entry(number(page())); }, few);
    std::uint64_t next = 0;
    return several([&] { return entry(next++); }, pages_of[of_liar]);
  }
  Entry entry(std::uint64_t page) {
    return {page, random_() & random_(), number32(between(random_, 0, 5)),
            static_cast<share::Said>(number(between(random_, 1, 3)))};
  }
  template <class Make>
  std::vector<std::byte> several(Make make, std::size_t count) {
    std::vector<std::byte> all;
    for (; count != 0; --count) {
      const auto each = make();
      const auto bytes = test::bytes_of(each);
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  }
  // Adds a change. At times its masks announce more or fewer bytes than follow.
  void add_change(std::vector<std::byte>& all) {
    const std::uint64_t lines = chance(random_, 80) ? random_() & random_() & random_() : number(3);
    const std::array<std::uint64_t, 2> front{number(page()), lines};
    const auto head = std::as_bytes(std::span(front));
    all.insert(all.end(), head.begin(), head.end());
    const std::size_t claimed = static_cast<std::size_t>(std::popcount(lines)) * (8 + share::line_bytes);
    const std::size_t bytes = chance(random_, 90) ? claimed : between(random_, 0, claimed);
    for (std::size_t i = 0; i < bytes; ++i) all.push_back(static_cast<std::byte>(random_()));
  }

  std::uint64_t tail(int victim, std::vector<std::byte>& bytes) {
    if (chance(random_, 10)) bytes.resize(between(random_, 1, bytes.size() + 1));
    if (bytes.empty()) bytes.resize(1);
    if (bytes.size() > fabric::bulk_tail_bytes_max) bytes.resize(fabric::bulk_tail_bytes_max);
    auto place = engine_.bulk().allocate(bytes.size(), victim);
    for (; !place; place = engine_.bulk().allocate(bytes.size(), victim)) rest();
    std::memcpy(engine_.bulk().at(*place), bytes.data(), bytes.size());
    return place->value;
  }
  // Forges the length and the place of the tail at times; a transport between hosts refuses that. Returns the place if
  // the receiver will not give it back because it cannot tell whose it is.
  std::optional<fabric::BulkPlace> change_tail(Head& head, int victim) {
    if (!head.kind.has_tail() || engine_.is_remote(victim)) return std::nullopt;
    auto tail = head.as<fabric::Tail>();
    const fabric::BulkPlace place{tail.place};
    if (chance(random_, 10)) tail.place = place.value | random_() << 9;  // no such block
    if (chance(random_, 10)) tail.bytes = number(tail.bytes);
    head.set(tail);
    const bool is_undelivered = head.kind == Kind::guard_given_tail && (one_host_ || head.context >= late);
    const bool is_kept = head.source != liar || is_undelivered;
    return is_kept ? std::optional(place) : std::nullopt;
  }
  void put_tail(Words& made, int victim, std::vector<std::byte> bytes) {
    made.tail_place = tail(victim, bytes);
    made.tail_bytes = bytes.size();
  }

  // Guarded data

  void fill(Head& head, int victim) {
    switch (head.kind.to<Kind>()) {
      case Kind::guard_want:
      case Kind::guard_deed:
        return head.set(share::GuardWant{number(between(random_, 0, 9)), number(between(random_, 0, 9)),
                                         number32(between(random_, 0, ranks - 1)),
                                         static_cast<share::GuardAct>(number(between(random_, 0, 2)))});
      case Kind::guard_given: {
        share::GuardGiven given{version(), epoch(), rank16(), 0, {}};
        for (std::byte& each : given.rest) each = static_cast<std::byte>(chance(random_, 50) ? random_() : rank16());
        head.tag = given_tag(share::GuardGiven::listed_max);
        return head.set(given);
      }
      case Kind::guard_given_tail: {
        std::vector<std::byte> bytes(std::size_t{
            one_of({fabric::bulk_tail_bytes_max, 8, data_bytes(), long_bytes - fabric::bulk_tail_bytes_max})});
        const std::uint64_t place = tail(victim, bytes);
        share::GuardPiece piece{bytes.size(), place, version(), epoch(), number32(between(random_, 0, 1)),
                                rank16(),     {}};
        for (ShortRank& each : piece.listed) each = rank16();
        head.tag = given_tag(share::GuardPiece::listed_max);
        return head.set(piece);
      }
      case Kind::guard_stop: {
        share::GuardStop stop{epoch(),
                              static_cast<std::uint16_t>(number(1)),
                              static_cast<std::uint16_t>(number(between(random_, 0, ranks))),
                              {}};
        for (ShortRank& each : stop.listed) each = rank16();
        return head.set(stop);
      }
      case Kind::guard_inherit: {
        share::GuardList list{};
        for (ShortRank& each : list.listed) each = rank16();
        head.tag = number32(between(random_, 0, ranks));
        return head.set(list);
      }
      // These heads, if valid, end the use of the variable, and the other forged heads could not reach it any more.
      case Kind::guard_lost:
      case Kind::guard_freed:
      case Kind::guard_over:
        if (between(random_, 1, 200) != 1) head.kind = Kind::guard_fetch;
        return;
      default: return head.set(share::GuardWord{number(between(random_, 0, 9))});
    }
  }
  std::uint64_t version() { return number(between(random_, 1, 30)); }
  std::uint32_t epoch() { return number32(between(random_, 0, 9)); }
  std::uint32_t given_tag(std::size_t listed_max) {
    return static_cast<std::uint32_t>(between(random_, 0, 15)) | number32(between(random_, 0, listed_max)) << 8;
  }

  fabric::Engine& engine_;
  const bool one_host_;  // on one host guarded data use no heads
  const Hints& hints_;
  Random random_;
};

GuardedOptions options_of(std::uint32_t number) {
  return {number % 2 == 0 ? OnWrite::invalidate : OnWrite::update, static_cast<Mover>(number % 3),
          JobRank{number / 2 % ranks}};
}

/// The objects that the ranks share. The homes of mutexes and flags are the ranks in turn; objects with their home at
/// the liar are not used.
struct Shared {
  explicit Shared(Job& job)
      : arrays{{array_of(job, shown), array_of(job, sure), array_of(job, updated), array_of(job, of_liar),
                array_of(job, wandering)}},
        lock(job),
        came{share::flag(job), share::flag(job), share::flag(job)},
        count(job, 0),
        values(job, long_bytes / sizeof(std::uint64_t), {OnWrite::update, Mover::owner_puts, JobRank{1}}) {
    for (std::uint32_t i = 0; i < tried_data; ++i) tried.emplace_back(job, i % 4 < 2 ? 8 : long_bytes, options_of(i));
  }
  static shared_array<std::uint64_t> array_of(Job& job, Object object) {
    ArrayOptions options;
    options.placement = Placement::by_function;
    options.home = [object](std::uint64_t offset) {
      return object == of_liar ? JobRank{liar} : JobRank{offset / share::page_bytes / 3 % honest_ranks};
    };
    options.homes_move = object == sure || object == wandering;
    options.writes_are_named = options.updates = object == updated;
    if (object == wandering) options.placement = Placement::first_touch;
    return {job, pages_of[object] * page_words, options};
  }

  std::array<shared_array<std::uint64_t>, objects> arrays;
  share::mutex lock;
  std::array<share::flag, 3> came;
  guarded<std::uint64_t> count;
  guarded_span<std::uint64_t> values;
  std::vector<guarded_span<std::byte>> tried{};
};

/// The work of one of the two honest ranks.
class Honest {
 public:
  Honest(Job& job, Shared& shared, Hints& hints, std::uint64_t seed)
      : job_(job), shared_(shared), hints_(hints), random_(seed + static_cast<std::uint64_t>(job.rank().value())) {}

  void turn() {
    ++turn_;
    write_sure();
    use_named();
    count_up();
    meet();
    expect_sure();
    use_named();
    for (int i = 0; i < 4; ++i) use_tried();
    meet();
  }
  // The ranks write to the same pages, and both write one word under a lock.
  void write_sure() {
    for (std::size_t i = first(); i < array(sure).size(); i += stride) array(sure)[i] = turn_ * i;
    auto lock = shared_.lock.lock();
    require_ok(lock.status());
    ++array(sure)[0];
    require_ok(lock.release());
  }
  void expect_sure() {
    ASSERT_EQ(array(sure)[0], honest_ranks * turn_);
    for (std::size_t i = 1; i < array(sure).size(); ++i) {
      const bool is_written = i % stride == 2 || i % stride == 3;
      ASSERT_EQ(array(sure)[i], is_written ? turn_ * i : 0) << "word " << i;
    }
    ASSERT_EQ(*shared_.count.read(), honest_ranks * turn_);
    const auto values = shared_.values.read();
    ASSERT_TRUE(std::ranges::all_of(values, [&](std::uint64_t each) { return each == values[0]; }));
  }
  void count_up() {
    ++*shared_.count.write();
    const auto values = shared_.values.write();
    ASSERT_TRUE(std::ranges::all_of(values, [&](std::uint64_t each) { return each == values[0]; }));
    std::ranges::fill(values, values[0] + 1);
  }

 private:
  [[nodiscard]] shared_array<std::uint64_t>& array(Object object) { return shared_.arrays[object]; }
  [[nodiscard]] std::size_t first() const { return 2 + job_.rank().index(); }

  // Uses arrays to which the liar may have written anything.
  void use_named() {
    for (const Object object : {shown, updated, of_liar}) {
      if (object == of_liar && job_.rank() != 0) continue;
      for (int i = 0; i < 10; ++i) {
        const std::size_t at = between(random_, 0, array(object).size() - 1);
        hints_.show(job_);
        seen_ += array(object)[at];
        if (chance(random_, 50)) {
          array(object)[at] = seen_;
          array(object).wrote(at, 1);
        }
      }
      hints_.show(job_);
      require_ok(share::release(job_));
      require_ok(share::acquire(job_));
    }
  }
  // Uses guarded data that the liar may have declared lost.
  void use_tried() {
    auto& data = shared_.tried[between(random_, 0, shared_.tried.size() - 1)];
    switch (between(random_, 0, 3)) {
      case 0:
        if (const auto access = data.try_write()) {
          std::ranges::fill(access, static_cast<std::byte>(random_()));
          if (chance(random_, 30)) (void)data.update_now();
        }
        return;
      case 1:
        if (const auto access = data.try_read()) {
          seen_ += static_cast<std::uint64_t>(std::ranges::count(access, std::byte{7}));
        }
        return;
      case 2: return data.prefetch();
      default: return data.drop();
    }
  }
  void meet() {
    ++met_;
    const std::size_t own = job_.rank() == 0 ? 2 : 0;
    require_ok(shared_.came[own].set(met_));
    require_ok(shared_.came[2 - own].wait(met_));
  }

  Job& job_;
  Shared& shared_;
  Hints& hints_;
  Random random_;
  std::uint64_t turn_ = 0;
  std::uint64_t met_ = 0;
  std::uint64_t seen_ = 0;
};

class ShareLies : public test::OnEveryWayToShare {};
INSTANTIATE_TEST_SUITE_P(Over, ShareLies, testing::ValuesIn(test::ways_to_share()), test::name_of);

TEST_P(ShareLies, HarmOnlyTheLiar) {
  Hints hints;
  const auto body = [&](Job& job) {
    Communicator world(job);
    Communicator control = world.duplicate();
    Shared shared(job);
    if (job.rank() == liar) {
      Liar tongue(job, hints, test::seed());
      const auto has_enough = [&](int rank) {
        return !job.alive(JobRank{rank}) || control.probe_now(Rank{rank}, Tag::any).has_value();
      };
      while (!has_enough(0) || !has_enough(1)) {
        for (int i = 0; i < heads_between_looks; ++i) tongue.tell(i % honest_ranks);
      }
      std::optional<guarded<int>> made_late;
      if (job.hosts() > 1) made_late.emplace(job, 0);
      for (const int rank : {0, 0, 1, 1})
        (void)control.receive(std::span<int>(), Rank{rank});  // the honest ranks have made it, too
      throw Exposed{};
    }
    Honest honest(job, shared, hints, test::seed());
    for (int turn = 0; turn < test::rounds(8) && !HasFatalFailure(); ++turn) honest.turn();
    test::require(!HasFatalFailure(), "an honest rank failed");
    require_ok(control.send(std::span<const int>(), Rank{liar}));
    std::optional<guarded<int>> made_late;
    if (job.hosts() > 1) made_late.emplace(job, 0);
    require_ok(control.send(std::span<const int>(), Rank{liar}));
    EXPECT_EQ(control.receive(std::span<int>(), Rank{liar}).status, Status::peer_gone);

    honest.expect_sure();
    if (!made_late) return;
    ++*made_late->write();
    const int other = 1 - job.rank().value();
    require_ok(control.send(std::span<const int>(), Rank{other}));
    require_ok(control.receive(std::span<int>(), Rank{other}).status);
    EXPECT_EQ(*made_late->read(), honest_ranks);
    require_ok(control.send(std::span<const int>(), Rank{other}));  // a rank that ends takes its part of the data along
    require_ok(control.receive(std::span<int>(), Rank{other}).status);
  };
  EXPECT_THROW(run_as_threads(ranks, body, GetParam().settings), Exposed);
}

}  // namespace
}  // namespace tonari
