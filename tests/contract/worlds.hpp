#pragma once

#include "base/futex.hpp"
#include "fabric/ordered.hpp"
#include "fabric/shm.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

// The Worlds on which the contract is tested. Each is several ranks in this process, with one kind of transport.
namespace tonari::fabric {

/// A ring in separate zeroed memory.
struct OwnRing {
  explicit OwnRing(std::size_t slots) {
    const std::size_t bytes = ring_control_bytes + slots * head_bytes;
    memory.reset(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
    std::memset(memory.get(), 0, bytes);
  }
  [[nodiscard]] RingMemory& operator*() const noexcept { return *static_cast<RingMemory*>(memory.get()); }

  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory;
};

struct Street {
  explicit Street(int ranks) : dead(static_cast<std::size_t>(ranks)), doorbells(static_cast<std::size_t>(ranks)) {}
  std::vector<std::atomic<bool>> dead;
  std::vector<std::atomic<std::uint32_t>> doorbells;
};
struct Neighbours {
  Street* street;
  [[nodiscard]] bool alive(int rank) const noexcept { return !street->dead[static_cast<std::size_t>(rank)].load(); }
  void wake(int rank) const noexcept { ring_doorbell(street->doorbells[static_cast<std::size_t>(rank)]); }
};

/// Ranks that share memory, with rings of `slots` slots.
template <std::size_t slots>
class ShmWorld {
 public:
  using Wire = Shm<Neighbours>;
  static constexpr std::size_t replies_reserved = slots / 2;  // in total for all peers of a rank
  static constexpr std::size_t overtaken_max = 0;

  ShmWorld(int ranks, std::uint64_t) : street(ranks) {
    std::vector<Rings> all;
    for (int rank = 0; rank < ranks; ++rank) {
      all.push_back({&*requests.emplace_back(slots), &*replies.emplace_back(slots)});
    }
    for (int rank = 0; rank < ranks; ++rank) {
      wires.push_back(std::make_unique<Wire>(all, slots, slots, rank, Neighbours{&street}));
    }
  }
  Wire& operator[](int rank) { return *wires[static_cast<std::size_t>(rank)]; }

  Street street;
  std::vector<OwnRing> requests;
  std::vector<OwnRing> replies;
  std::vector<std::unique_ptr<Wire>> wires;
};

/// Delivers some polls late, and refuses requests at random.
class SlowWire {
 public:
  SlowWire(Shm<Neighbours>& below, std::uint64_t seed) : below_(below), refusals_(seed), delays_(seed + 1) {}

  Status send(int peer, const Head& head, Lane lane) noexcept {
    if (lane == Lane::request) {
      const std::lock_guard guard(lock_);
      if (refusals_() % 4 == 0) return Status::again;
    }
    return below_.send(peer, head, lane);
  }
  template <class Handle>
  std::size_t poll(std::size_t heads_max, Handle&& handle) noexcept {
    if (late_.size() < late_max) below_.poll(16, [this](const Head& head) { late_.push_back(head); });
    std::size_t heads = 0;
    for (; heads < heads_max && !late_.empty() && delays_() % 8 != 0; ++heads) {
      const Head head = late_.front();
      late_.pop_front();
      handle(head);
    }
    return heads;
  }

 private:
  static constexpr std::size_t late_max = 64;

  Shm<Neighbours>& below_;
  SpinLock lock_;
  std::mt19937_64 refusals_;  // protected by the lock
  std::mt19937_64 delays_;
  std::deque<Head> late_;
};

class SlowWorld {
 public:
  using Wire = SlowWire;
  static constexpr std::size_t replies_reserved = 128;
  static constexpr std::size_t overtaken_max = 0;

  SlowWorld(int ranks, std::uint64_t seed) : below_(ranks, seed) {
    for (int rank = 0; rank < ranks; ++rank) {
      wires_.push_back(std::make_unique<Wire>(below_[rank], seed + 2 * static_cast<std::uint64_t>(rank)));
    }
  }
  Wire& operator[](int rank) { return *wires_[static_cast<std::size_t>(rank)]; }

 private:
  ShmWorld<256> below_;
  std::vector<std::unique_ptr<Wire>> wires_;
};

/// A network that delivers heads in random order, but delays no head for ever.
class ShufflingNet {
 public:
  static constexpr std::size_t overtaken_max = 500;

  ShufflingNet(int ranks, std::uint64_t seed) : random_(seed), bags_(static_cast<std::size_t>(ranks)) {}

  Status send(int peer, const Head& head) {
    const std::lock_guard guard(mutex_);
    if (random_() % 8 == 0) return Status::again;
    bags_[static_cast<std::size_t>(peer)].push_back({head, 0});
    return Status::ok;
  }
  template <class Handle>
  void poll(int rank, std::size_t heads_max, Handle& handle) {
    const std::lock_guard guard(mutex_);
    auto& bag = bags_[static_cast<std::size_t>(rank)];
    for (std::size_t heads = 0; heads < heads_max && !bag.empty(); ++heads) {
      std::size_t at = bag.front().overtaken >= overtaken_max ? 0 : random_() % bag.size();
      for (std::size_t i = 0; i < at; ++i) ++bag[i].overtaken;
      const Head head = bag[at].head;
      bag.erase(bag.begin() + static_cast<std::ptrdiff_t>(at));
      handle(head);
    }
  }

 private:
  struct Under {
    Head head;
    std::size_t overtaken;
  };
  std::mutex mutex_;  // protects the members below
  std::mt19937_64 random_;
  std::vector<std::vector<Under>> bags_;
};

/// One rank's end of a ShufflingNet. Replies are never refused, since their room is reserved. Credits may be refused.
struct ShufflingWire {
  ShufflingNet* net;
  int rank;

  Status send(int peer, const Head& head, Lane lane) noexcept {
    Status status = net->send(peer, head);
    while (lane == Lane::reply && head.kind != Kind::credit && status == Status::again) status = net->send(peer, head);
    return status;
  }
  template <class Handle>
  std::size_t poll(std::size_t heads_max, Handle&& handle) noexcept {
    net->poll(rank, heads_max, handle);
    return 0;
  }
  [[nodiscard]] static bool gone(int /*peer*/) noexcept { return false; }
};

class OrderedWorld {
 public:
  using Wire = Ordered<ShufflingWire>;
  static constexpr std::size_t replies_reserved = 48;
  static constexpr std::size_t overtaken_max = ShufflingNet::overtaken_max;

  OrderedWorld(int ranks, std::uint64_t seed) : net_(ranks, seed) {
    for (int rank = 0; rank < ranks; ++rank) below_.push_back({&net_, rank});
    for (int rank = 0; rank < ranks; ++rank) {
      wires_.push_back(std::make_unique<Wire>(below_[static_cast<std::size_t>(rank)], ranks, rank,
                                              Wire::Windows{.requests = 32, .replies = 64}));
    }
  }
  Wire& operator[](int rank) { return *wires_[static_cast<std::size_t>(rank)]; }

 private:
  ShufflingNet net_;
  std::vector<ShufflingWire> below_;
  std::vector<std::unique_ptr<Wire>> wires_;
};

}  // namespace tonari::fabric
