#include "../support/random.hpp"
#include "../support/ranks.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <thread>
#include <tuple>

// Compares matching with a model, while several threads of each rank post receives (some with wildcards), probe, match
// and cancel in random order. Every message is received once. Where two receives of one thread match the same two
// messages of one sender, the receive that was posted first gets the message that was sent first.
namespace tonari {
namespace {

constexpr int ranks = 3;
constexpr int threads = 3;
constexpr int tags = 3;
constexpr std::size_t sent_each = 30;  // messages from each thread to each rank
constexpr std::array<std::size_t, 5> lengths{16, 40, 300, 6000, 20000};

// The first bytes of a message: the thread that sent it, and its number among that thread's messages with the same tag
// to the same rank.
struct Name {
  std::int32_t rank;
  std::int32_t thread;
  std::int32_t tag;
  std::int32_t number;
};
using Stream = std::tuple<int, int, int>;

class Actor {
 public:
  Actor(Communicator& world, std::atomic<std::size_t>& left, int thread, std::uint64_t seed)
      : world_(world),
        left_(left),
        thread_(thread),
        random_(seed + static_cast<std::uint64_t>(world.rank().value() * threads + thread)) {
    left_to_send_.fill(sent_each);
  }

  void act() {
    while (left_.load() != 0 || unsent() != 0) {
      const std::size_t choice = test::between(random_, 0, 99);
      if (choice < 30) {
        send();
      } else if (choice < 55) {
        post();
      } else if (choice < 60) {
        look();
      } else if (choice < 70) {
        take();
      } else if (choice < 75) {
        cancel();
      } else {
        test_one();
      }
    }
    for (Receive& each : receives_) {
      EXPECT_TRUE(each.request.complete() || each.request.cancel())
          << "the receive matched a message although all messages were received";
    }
    EXPECT_EQ(wait_all(sends_), Status::ok);
    check_order();
  }

 private:
  static constexpr std::size_t receives_max = 8;
  struct Receive {
    std::size_t turn;  // the position in the order of posting
    Rank source;
    Tag tag;
    std::vector<std::byte> buffer;
    Request request;
  };
  struct Received {
    std::size_t turn;
    int number;
  };

  [[nodiscard]] std::size_t unsent() const {
    std::size_t sum = 0;
    for (const std::size_t each : left_to_send_) sum += each;
    return sum;
  }
  int any_rank() { return static_cast<int>(test::between(random_, 0, ranks - 1)); }
  int a_tag() { return static_cast<int>(test::between(random_, 0, tags - 1)); }

  void send() {
    const int to = any_rank();
    std::size_t& left = left_to_send_[static_cast<std::size_t>(to)];
    if (left == 0) return;
    --left;
    const int tag = a_tag();
    const Name name{world_.rank().value(), thread_, tag, numbers_[{to, tag}]++};
    auto& sent = sent_.emplace_back(test::pattern(lengths[test::between(random_, 0, lengths.size() - 1)], 5));
    std::memcpy(sent.data(), &name, sizeof name);
    const auto mode = test::chance(random_, 20) ? SendMode::when_posted : SendMode::standard;
    sends_.push_back(world_.start_send(sent, Rank{to}, Tag{tag}, mode));
  }
  void post() {
    if (receives_.size() == receives_max) return test_one();
    const Rank source = test::chance(random_, 40) ? Rank::any : Rank{any_rank()};
    const Tag tag = test::chance(random_, 40) ? Tag::any : Tag{a_tag()};
    Receive& receive =
        receives_.emplace_back(Receive{turns_++, source, tag, std::vector<std::byte>(lengths.back()), {}});
    receive.request = world_.start_receive(receive.buffer, source, tag);
  }
  void look() {
    const int source = any_rank();
    const auto found = world_.probe_now(Rank{source}, Tag::any);
    EXPECT_TRUE(!found || (found->source == source && found->tag >= 0 && found->tag < tags));
  }
  void take() {
    if (receives_.size() == receives_max) return test_one();
    const std::size_t turn = turns_++;
    auto message = world_.matched_probe_now(Rank::any, Tag{a_tag()});
    if (!message) return;
    const Envelope found = message->envelope();
    Receive& receive =
        receives_.emplace_back(Receive{turn, found.source, found.tag, std::vector<std::byte>(lengths.back()), {}});
    receive.request = message->start_receive(receive.buffer);
  }
  void cancel() {
    if (receives_.empty()) return;
    const auto one = pick();
    if (!one->request.cancel()) return;
    EXPECT_EQ(one->request.wait().status, Status::cancelled);
    receives_.erase(one);
  }
  void test_one() {
    if (receives_.empty()) return;
    const auto one = pick();
    const auto result = one->request.test();
    if (!result) return;
    note(*one, *result);
    receives_.erase(one);
  }
  std::deque<Receive>::iterator pick() {
    return receives_.begin() + static_cast<std::ptrdiff_t>(test::between(random_, 0, receives_.size() - 1));
  }

