#include "hot_paths/paths.hpp"
#include "kernels/remote_pages.hpp"

#include <array>
#include <atomic>
#include <cstddef>

// Paths between hosts, and page faults of shared memory.
namespace tonari::bench::hot_paths {
namespace {

// Rank 0 measures; rank 1 waits in the library meanwhile, and so serves requests at once.
template <class Work>
void with_help(Bench& bench, Work&& work) {
  std::byte end{};
  if (bench.turns.rank() == 1) {
    require(bench.world.receive(end, Rank{0}).status);
  } else {
    work();
    require(bench.world.send(end, Rank{1}));
  }
}

void push(Bench& bench) {
  Window window(bench.job, 4096);
  const std::array<std::byte, 8> word{};
  with_help(bench, [&] {
    for (int round = 0; round < bench.rounds; ++round) {
      bench.measure("push", [&] { require(window.push(window.at(JobRank{1}), word)); });
    }
  });
  require(window.barrier());
}

constexpr std::size_t pages = 4096;

std::uint64_t read(const volatile std::uint64_t& word) noexcept { return word; }

// Pages far from each other, so that no page is fetched ahead.
std::size_t page_of(int round) noexcept { return static_cast<std::size_t>(round) * 1103 % pages; }

void read_fault(Bench& bench) {
  const RemotePages shared(bench.job, pages);
  with_help(bench, [&] {
    for (int round = 0; round < bench.rounds; ++round)
      bench.measure("read", [&] { read(shared.word(page_of(round))); });
  });
  require(share::barrier(bench.job));
}

// Rank 0 touches pages of its own for the first time. Each is in another block of 64 pages, since a block is mapped at
// once.
void read_fault_at_home(Bench& bench) {
  shared_array<std::uint64_t> array(bench.job, pages * page_words);
  for (int round = 0; round < bench.rounds && bench.turns.rank() == 0; ++round) {
    bench.measure("read", [&] { read(array[static_cast<std::size_t>(round) * 64 * page_words]); });
  }
  require(share::barrier(bench.job));
}

// Rank 0 reads a page, writes to it, and releases it at a barrier.
void write_fault(Bench& bench) {
  const RemotePages shared(bench.job, pages);
  for (int round = 0; round < bench.rounds; ++round) {
    volatile std::uint64_t& word = shared.word(page_of(round));
    if (bench.turns.rank() == 0) {
      bench.measure("read", [&] { read(word); });
      bench.measure("write", [&] { word = 7; });
      bench.measure("release", [&] { require(share::barrier(bench.job)); });
    } else {
      require(share::barrier(bench.job));
    }
  }
  require(share::barrier(bench.job));
}

// Rank 1 writes to a page of its own of which rank 0 has a copy, and releases it at a barrier.
void write_fault_at_home(Bench& bench) {
  const RemotePages shared(bench.job, pages);
  for (int round = 0; round < bench.rounds; ++round) {
    volatile std::uint64_t& word = shared.word(page_of(round));
    if (bench.turns.rank() == 1) {
      bench.measure("copy", [&] { require(share::barrier(bench.job)); });
      bench.measure("write", [&] { word = 7; });
      bench.measure("release", [&] { require(share::barrier(bench.job)); });
    } else {
      read(word);
      require(share::barrier(bench.job));
      require(share::barrier(bench.job));
    }
  }
}

constexpr std::array paths{
    Path{"push-remote", push},
    Path{"read-fault", read_fault},
    Path{"read-fault-home", read_fault_at_home},
    Path{"write-fault", write_fault},
    Path{"write-fault-home", write_fault_at_home},
};

}  // namespace

std::span<const Path> waiting_paths() noexcept { return paths; }

}  // namespace tonari::bench::hot_paths
