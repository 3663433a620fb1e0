// Messages between real hosts, checked. The first argument names the check. Each rank prints "rank R did it" after
// success.
//
//   exchange          every size in every manner between rank 0 and the last one, both ways; then one of 9 MB
//   traffic SEED      random messages between all ranks, then collectives
//   announced         each rank starts many long sends to all other ranks, before any rank receives; probes find them
//   collectives       every collective, on the world and on communicators that were split off it
//   broadcast N, all_reduce N, all_gather N   N times; each rank has 1 MiB afterwards
//   leave             the last rank sends messages and leaves; the other ranks receive them and continue without it
//   wait              each of two ranks waits for a message that is never sent, until it finds the other rank dead
//   quiet             three of four ranks wait for the last one, until it has died. Only rank 1 is connected to it
//   rounds [RANK...]  messages between all ranks in rounds, until the named ranks have died and all others know it.
//                     Without RANK: forever, and without a death handler. Prints "R is PID", then "rank R is ready"
#include "../../support/collective.hpp"
#include "../../support/exchange.hpp"
#include "../../support/rank.hpp"
#include "../../support/traffic.hpp"

#include <tonari/tonari.hpp>

#include <unistd.h>

#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace tonari;
using test::name;
using test::pattern;
using test::require;
using test::require_ok;
using test::say;

// ---- exchange, traffic

void exchange(Communicator& world) {
  const int last = world.size() - 1;
  test::exchange_all(world, 0, last);
  test::exchange_all(world, last, 0);
  constexpr std::size_t bytes = 9'000'001;
  if (world.rank() == 0) test::send_one(world, last, test::manners[0], bytes, 9);
  if (world.rank() == last) test::receive_one(world, 0, test::manners[0], bytes, 9);
}

void traffic(Communicator& world, std::uint64_t seed) {
  const test::Plan plan(world.size(), 200, seed);
  test::Player(world, plan, seed).play([](int) { return true; });
  for (std::size_t i = 0; i < 8; ++i) require_ok(test::collective(world, i, i * 5000));
}

// ---- announced

constexpr int announced_count = 40;

std::size_t announced_bytes(int number) { return 13000 + static_cast<std::size_t>(number) * 5000; }

void announced(Communicator& world) {
  std::vector<std::vector<std::byte>> sent;
  std::vector<Request> sends;
  for (int number = 0; number < announced_count; ++number) {
    sent.push_back(pattern(announced_bytes(number), static_cast<std::size_t>(number)));
  }
  for (int to = 0; to < world.size(); ++to) {
    for (int number = 0; to != world.rank() && number < announced_count; ++number) {
      const auto mode = number % 3 == 0 ? SendMode::when_posted : SendMode::standard;
      sends.push_back(world.start_send(sent[static_cast<std::size_t>(number)], Rank{to}, Tag{number}, mode));
    }
  }
  for (int number = announced_count - 1; number >= 0; --number) {
    for (int other = 1; other < world.size(); ++other) {
      Message message = world.matched_probe(Rank::any, Tag{number});
      std::vector<std::byte> received(message.envelope().bytes);
      require_ok(message.receive(received).status);
      require(received == sent[static_cast<std::size_t>(number)], "an announced message came changed");
    }
  }
  for (Request& send : sends) require_ok(send.wait().status);
  require(!world.probe_now(Rank::any, Tag::any).has_value(), "a message too many came");
}

// ---- collectives

// x -> a x + b: combining them is associative, and does not commute.
struct Affine {
  std::uint32_t a, b;
  bool operator==(const Affine&) const = default;
};
constexpr auto then = [](const Affine& left, const Affine& right) {
  return Affine{left.a * right.a, left.a * right.b + left.b};
};
using Values = std::vector<Affine>;

// The values that a rank contributes for another one.
Values values(std::size_t count, int from, int to = 0) {
  Values result(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto word = static_cast<std::uint32_t>((i * 31 + static_cast<std::size_t>(from)) * 37) +
                      static_cast<std::uint32_t>(to) * 7919;
    result[i] = {2 * word + 1, word};
  }
  return result;
}

class Collectives {
 public:
  Collectives(Communicator& group, std::size_t count) : group_(group), count_(count) {
    for (std::size_t rank = 0; rank < ranks(); ++rank) uneven_.push_back(rank % 3 == 1 ? 0 : count + rank);
  }

  void check() {
    require_ok(group_.barrier());
    for (int root = 0; root < group_.size(); ++root) check_rooted(root);
    check_of_all();
    check_started();
  }

