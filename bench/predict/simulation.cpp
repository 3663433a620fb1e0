#include "predict/simulation.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <stdexcept>
#include <utility>
#include <vector>

namespace tonari::bench::predict {

namespace {

using Kind = Programs::Kind;

struct Event {
  enum class What : std::uint32_t {
    begin,      // the rank begins
    announced,  // a message that is not eager wants to leave: from `peer` to `rank`
    arrived,    // a message from `peer`
    sent,       // a message that was not eager has reached `peer`
  };
  double time_us;
  std::uint64_t number;  // decides between events of the same time
  int rank;
  int peer;
  std::uint32_t bytes;
  What what;
};

struct Later {
  bool operator()(const Event& a, const Event& b) const noexcept {
    return a.time_us != b.time_us ? a.time_us > b.time_us : a.number > b.number;
  }
};

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

// A message, or its announcement, that has come before its receive.
struct Early {
  double time_us;
  int peer;
  std::uint32_t bytes;
  bool is_announcement;
  std::uint32_t next;
};

struct Rank {
  std::size_t next = 0;         // step
  std::size_t round_start = 0;  // the first step since the last wait
  double now_us = 0;
  double posted_us = 0;  // when it started the first receive of the round
  bool has_posted = false;
  double out_free_us = 0;
  std::uint32_t missing = 0;  // started sends and receives
  std::uint32_t early_first = none;
  std::uint32_t early_last = none;
  std::uint32_t rounds = 0;
};

struct Core {
  double free_us = 0;
  int last = -1;  // the rank that has used it last
};

class Simulation {
 public:
  Simulation(const Parameters& parameters, const Shape& shape, Programs programs)
      : parameters_(parameters),
        shape_(shape),
        programs_(std::move(programs)),
        ranks_(static_cast<std::size_t>(programs_.ranks())),
        cores_(static_cast<std::size_t>(shape.cores)),
        link_out_us_(static_cast<std::size_t>(shape.hosts())),
        link_in_us_(static_cast<std::size_t>(shape.hosts())) {}

  Outcome run() {
    for (int rank = 0; rank < programs_.ranks(); ++rank) {
      at(rank).next = at(rank).round_start = programs_.start(rank);
      push(0, Event::What::begin, rank, rank, 0);
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      handle(event);
    }
    for (int rank = 0; rank < programs_.ranks(); ++rank) {
      if (at(rank).next != programs_.end(rank)) throw std::logic_error("the simulated ranks deadlock");
      outcome_.time_us = std::max(outcome_.time_us, at(rank).now_us);
      outcome_.rounds = std::max<std::uint64_t>(outcome_.rounds, at(rank).rounds);
    }
    return outcome_;
  }

 private:
  Rank& at(int rank) noexcept { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] bool is_local(int a, int b) const noexcept { return shape_.host_of(a) == shape_.host_of(b); }
  [[nodiscard]] const Costs& costs(int a, int b) const noexcept {
    return is_local(a, b) ? parameters_.in_host : parameters_.between_hosts;
  }
  double& link(std::vector<double>& links, int rank) noexcept {
    return links[static_cast<std::size_t>(shape_.host_of(rank))];
  }

  void push(double time_us, Event::What what, int rank, int peer, std::uint32_t bytes) {
    events_.push({time_us, number_++, rank, peer, bytes, what});
  }

  // The rank's core is busy, from `earliest_us` on or as soon as it is free.
  void spend(int rank, double earliest_us, double us) noexcept {
    Rank& self = at(rank);
    self.now_us = std::max(self.now_us, earliest_us);
    if (cores_.empty()) {
      self.now_us += us;
      return;
    }
    Core& core = cores_[static_cast<std::size_t>(rank) % cores_.size()];
    const double switch_us = core.last == rank ? 0 : parameters_.switch_us;
    self.now_us = core.free_us = std::max(self.now_us, core.free_us + switch_us) + us;
    core.last = rank;
  }

  void handle(const Event& event) {
    switch (event.what) {
      case Event::What::begin: return advance(event.rank);
      case Event::What::announced: return meet(event, true);
      case Event::What::arrived:
        return meet({deliver(event), 0, event.rank, event.peer, event.bytes, event.what}, false);
      case Event::What::sent: {
        Rank& self = at(event.rank);
        self.now_us = std::max(self.now_us, event.time_us);
        if (--self.missing == 0) advance(event.rank);
      }
    }
  }

  // Executes steps until the rank has to wait. Every other event finds the rank waiting, or ended.
  void advance(int rank) {
    Rank& self = at(rank);
    for (; self.next != programs_.end(rank); ++self.next) {
      const Programs::Step step = programs_.step(self.next);
      if (step.kind() == Kind::work) spend(rank, 0, step.us());
      if (step.kind() == Kind::receive) {
        ++self.missing;
        if (!std::exchange(self.has_posted, true)) self.posted_us = self.now_us;
      }
      if (step.kind() == Kind::send) start_send(rank, step);
      if (step.kind() != Kind::wait) continue;
      take_early(rank);
      if (self.missing != 0) return;
      ++self.rounds;
      self.has_posted = false;
      self.round_start = self.next + 1;
    }
  }

