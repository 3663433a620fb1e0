#pragma once

#include "random.hpp"
#include "require.hpp"

#include <tonari/message.hpp>

#include <iterator>
#include <thread>
#include <vector>

// Random traffic. Every rank knows all messages of all ranks. So it knows which it must receive, and in which order
// from each sender.
namespace tonari::test {

struct Plan {
  struct Message {
    int to;
    int tag;
    std::size_t bytes;
    std::size_t number;
  };
  static constexpr std::size_t bytes_max = 150000;

  Plan(int ranks, int messages, std::uint64_t seed) : by_sender(static_cast<std::size_t>(ranks)) {
    Random random(seed);
    std::size_t number = 0;
    for (auto& sent : by_sender) {
      for (int i = 0; i < messages; ++i) {
        const int to = static_cast<int>(between(random, 0, static_cast<std::size_t>(ranks) - 1));
        const int tag = static_cast<int>(between(random, 0, 2));
        const std::size_t kind = between(random, 0, 9);
        const std::size_t bytes = between(random, 0, kind < 5 ? 64 : kind < 9 ? 9000 : bytes_max);
        sent.push_back({to, tag, bytes, number++});
      }
    }
  }

  std::vector<std::vector<Message>> by_sender;
};

/// One rank's part in a plan. It sends its messages and receives the others', in its own random order, with blocking
/// and started calls, by rank and by wildcard. Ranks may die meanwhile. Then their messages may be missing, but all
/// other messages must come.
class Player {
 public:
  Player(Communicator& world, const Plan& plan, std::uint64_t seed)
      : world_(world),
        random_(seed * 31 + static_cast<std::uint64_t>(world.rank().value())),
        to_send_(plan.by_sender[world.rank().index()]),
        is_dead_(plan.by_sender.size()) {
    for (const auto& sent : plan.by_sender) {
      auto& from_one = due_.emplace_back();
      std::ranges::copy_if(sent, std::back_inserter(from_one),
                           [&](const auto& each) { return each.to == world.rank(); });
      std::ranges::reverse(from_one);  // so the next message is at the back
    }
  }

  /// `alive(rank)` returns whether a rank still lives.
  template <class Alive>
  void play(Alive&& alive) {
    while (is_due() || sent_ < to_send_.size()) {
      send_some(between(random_, 0, 8));
      if (!is_due()) continue;
      const Rank source = chance(random_, 50) ? Rank::any : Rank{random_source()};
      Request request = world_.start_receive(received_, source);
      while (!request.test().has_value()) {
        if (sent_ == to_send_.size()) {
          (void)request.wait();
        } else {
          send_some(1);  // the awaited message may depend on this send
        }
      }
      const Result<Envelope> result = request.wait();
      if (result.status == Status::ok) {
        check(result.value);
      } else {
        require(result.status == Status::peer_gone, "a receive returned " + std::string(to_string(result.status)));
        // The copy of a payload may fail, since its sender is gone, before the death is reported.
        while (result.value.source >= 0 && alive(result.value.source.value())) std::this_thread::yield();
        forget_dead(alive);
      }
    }
    for (Request& send : sends_) {
      const Status status = send.wait().status;
      require(status == Status::ok || status == Status::peer_gone, "a send returned " + std::string(to_string(status)));
      forget_dead(alive);
      const bool one_died = std::ranges::find(is_dead_, true) != is_dead_.end();
      require(status == Status::ok || one_died, "a send returned peer_gone, but no rank died");
    }
  }

 private:
  [[nodiscard]] bool is_due() const {
    return std::ranges::any_of(due_, [](const auto& from_one) { return !from_one.empty(); });
  }
  int random_source() {
    for (;;) {
      const std::size_t source = between(random_, 0, due_.size() - 1);
      if (!due_[source].empty()) return static_cast<int>(source);
    }
  }
  void send_some(std::size_t count) {
    for (; count > 0 && sent_ < to_send_.size(); --count, ++sent_) {
      const Plan::Message& message = to_send_[sent_];
      buffers_.push_back(pattern(message.bytes, message.number));
      const auto mode = chance(random_, 20) ? SendMode::when_posted : SendMode::standard;
      sends_.push_back(world_.start_send(buffers_.back(), Rank{message.to}, Tag{message.tag}, mode));
    }
  }
  void check(const Envelope& envelope) {
    auto& from_one = due_.at(envelope.source.index());
    if (from_one.empty() && is_dead_[envelope.source.index()]) return;  // the sender sent this message before it died
    require(!from_one.empty(), "a message too many came");
    const Plan::Message expected = from_one.back();
    from_one.pop_back();
    require(envelope.tag == expected.tag && envelope.bytes == expected.bytes, "a message came out of order");
    const auto content = pattern(expected.bytes, expected.number);
    require(std::equal(content.begin(), content.end(), received_.begin()), "a message came changed");
  }
  template <class Alive>
  void forget_dead(Alive& alive) {
    for (std::size_t rank = 0; rank < due_.size(); ++rank) {
      if (alive(static_cast<int>(rank))) continue;
      due_[rank].clear();
      is_dead_[rank] = true;
    }
  }

  Communicator& world_;
  Random random_;
  const std::vector<Plan::Message>& to_send_;
  std::size_t sent_ = 0;
  std::vector<std::vector<Plan::Message>> due_;  // by sender; the next message is at the back
  std::vector<std::vector<std::byte>> buffers_;
  std::vector<Request> sends_;
  std::vector<std::byte> received_ = std::vector<std::byte>(Plan::bytes_max);
  std::vector<bool> is_dead_;
};

}  // namespace tonari::test
