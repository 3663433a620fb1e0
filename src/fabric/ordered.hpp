#pragma once

#include "base/lock.hpp"
#include "fabric/transport.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tonari::fabric {

/// Payload of Kind::credit: the number of heads that the receiver has handed up since the start, per lane.
struct Credit {
  std::uint64_t requests;
  std::uint64_t replies;
};

/// Makes a Transport, which keeps order, out of a wire, which does not. A wire has the send() and poll() of a Transport
/// and loses, duplicates and changes no head, but may deliver any two heads in either order. Its gone() says which
/// peers have died.
///
/// A head's `publish` carries its lane and its number in that lane between these two ranks, modulo 2^15. The receiver
/// stores heads that arrive early in a window per lane and peer. Windows are allocated in the constructor, so memory
/// grows with the number of peers. After each quarter of a window the receiver sends a credit: the number of heads
/// handed up. The sender never exceeds the window; when it is full, send() returns `again`. So at most five credits of
/// a peer are under way at a time, and the wire needs room for them beside the replies.
///
/// I1  acknowledged <= handed up <= sent <= acknowledged + window             send(); so numbers under way differ
/// I2  a peer is in a lane's list of ready peers if its next head is here     keep(), hand_up()
///
/// Threads: as Transport. Any sending thread and the polling thread use the wire.
/// Costs:   a send is the wire's send and one lock per pair of ranks; a head is copied once more.
template <class Wire>
class Ordered {
 public:
  /// Heads per window: powers of two, 4 to 16,384. `replies`: at least 1.25 times the replies that a rank may reserve.
  struct Windows {
    std::size_t requests;
    std::size_t replies;
  };

  /// `self`: this rank. The `source` of every head must be the rank that sends it.
  Ordered(Wire& wire, int peers, int self, Windows windows) : wire_(wire), self_(static_cast<std::uint32_t>(self)) {
    const auto count = static_cast<std::size_t>(peers);
    owing_.reserve(count);
    for (const Lane lane : {Lane::request, Lane::reply}) {
      const std::size_t window = lane == Lane::request ? windows.requests : windows.replies;
      of(lane).outbound = std::vector<Outbound>(count);
      of(lane).inbound = std::vector<Inbound>(count);
      for (Inbound& from : of(lane).inbound) from.early.resize(window, Early{false, {}});
      of(lane).ready.resize(count);
      of(lane).window = window;
    }
    owes_.resize(count);
  }
  Ordered(Ordered&&) = delete;  // has locks as members
  /// Returns the memory that each peer takes.
  static constexpr std::size_t bytes_per_peer(const Windows& windows) noexcept {
    return (windows.requests + windows.replies) * sizeof(Early) +
           2 * (sizeof(Outbound) + sizeof(Inbound) + sizeof(std::uint32_t)) + sizeof(std::uint32_t) + 1;
  }

  /// `tail`: further arguments of the wire's send().
  template <class... Tail>
  Status send(int peer, const Head& head, Lane lane, const Tail&... tail) noexcept {
    Outbound& to = of(lane).outbound[static_cast<std::size_t>(peer)];
    const std::lock_guard guard(to.lock);
    const std::uint64_t sent = to.sent.load(std::memory_order_relaxed);
    // Relaxed: the count guards no other data.
    if (sent >= to.acknowledged.load(std::memory_order_relaxed) + of(lane).window) [[unlikely]]
      return wire_.gone(peer) ? Status::peer_gone : Status::again;
    Head numbered = head;
    numbered.publish = static_cast<std::uint16_t>((sent & number_mask) << 1 | static_cast<unsigned>(lane));
    const Status status = wire_.send(peer, numbered, lane, tail...);
    if (status == Status::ok) to.sent.store(sent + 1, std::memory_order_relaxed);
    return status;
  }

  template <class Handle>
  std::size_t poll(std::size_t heads_max, Handle&& handle) noexcept {
    wire_.poll(heads_max, [this](const Head& head) noexcept { keep(head); });
    const std::size_t replies = hand_up(Lane::reply, heads_max, handle);
    const std::size_t heads = replies + hand_up(Lane::request, heads_max, handle);
    if (!owing_.empty()) pay();
    return heads;
  }

  /// Whether there is no head to hand up and no credit to send. Called by the poller before it sleeps.
  [[nodiscard]] bool quiet() const noexcept { return ways_[0].count == 0 && ways_[1].count == 0 && owing_.empty(); }