  void start_send(int rank, const Programs::Step& step) {
    const Costs& link = costs(rank, step.peer());
    const MessageCost cost = link.at(step.bytes());
    spend(rank, 0, cost.send_us);
    ++outcome_.messages;
    if (!is_local(rank, step.peer())) ++outcome_.messages_between_hosts;
    if (link.is_eager(step.bytes())) return transfer(rank, step.peer(), cost, at(rank).now_us, cost.latency_us);
    ++at(rank).missing;
    push(at(rank).now_us + link.points().front().latency_us, Event::What::announced, step.peer(), rank, step.bytes());
  }

  // The data of a message leave at `earliest_us` or later, and arrive `latency_us` after that, but not before
  // `arrives_us_min`.
  void transfer(int from, int to, const MessageCost& cost, double earliest_us, double latency_us,
                double arrives_us_min = 0) {
    Rank& sender = at(from);
    double leaves_us = std::max(earliest_us, sender.out_free_us);
    if (!is_local(from, to)) {
      double& out = link(link_out_us_, from);
      leaves_us = std::max(leaves_us, out);
      out = leaves_us + parameters_.between_hosts.link_us(cost);
    }
    sender.out_free_us = leaves_us + cost.gap_us;
    push(std::max(leaves_us + latency_us, arrives_us_min), Event::What::arrived, to, from,
         static_cast<std::uint32_t>(cost.bytes));
  }

  // Returns when the message is there, if others have occupied the link.
  double deliver(const Event& event) {
    if (is_local(event.rank, event.peer)) return event.time_us;
    double& in = link(link_in_us_, event.rank);
    const Costs& costs = parameters_.between_hosts;
    return in = std::max(event.time_us, in + costs.link_us(costs.at(event.bytes)));
  }

  void meet(const Event& event, bool is_announcement) {
    const Early message{event.time_us, event.peer, event.bytes, is_announcement, none};
    if (!match(event.rank, message)) return append(event.rank, message);
    Rank& self = at(event.rank);
    if (self.missing == 0 && self.next != programs_.end(event.rank)) advance(event.rank);
  }

  // Gives messages that have come before the round to its receives.
  void take_early(int rank) {
    Rank& self = at(rank);
    std::uint32_t* link = &self.early_first;
    self.early_last = none;
    while (*link != none) {
      const std::uint32_t index = *link;
      const Early message = early_[index];
      if (match(rank, message)) {
        *link = message.next;
        free_.push_back(index);
        continue;
      }
      self.early_last = index;
      link = &early_[index].next;
    }
  }

  void append(int rank, const Early& message) {
    Rank& self = at(rank);
    auto index = static_cast<std::uint32_t>(early_.size());
    if (free_.empty()) {
      early_.push_back(message);
    } else {
      index = free_.back();
      free_.pop_back();
      early_[index] = message;
    }
    (self.early_last == none ? self.early_first : early_[self.early_last].next) = index;
    self.early_last = index;
  }

  // Gives the message to a receive of the round. Returns false if there is none.
  bool match(int rank, const Early& message) {
    Rank& self = at(rank);
    for (std::size_t index = self.round_start; index < self.next; ++index) {
      Programs::Step& step = programs_.step(index);
      if (step.kind() != Kind::receive || step.peer() != message.peer) continue;
      const Costs& link = costs(rank, message.peer);
      const MessageCost cost = link.at(message.bytes);
      if (message.is_announcement) {
        const double granted_us = std::max(message.time_us, self.posted_us);
        spend(message.peer, granted_us, cost.push_us);
        const double pushed_us = at(message.peer).now_us - cost.receive_us;  // both sides work at the same time
        const double rest_us = std::max(0.0, cost.latency_us - link.points().front().latency_us);
        transfer(message.peer, rank, cost, granted_us, rest_us, pushed_us);
        return true;
      }
      step.finish();
      spend(rank, message.time_us, cost.receive_us);
      --self.missing;
      if (!link.is_eager(message.bytes)) {
        push(std::max(message.time_us, self.now_us - cost.receive_us), Event::What::sent, message.peer, rank, 0);
      }
      return true;
    }
    return false;
  }

  const Parameters& parameters_;
  Shape shape_;
  Programs programs_;
  std::vector<Rank> ranks_;
  std::vector<Core> cores_;  // shared by ranks; none: each rank has its own
  std::vector<double> link_out_us_;
  std::vector<double> link_in_us_;
  std::vector<Early> early_;
  std::vector<std::uint32_t> free_;  // of early_
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::uint64_t number_ = 0;
  Outcome outcome_;
};

}  // namespace

Outcome simulate(const Parameters& parameters, const Shape& shape, Programs programs) {
  return Simulation(parameters, shape, std::move(programs)).run();
}

}  // namespace tonari::bench::predict