 private:
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(group_.size()); }
  [[nodiscard]] int rank() const { return group_.rank().value(); }
  [[nodiscard]] std::size_t of(int rank) const { return uneven_[static_cast<std::size_t>(rank)]; }

  /// The parts of all ranks, one behind the other.
  template <class Part>
  Values parts(Part part) const {
    Values result;
    for (int each = 0; each < group_.size(); ++each) {
      const Values one = part(each);
      result.insert(result.end(), one.begin(), one.end());
    }
    return result;
  }
  Values even() const {
    return parts([this](int each) { return values(count_, each); });
  }
  Values uneven() const {
    return parts([this](int each) { return values(of(each), each); });
  }
  /// The combination of the values of ranks 0 to `last`.
  Values combined(int last) const {
    Values result = values(count_, 0);
    for (int each = 1; each <= last; ++each) {
      const Values next = values(count_, each);
      for (std::size_t i = 0; i < count_; ++i) result[i] = then(result[i], next[i]);
    }
    return result;
  }
  /// `right()` looks at what the call gave, and so must come after it.
  template <class Right>
  void expect(Status status, Right right, const char* what) const {
    require(status == Status::ok && right(), std::string(what) + " of " + std::to_string(count_) + " among " +
                                                 std::to_string(ranks()) + ": " + std::string(to_string(status)));
  }

  void check_rooted(int root) {
    const bool is_root = rank() == root;
    const Values mine = values(count_, rank());
    Values given = is_root ? values(count_, root) : Values(count_);
    expect(
        group_.broadcast(given, Rank{root}), [&] { return given == values(count_, root); }, "broadcast");

    Values all(is_root ? even().size() : 0);
    expect(
        group_.gather(mine, all, Rank{root}), [&] { return !is_root || all == even(); }, "gather");
    all.resize(is_root ? uneven().size() : 0);
    expect(
        group_.gather_v(values(of(rank()), rank()), all, uneven_, Rank{root}),
        [&] { return !is_root || all == uneven(); }, "gather_v");

    Values part(count_);
    expect(
        group_.scatter(is_root ? even() : Values(), part, Rank{root}), [&] { return part == mine; }, "scatter");
    part.resize(of(rank()));
    const Status status = group_.scatter_v(is_root ? uneven() : Values(), uneven_, part, Rank{root});
    expect(
        status, [&] { return part == values(of(rank()), rank()); }, "scatter_v");

    part = mine;
    const Status reduced = group_.reduce(part, Rank{root}, then);
    expect(
        reduced, [&] { return !is_root || part == combined(group_.size() - 1); }, "reduce");
  }

  void check_of_all() {
    const Values mine = values(count_, rank());
    Values all(even().size());
    expect(
        group_.all_gather(mine, all), [&] { return all == even(); }, "all_gather");
    all.resize(uneven().size());
    expect(
        group_.all_gather_v(values(of(rank()), rank()), all, uneven_), [&] { return all == uneven(); }, "all_gather_v");

    const Values to_each = parts([this](int to) { return values(count_, rank(), to); });
    all.resize(to_each.size());
    const Status exchanged = group_.all_to_all(to_each, all);
    expect(
        exchanged, [&] { return all == parts([this](int from) { return values(count_, from, rank()); }); },
        "all_to_all");
    const Values to_some = parts([this](int to) { return values(of(to), rank(), to); });  // to a rank: the same of all
    const std::vector<std::size_t> mine_each(ranks(), of(rank()));
    const Values from_each = parts([this](int from) { return values(of(rank()), from, rank()); });
    all.resize(from_each.size());
    expect(
        group_.all_to_all_v(to_some, uneven_, all, mine_each), [&] { return all == from_each; }, "all_to_all_v");

    Values part = mine;
    expect(
        group_.all_reduce(part, then), [&] { return part == combined(group_.size() - 1); }, "all_reduce");
    part = mine;
    expect(
        group_.scan(part, then), [&] { return part == combined(rank()); }, "scan");
    part = mine;
    expect(
        group_.exclusive_scan(part, then), [&] { return rank() == 0 || part == combined(rank() - 1); },
        "exclusive_scan");
  }

  void check_started() {
    const int root = group_.size() - 1;
    Values given = rank() == root ? values(count_, root) : Values(count_);
    Values sum = values(count_, rank());
    Values all(even().size());
    const Values mine = values(count_, rank());
    std::array requests{group_.start_all_reduce(sum, then), group_.start_barrier(),
                        group_.start_broadcast(given, Rank{root}), group_.start_all_gather(mine, all)};
    for (auto request = requests.rbegin(); request != requests.rend(); ++request) require_ok(request->wait().status);
    const bool right = sum == combined(root) && given == values(count_, root) && all == even();
    expect(
        Status::ok, [right] { return right; }, "several at once");
  }

  Communicator& group_;
  std::size_t count_;
  std::vector<std::size_t> uneven_;
};

void check_collectives(Communicator& group) {
  for (const std::size_t count : {0, 1, 7, 600, 5000, 40000}) Collectives(group, count).check();
}

