#include "hot_paths/paths.hpp"

#include "fabric/engine.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <vector>

// Paths within a host.
namespace tonari::bench::hot_paths {
namespace {

void nothing(Bench& bench) {
  for (int round = 0; round < bench.rounds; ++round) bench.measure("nothing", [] {});
}

// Rank 0 sends; then rank 1 receives, in a way that `receive(buffer)` chooses.
template <std::size_t bytes, class Take>
void message(Bench& bench, Take take) {
  std::vector<std::byte> buffer(bytes);
  for (int round = 0; round < bench.rounds; ++round) {
    bench.turns.take(0, [&] { bench.measure("send", [&] { require(bench.world.send(buffer, Rank{1})); }); });
    bench.turns.take(1, [&] { bench.measure("receive", [&] { take(buffer); }); });
  }
}

// The receive is posted before the fabric takes the head out of the ring.
template <std::size_t bytes>
void message_posted(Bench& bench) {
  message<bytes>(bench, [&](auto& buffer) { require(bench.world.receive(buffer, Rank{0}).status); });
}

// The fabric takes the head out of the ring before the receive.
template <std::size_t bytes>
void message_unexpected(Bench& bench) {
  auto& engine = fabric::Engine::of(bench.job.session());
  message<bytes>(bench, [&](auto& buffer) {
    engine.progress();
    require(bench.world.receive(buffer, Rank{0}).status);
  });
}

void message_started(Bench& bench) {
  message<8>(bench, [&](auto& buffer) {
    Request request = bench.world.start_receive(buffer, Rank{0});
    require(request.wait().status);
  });
}

// A payload that is copied between the programs. A blocking send would wait for the receiver, so it is started.
void message_direct(Bench& bench) {
  std::vector<std::byte> buffer(64 * 1024);
  for (int round = 0; round < bench.rounds; ++round) {
    Request sent;
    bench.turns.take(0, [&] { bench.measure("start_send", [&] { sent = bench.world.start_send(buffer, Rank{1}); }); });
    bench.turns.take(1,
                     [&] { bench.measure("receive", [&] { require(bench.world.receive(buffer, Rank{0}).status); }); });
    bench.turns.take(0, [&] { bench.measure("wait", [&] { require(sent.wait().status); }); });
  }
}

// Rank 0 enters first and waits; rank 1 enters last and does not wait.
void barrier(Bench& bench) {
  for (int round = 0; round < bench.rounds; ++round) {
    bench.turns.meet();
    if (bench.turns.rank() == 0) {
      bench.measure("first", [&] {
        bench.turns.announce();
        require(bench.world.barrier());
      });
    } else {
      bench.turns.wait_for_announcement();
      bench.measure("last", [&] { require(bench.world.barrier()); });
    }
  }
}

// Rank 0 accesses a word of rank 1's part; then rank 1 reads the word.
template <class Access>
void access(Bench& bench, Access access) {
  Window window(bench.job, 4096);
  std::array<std::byte, 8> word{};
  for (int round = 0; round < bench.rounds; ++round) {
    bench.turns.take(0, [&] { bench.measure("access", [&] { require(access(window, word)); }); });
    bench.turns.take(1, [&] {
      bench.measure("load", [&] {
        const auto* const own = reinterpret_cast<const std::atomic<std::uint64_t>*>(window.local().data());
        (void)own->load(std::memory_order_acquire);
      });
    });
  }
  require(window.barrier());
}

void push(Bench& bench) {
  access(bench, [](Window& window, auto& word) { return window.push(window.at(JobRank{1}), word); });
}
void pull(Bench& bench) {
  access(bench, [](Window& window, auto& word) { return window.pull(word, window.at(JobRank{1})); });
}
void fetch_add(Bench& bench) {
  access(bench, [](Window& window, auto&) { return window.fetch_add(window.at(JobRank{1}), std::uint64_t{1}).status; });
}

constexpr std::array paths{
    Path{"nothing", nothing},
    Path{"message-8-posted", message_posted<8>},
    Path{"message-8-unexpected", message_unexpected<8>},
    Path{"message-8-started", message_started},
    Path{"message-4k-posted", message_posted<4096>},
    Path{"message-4k-unexpected", message_unexpected<4096>},
    Path{"message-64k", message_direct},
    Path{"barrier", barrier},
    Path{"push-8", push},
    Path{"pull-8", pull},
    Path{"fetch-add", fetch_add},
};

}  // namespace

std::span<const Path> local_paths() noexcept { return paths; }

}  // namespace tonari::bench::hot_paths