  void note(const Receive& receive, const Result<Envelope>& result) {
    Name name{};
    std::memcpy(&name, receive.buffer.data(), sizeof name);
    const auto& [source, tag, bytes] = result.value;
    EXPECT_EQ(result.status, Status::ok);
    EXPECT_TRUE(source == name.rank && tag == name.tag) << "the envelope of the message is that of another one";
    EXPECT_TRUE((receive.source == Rank::any || receive.source == source) &&
                (receive.tag == Tag::any || receive.tag == tag))
        << "the receive does not match the message";
    const auto content = test::pattern(bytes, 5);
    EXPECT_TRUE(std::equal(content.begin() + sizeof name, content.end(), receive.buffer.begin() + sizeof name));
    received_[{name.rank, name.thread, name.tag}].push_back({receive.turn, name.number});
    EXPECT_NE(left_.fetch_sub(1), 0U) << "more messages came than were sent";
  }
  // The comparison is strict, so it also finds messages that came twice.
  void check_order() {
    for (auto& [stream, all] : received_) {
      std::ranges::sort(all, {}, &Received::turn);
      const auto wrong = std::ranges::adjacent_find(all, std::ranges::greater_equal{}, &Received::number);
      EXPECT_TRUE(wrong == all.end()) << "number " << wrong->number << " of rank " << std::get<0>(stream) << ", thread "
                                      << std::get<1>(stream) << ", tag " << std::get<2>(stream);
    }
  }

  Communicator& world_;
  std::atomic<std::size_t>& left_;  // the messages that this rank still has to receive
  int thread_;
  test::Random random_;
  std::array<std::size_t, ranks> left_to_send_{};
  std::map<std::pair<int, int>, int> numbers_;  // the next number, by destination and tag
  std::deque<std::vector<std::byte>> sent_;
  std::vector<Request> sends_;
  std::size_t turns_ = 0;
  std::deque<Receive> receives_;
  std::map<Stream, std::vector<Received>> received_;
};

class Model : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, Model, testing::ValuesIn(test::variants_and_network()), test::name_of);

TEST_P(Model, HoldsWhileThreadsPostProbeAndCancelAtOnce) {
  for (int turn = 0; turn < test::rounds(2); ++turn) {
    const std::uint64_t seed = (test::seed() * 1000 + static_cast<std::uint64_t>(turn)) * 100;
    run(ranks, [seed](Communicator& world) {
      std::atomic<std::size_t> left{ranks * threads * sent_each};
      {
        std::vector<std::jthread> running;
        for (int thread = 0; thread < threads; ++thread) {
          running.emplace_back([&world, &left, thread, seed] { Actor(world, left, thread, seed).act(); });
        }
      }
      EXPECT_EQ(world.barrier(), Status::ok);  // a rank that leaves would end the others' receives from it
      EXPECT_FALSE(world.probe_now(Rank::any, Tag::any).has_value());
    });
  }
}

}  // namespace
}  // namespace tonari