void collectives(Communicator& world) {
  check_collectives(world);
  for (const int color : {world.rank().value() % 2, 2 * world.rank().value() / world.size()}) {  // across hosts; within
    auto part = world.split(color, -world.rank().value());                                       // in the reverse order
    check_collectives(part.value());
  }
}

constexpr std::size_t mebibyte = 1 << 20;

void broadcast(Communicator& world, int times) {
  for (int time = 0; time < times; ++time) {
    const auto sent = pattern(mebibyte, static_cast<std::size_t>(time));
    auto bytes = world.rank() == 1 ? sent : std::vector<std::byte>(mebibyte);
    require_ok(world.broadcast(bytes, Rank{1}));
    require(bytes == sent, "a broadcast came changed");
  }
}

void all_reduce(Communicator& world, int times) {
  for (int time = 0; time < times; ++time) {
    std::vector<int> values(mebibyte / sizeof(int), world.rank().value() + time);
    require_ok(world.all_reduce(values));
    const int sum = world.size() * (world.size() - 1) / 2 + world.size() * time;
    require(values == std::vector<int>(values.size(), sum), "a sum is wrong");
  }
}

void all_gather(Communicator& world, int times) {
  const std::size_t part = mebibyte / static_cast<std::size_t>(world.size());
  for (int time = 0; time < times; ++time) {
    std::vector<std::byte> all(part * static_cast<std::size_t>(world.size()));
    require_ok(world.all_gather(pattern(part, static_cast<std::size_t>(world.rank().value() + time)), all));
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(world.size()); ++rank) {
      const auto its = pattern(part, rank + static_cast<std::size_t>(time));
      require(std::equal(its.begin(), its.end(), all.begin() + static_cast<std::ptrdiff_t>(rank * part)),
              "a part came changed");
    }
  }
}

// ---- leave

constexpr int sent_before_leaving = 30;

std::size_t bytes_before_leaving(int number) { return static_cast<std::size_t>(number) * 300; }

void leave(Communicator& world) {
  const int leaver = world.size() - 1;
  auto others = world.split(world.rank() == leaver ? 1 : 0, world.rank().value());
  if (world.rank() == leaver) {
    for (int to = 0; to < leaver; ++to) {
      for (int number = 0; number < sent_before_leaving; ++number) {
        require_ok(
            world.send(pattern(bytes_before_leaving(number), static_cast<std::size_t>(number)), Rank{to}, Tag{number}));
      }
    }
    return;
  }
  int value = 0;
  const std::vector<std::byte> many(200000);
  Request long_send = world.start_send(many, Rank{leaver}, Tag{1}, SendMode::when_posted);
  const auto expect_gone = [](Status status) { require(status == Status::peer_gone, "the leaver is not gone"); };
  expect_gone(world.receive(value, Rank{leaver}, Tag{sent_before_leaving}).status);
  expect_gone(long_send.wait().status);
  expect_gone(world.send(value, Rank{leaver}));
  expect_gone(world.send(many, Rank{leaver}));
  for (int number = sent_before_leaving - 1; number >= 0; --number) {
    std::vector<std::byte> received(bytes_before_leaving(number));
    require_ok(world.receive(received, Rank{leaver}, Tag{number}).status);
    require(received == pattern(received.size(), static_cast<std::size_t>(number)), "it came changed");
  }
  expect_gone(world.probe(Rank{leaver}, Tag::any).status);
  traffic(*others, 1);
}

// ---- wait

void wait(Job& job, Communicator& world) {
  job.on_death([](const Death&) {});
  const int other = 1 - world.rank().value();
  int value = 0;
  Request request = world.start_receive(value, Rank{other}, Tag{1});
  require_ok(world.barrier());
  say(name(world.rank().value()) + " is ready");
  require(request.wait().status == Status::peer_gone, "the other is not gone");
}

// ---- quiet

void tell_deaths(Job& job) {
  job.on_death([rank = job.rank()](const Death& death) {
    say(name(rank.value()) + " heard that " + to_string(death.rank) + " of " + death.host + " died");
  });
}

void quiet(Job& job, Communicator& world) {
  tell_deaths(job);
  say(to_string(world.rank()) + " is " + std::to_string(::getpid()));
  const int watching =
      world.rank().value() ^ 2;  // connected, so that no connection is half made when the last rank dies
  int value = 0;
  require_ok(world.send(value, Rank{watching}, Tag{1}));
  require_ok(world.receive(value, Rank{watching}, Tag{1}).status);
  say(name(world.rank().value()) + " is ready");
  if (world.rank() == 3) ::pause();
  require(world.receive(value, Rank{3}, Tag{2}).status == Status::peer_gone, "the last rank is not gone");
  say(name(world.rank().value()) + " saw peer_gone of 3");
}

// ---- rounds

/// The message from each rank to each other one in each round, besides some bytes.
struct Word {
  std::uint64_t round;
  std::uint64_t all_dead;  ///< 1: the sender knows that all victims have died.
};

