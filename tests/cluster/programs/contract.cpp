// The transport contract between hosts. Wire i of a world is in rank i of the job. Rank 0 runs the tests and sends
// orders to the other ranks. Each rank first prints the kind of processor that it was built for. The arguments are
// GoogleTest's.
#include "../../contract/transport_suite.hpp"
#include "../../contract/ucx_world.hpp"
#include "../../support/require.hpp"

#include <tonari/tonari.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>

namespace tonari::fabric {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::size_t bytes_max = 8192;  // of an order or a reply

enum class Word : std::uint32_t { open, introduce, put_in_order, send, poll, close, end };

/// Followed by the address of the peer, for introduce.
struct Order {
  Word word{};
  std::uint32_t rank = 0;    ///< The wire's own rank, the peer to introduce, or the destination.
  std::uint64_t number = 0;  ///< Ranks of the world, a lane, or how many heads it may take.
  Head head{};
};

/// Behind it: an address, or heads.
struct Answer {
  std::uint64_t number = 0;  ///< A status, or how many heads the poll says that it took.
  Bytes behind;
};

template <class T>
Bytes joined(const T& first, std::span<const std::byte> behind) {
  Bytes all(sizeof first + behind.size());
  std::memcpy(all.data(), &first, sizeof first);
  std::ranges::copy(behind, all.begin() + sizeof first);
  return all;
}

template <class T>
T taken(std::span<const std::byte>& from) {
  T value;
  test::require(from.size() >= sizeof value, "a short message");
  std::memcpy(&value, from.data(), sizeof value);
  from = from.subspan(sizeof value);
  return value;
}

Bytes received(Communicator& world, int from) {
  Bytes bytes(bytes_max);
  const Result<Envelope> result = world.receive(bytes, Rank{from});
  test::require_ok(result.status);
  bytes.resize(result.value.bytes);
  return bytes;
}

/// This rank's end of the transport.
class OwnWire {
 public:
  Answer obey(const Order& order, std::span<const std::byte> behind) {
    const auto rank = static_cast<int>(order.rank);
    switch (order.word) {
      case Word::open:
        settings_ = ucx_settings(static_cast<int>(order.number), rank);
        settings_.devices = "eth0";
        bare_.emplace(settings_);
        return {0, address_of(*bare_)};
      case Word::introduce: bare_->introduce(rank, {behind.begin(), behind.end()}); return {};
      case Word::put_in_order: wire_.emplace(*bare_, settings_.ranks, settings_.self, ucx_windows); return {};
      case Word::send: return {static_cast<std::uint64_t>(send(rank, order.head, static_cast<Lane>(order.number))), {}};
      case Word::poll: return poll(order.number);
      case Word::close:
        wire_.reset();
        bare_.reset();
        return {};
      case Word::end: break;
    }
    throw std::invalid_argument("no such word");
  }

 private:
  Status send(int peer, const Head& head, Lane lane) {
    return wire_ ? wire_->send(peer, head, lane) : bare_->send(peer, head, lane);
  }
  Answer poll(std::size_t heads_max) {
    Answer answer;
    const auto take = [&](const Head& head) noexcept {
      const auto bytes = std::as_bytes(std::span(&head, 1));
      answer.behind.insert(answer.behind.end(), bytes.begin(), bytes.end());
    };
    answer.number = wire_ ? wire_->poll(heads_max, take) : bare_->poll(heads_max, take);
    return answer;
  }

  ucx::Wire::Settings settings_;
  std::optional<ucx::Wire> bare_;  // as it is while they get to know each other
  std::optional<Ordered<ucx::Wire>> wire_;
};

void obey_rank_0(Communicator& world) {
  for (OwnWire own;;) {
    const Bytes said = received(world, 0);
    std::span<const std::byte> behind = said;
    const auto order = taken<Order>(behind);
    if (order.word == Word::end) return;
    const Answer answer = own.obey(order, behind);
    test::require_ok(world.send(joined(answer.number, answer.behind), Rank{0}));
  }
}

/// At rank 0: the wire of any rank.
class DirectedWire {
 public:
  DirectedWire(Communicator& world, int rank) : world_(world), rank_(rank) {}

  Status send(int peer, const Head& head, Lane lane) noexcept {
    const auto to = static_cast<std::uint32_t>(peer);
    return static_cast<Status>(ask({Word::send, to, static_cast<std::uint64_t>(lane), head}).number);
  }
  template <class Handle>
  std::size_t poll(std::size_t heads_max, Handle&& handle) noexcept {
    const Answer answer = ask({Word::poll, 0, heads_max});
    for (std::span<const std::byte> heads = answer.behind; !heads.empty();) handle(taken<Head>(heads));
    return answer.number;
  }
  Answer ask(const Order& order, std::span<const std::byte> behind = {}) {
    if (rank_ == 0) return own_.obey(order, behind);
    const std::lock_guard guard(mutex_);
    test::require_ok(world_.send(joined(order, behind), Rank{rank_}));
    const Bytes said = received(world_, rank_);
    std::span<const std::byte> rest = said;
    const auto number = taken<std::uint64_t>(rest);
    return {number, {rest.begin(), rest.end()}};
  }

 private:
  Communicator& world_;
  int rank_;
  OwnWire own_;       // of rank 0
  std::mutex mutex_;  // held from an order to its reply
};

class HostsWorld {
 public:
  using Wire = DirectedWire;
  static constexpr std::size_t replies_reserved = UcxWorld::replies_reserved;
  static constexpr std::size_t overtaken_max = UcxWorld::overtaken_max;
  inline static Communicator* job = nullptr;  // the tests make their worlds themselves

  HostsWorld(int ranks, std::uint64_t) {
    test::require(ranks <= job->size(), "more ranks are needed");
    std::vector<Bytes> addresses;
    for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(ranks); ++rank) {
      auto& wire = wires_.emplace_back(std::make_unique<Wire>(*job, static_cast<int>(rank)));
      addresses.push_back(wire->ask({Word::open, rank, static_cast<std::uint64_t>(ranks)}).behind);
    }
    for (const auto& wire : wires_) {
      for (std::uint32_t peer = 0; peer < addresses.size(); ++peer) wire->ask({Word::introduce, peer}, addresses[peer]);
    }
    greet(*this);
    for (const auto& wire : wires_) wire->ask({Word::put_in_order});
  }
  HostsWorld(HostsWorld&&) = delete;
  ~HostsWorld() {
    for (const auto& wire : wires_) wire->ask({Word::close});
  }
  Wire& operator[](int rank) { return *wires_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(wires_.size()); }

 private:
  std::vector<std::unique_ptr<Wire>> wires_;
};
static_assert(Transport<DirectedWire>);

INSTANTIATE_TYPED_TEST_SUITE_P(BetweenHosts, TransportContract, testing::Types<HostsWorld>);

constexpr const char* processor() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "another";
#endif
}

int run(Communicator& world) {
  if (world.rank() != 0) {
    obey_rank_0(world);
    return 0;
  }
  HostsWorld::job = &world;
  const int status = RUN_ALL_TESTS();
  for (int rank = 1; rank < world.size(); ++rank)
    test::require_ok(world.send(joined(Order{Word::end}, {}), Rank{rank}));
  return status;
}

}  // namespace
}  // namespace tonari::fabric

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    tonari::Job job;
    std::printf("rank %d is %s\n", job.rank().value(), tonari::fabric::processor());
    std::fflush(stdout);
    tonari::Communicator world(job);
    return tonari::fabric::run(world);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "contract: %s\n", failure.what());
    return 1;
  }
}