  /// Number of malformed heads that were dropped: with a number outside the window or received before, or credits for
  /// more heads than were sent.
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }

 private:
  static constexpr std::uint64_t number_mask = 0x7fff;

  struct Outbound {
    // Held while the wire sends. Another sender to this peer would otherwise wait for the wire's own lock.
    SpinLock lock;
    std::atomic<std::uint64_t> sent{0};          // written under the lock
    std::atomic<std::uint64_t> acknowledged{0};  // by the poller
  };
  struct Early {
    bool here;
    Head head;
  };
  struct Inbound {
    std::uint64_t taken = 0;   // heads handed up, which is also the number of the next
    std::vector<Early> early;  // by number modulo the window
  };
  struct Way {
    std::vector<Outbound> outbound;    // by rank
    std::vector<Inbound> inbound;      // by rank; used by the poller, as all below
    std::vector<std::uint32_t> ready;  // a circular queue of `count` ranks from index `first`
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t window = 0;
  };

  Way& of(Lane lane) noexcept { return ways_[static_cast<std::size_t>(lane)]; }
  static Early& next_of(Inbound& from) noexcept { return from.early[from.taken & (from.early.size() - 1)]; }

  void keep(const Head& head) noexcept {
    if (head.kind == Kind::credit) return take_credit(head);
    Way& way = of(static_cast<Lane>(head.publish & 1));
    if (head.source >= way.inbound.size()) return refuse();
    Inbound& from = way.inbound[head.source];
    const std::uint64_t ahead = ((head.publish >> 1) - from.taken) & number_mask;
    if (ahead >= way.window) return refuse();
    Early& place = from.early[(from.taken + ahead) & (way.window - 1)];
    if (place.here) return refuse();
    place = {true, head};
    if (ahead == 0) make_ready(way, head.source);
  }
  void refuse() noexcept { ++refused_; }

  static void make_ready(Way& way, std::uint32_t rank) noexcept {
    way.ready[(way.first + way.count++) % way.ready.size()] = rank;  // no rank is in the queue twice
  }

  // Hands up one head of each ready rank in turn, so that no rank waits behind another's flood.
  template <class Handle>
  std::size_t hand_up(Lane lane, std::size_t heads_max, Handle& handle) noexcept {
    Way& way = of(lane);
    std::size_t heads = 0;
    for (; heads < heads_max && way.count != 0; ++heads) {
      const std::uint32_t rank = way.ready[way.first];
      way.first = (way.first + 1) % way.ready.size();
      --way.count;
      Inbound& from = way.inbound[rank];
      Early& next = next_of(from);
      const Head head = next.head;
      next.here = false;
      ++from.taken;
      if (next_of(from).here) make_ready(way, rank);
      if (from.taken % (way.window / 4) == 0 && !owes_[rank]) {
        owes_[rank] = true;
        owing_.push_back(rank);
      }
      handle(head);
    }
    return heads;
  }

  // Sends the credits that are owed. If the wire has no room, the next poll tries again.
  void pay() noexcept {
    std::erase_if(owing_, [this](std::uint32_t rank) {
      Head head{};
      head.kind = Kind::credit;
      head.source = self_;
      head.set(Credit{of(Lane::request).inbound[rank].taken, of(Lane::reply).inbound[rank].taken});
      owes_[rank] = wire_.send(static_cast<int>(rank), head, Lane::reply) == Status::again;
      return !owes_[rank];
    });
  }

  void take_credit(const Head& head) noexcept {
    if (head.source >= owes_.size()) return refuse();
    const auto credit = head.as<Credit>();
    Outbound& requests = of(Lane::request).outbound[head.source];
    Outbound& replies = of(Lane::reply).outbound[head.source];
    if (credit.requests > sent_max(requests) || credit.replies > sent_max(replies)) return refuse();
    acknowledge(requests, credit.requests);
    acknowledge(replies, credit.replies);
  }
  // The largest credit that can be true. One head more than `sent` may be under way, since send() counts a head after
  // the wire has it; its credit may arrive first. A peer that abuses this overruns its own window and drops the excess.
  // Relaxed: the wire orders everything before a send before the poll that brings the head's credit.
  static std::uint64_t sent_max(const Outbound& to) noexcept { return to.sent.load(std::memory_order_relaxed) + 1; }
  // Credits may overtake each other: the highest is valid.
  static void acknowledge(Outbound& to, std::uint64_t taken) noexcept {
    if (taken > to.acknowledged.load(std::memory_order_relaxed)) {
      to.acknowledged.store(taken, std::memory_order_relaxed);
    }
  }

  Wire& wire_;
  std::uint32_t self_;
  Way ways_[2];                       // by lane
  std::vector<char> owes_;            // by rank, used by the poller, as all below: 1 if a credit is to be sent
  std::vector<std::uint32_t> owing_;  // the ranks for which it is 1
  std::uint64_t refused_ = 0;
};

}  // namespace tonari::fabric