class Rounds {
 public:
  Rounds(Job& job, Communicator& world, std::vector<int> victims)
      : job_(job), world_(world), victims_(std::move(victims)) {
    const auto size = static_cast<std::size_t>(world.size());
    gone_.resize(size);
    words_.resize(size);
    for (std::size_t other = 0; other < size; ++other) bytes_.emplace_back(bytes_max);
  }

  void play() {
    if (!victims_.empty()) tell_deaths(job_);
    say(to_string(world_.rank()) + " is " + std::to_string(::getpid()));
    std::uint64_t round = 0;
    do {
      if (round == 20) say(name(world_.rank().value()) + " is ready");
      exchange(round++);
    } while (!all_know());
    say(name(world_.rank().value()) + " went on");
  }

 private:
  static constexpr std::size_t bytes_max = 60000;
  static std::size_t bytes_of(std::uint64_t round) { return (round * 7919) % bytes_max; }

  [[nodiscard]] bool dead(int rank) const { return gone_[static_cast<std::size_t>(rank)] != 0; }
  [[nodiscard]] bool all_dead() const {
    return std::ranges::all_of(victims_, [this](int rank) { return dead(rank); });
  }
  [[nodiscard]] bool all_know() const {
    bool all = !victims_.empty() && knew_;
    for (int other = 0; other < world_.size(); ++other) {
      if (other != world_.rank() && !dead(other)) all = all && words_[static_cast<std::size_t>(other)].all_dead != 0;
    }
    return all;
  }

  void exchange(std::uint64_t round) {
    knew_ = all_dead();
    const Word word{round, knew_ ? 1U : 0U};
    const auto sent = pattern(bytes_of(round), round);
    struct Talk {
      int other;
      std::array<Request, 4> requests;
    };
    std::vector<Talk> talks;
    for (int other = 0; other < world_.size(); ++other) {
      if (other == world_.rank() || dead(other)) continue;
      const auto index = static_cast<std::size_t>(other);
      talks.push_back({other,
                       {world_.start_receive(words_[index], Rank{other}, Tag{1}),
                        world_.start_receive(std::span(bytes_[index]).first(sent.size()), Rank{other}, Tag{2}),
                        world_.start_send(word, Rank{other}, Tag{1}), world_.start_send(sent, Rank{other}, Tag{2})}});
    }
    for (Talk& talk : talks) {
      bool whole = true;
      for (Request& request : talk.requests) {
        const Status status = request.wait().status;
        require(status == Status::ok || status == Status::peer_gone,
                "a request returned " + std::string(to_string(status)));
        whole = whole && status == Status::ok;
      }
      if (!whole) notice(talk.other);
      if (whole) check(talk.other, round, sent);
    }
  }
  void notice(int other) {
    require(std::ranges::find(victims_, other) != victims_.end(), name(other) + " is gone, and was not to die");
    gone_[static_cast<std::size_t>(other)] = 1;
    say(name(world_.rank().value()) + " saw peer_gone of " + std::to_string(other));
  }
  void check(int other, std::uint64_t round, const std::vector<std::byte>& sent) {
    const auto index = static_cast<std::size_t>(other);
    require(words_[index].round == round, "a message of another round came");
    require(std::equal(sent.begin(), sent.end(), bytes_[index].begin()), "a message came changed");
  }

  Job& job_;
  Communicator& world_;
  std::vector<int> victims_;
  bool knew_ = false;  // when this round began
  std::vector<char> gone_;
  std::vector<Word> words_;
  std::vector<std::vector<std::byte>> bytes_;
};

void act(Job& job, Communicator& world, const std::vector<std::string>& words) {
  const std::string what = words.empty() ? "" : words[0];
  std::vector<int> numbers;
  for (std::size_t i = 1; i < words.size(); ++i) numbers.push_back(std::stoi(words[i]));
  if (what == "exchange") return exchange(world);
  if (what == "traffic") return traffic(world, static_cast<std::uint64_t>(numbers.at(0)));
  if (what == "announced") return announced(world);
  if (what == "collectives") return collectives(world);
  if (what == "broadcast") return broadcast(world, numbers.at(0));
  if (what == "all_reduce") return all_reduce(world, numbers.at(0));
  if (what == "all_gather") return all_gather(world, numbers.at(0));
  if (what == "leave") return leave(world);
  if (what == "wait") return wait(job, world);
  if (what == "quiet") return quiet(job, world);
  if (what == "rounds") return Rounds(job, world, numbers).play();
  throw std::invalid_argument("messages does not know the word " + what);
}

}  // namespace

int main(int argc, char** argv) {
  return test::run_rank(argc, argv, [](Job& job, const std::vector<std::string>& arguments) {
    Communicator world(job);
    act(job, world, arguments);
  });
}
