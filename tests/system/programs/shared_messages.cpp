// Messages and one-sided accesses between ranks' own memory and shared memory of which they have copies. By the first
// argument:
//
//   received   each rank receives its part of an array whose pages other ranks read ahead meanwhile; then all read all
//   absent     rank 0 sends, receives, broadcasts, reduces, pushes and pulls pages that it does not have, of each
//   length window     a window over shared memory
//
// Says "rank R: all is right", or what was wrong.
#include <tonari/tonari.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace tonari;

constexpr int tag = 5;

void require(Status status, const std::string& what) {
  if (status != Status::ok) throw std::runtime_error(what + ": " + std::string(to_string(status)));
}

void require_all(std::span<const char> bytes, char value, const std::string& what) {
  const auto wrong = std::ranges::count_if(bytes, [value](char byte) { return byte != value; });
  if (wrong != 0) throw std::runtime_error(what + ": " + std::to_string(wrong) + " bytes are wrong");
}

void receive_in_place(Job& job) {
  constexpr std::size_t part_bytes = 300'000;  // ends within a page
  constexpr char rounds = 20;
  Communicator world(job);
  const int other = 1 - job.rank().value();
  for (char round = 1; round <= rounds; ++round) {
    ArrayOptions options;
    options.placement = Placement::cyclic;
    options.cyclic_bytes = 4096;
    const shared_array<char> array(job, 2 * part_bytes, options);
    const std::vector<char> out(part_bytes, round);
    const std::span<char> own(array.data() + job.rank().index() * part_bytes, part_bytes);
    Request received = world.start_receive(own, Rank{other}, Tag{tag});
    require(world.send(std::span(out), Rank{other}, Tag{tag}), "send");
    require(received.wait().status, "receive");
    require(share::barrier(job), "barrier");
    require_all({array.data(), array.size()}, round, "round " + std::to_string(round));
    require(share::barrier(job), "barrier");
  }
}

// An operation of rank 0 on an array of which it has no page, and its counterpart of rank 1 on private memory.
struct Use {
  std::string name;
  std::function<Status(Communicator&, Window&, std::span<char> shared, std::span<char> own)> at_0;
  std::function<Status(Communicator&, Window&, std::span<char> shared, std::span<char> own)> at_1;
};

char larger(char one, char other) { return std::max(one, other); }

std::span<std::byte> bytes_of(std::span<char> values) { return std::as_writable_bytes(values); }

const std::vector<Use> uses{
    {"send",
     [](auto& world, auto&, auto shared, auto) { return world.send(std::span<const char>(shared), Rank{1}, Tag{tag}); },
     [](auto& world, auto&, auto, auto own) { return world.receive(own, Rank{0}, Tag{tag}).status; }},
    {"receive", [](auto& world, auto&, auto shared, auto) { return world.receive(shared, Rank{1}, Tag{tag}).status; },
     [](auto& world, auto&, auto, auto own) { return world.send(std::span<const char>(own), Rank{0}, Tag{tag}); }},
    {"broadcast from", [](auto& world, auto&, auto shared, auto) { return world.broadcast(shared, Rank{0}); },
     [](auto& world, auto&, auto, auto own) { return world.broadcast(own, Rank{0}); }},
    {"broadcast to", [](auto& world, auto&, auto shared, auto) { return world.broadcast(shared, Rank{1}); },
     [](auto& world, auto&, auto, auto own) { return world.broadcast(own, Rank{1}); }},
    {"all_reduce", [](auto& world, auto&, auto shared, auto) { return world.all_reduce(shared, larger); },
     [](auto& world, auto&, auto, auto own) { return world.all_reduce(own, larger); }},
    {"push",
     [](auto&, auto& window, auto shared, auto) {
       const Status pushed = window.push(window.at(JobRank{1}), bytes_of(shared));
       return pushed == Status::ok ? window.barrier() : pushed;
     },
     [](auto&, auto& window, auto, auto) { return window.barrier(); }},
    {"pull",
     [](auto&, auto& window, auto shared, auto) {
       const Status pulled = window.pull(bytes_of(shared), window.at(JobRank{1}));
       return pulled == Status::ok ? window.barrier() : pulled;
     },
     [](auto&, auto& window, auto, auto) { return window.barrier(); }},
};

void use_absent_pages(Job& job) {
  Communicator world(job);
  for (const std::size_t bytes : {8UL, 1'000UL, 17'000UL, 300'000UL, 2'000'000UL}) {
    for (const Use& use : uses) {
      const std::string what = use.name + " of " + std::to_string(bytes);
      ArrayOptions at_rank_1;
      at_rank_1.placement = Placement::by_function;
      at_rank_1.home = [](std::uint64_t) { return JobRank{1}; };
      const shared_array<char> array(job, bytes, at_rank_1);
      const std::span<char> shared(array.data(), bytes);
      std::vector<char> own(bytes, 7);
      Window window(job, std::as_writable_bytes(std::span(own)));
      if (job.rank() == 1) std::ranges::fill(shared, 7);
      require(share::barrier(job), "barrier");
      require((job.rank() == 0 ? use.at_0 : use.at_1)(world, window, shared, own), what);
      require_all(own, 7, what);
      require(share::barrier(job), "barrier");
      require_all(shared, 7, what);
      require(share::barrier(job), "barrier");
    }
  }
}

void open_window(Job& job) {
  const shared_array<std::byte> array(job, 10'000);
  const Window window(job, array.span());
}

}  // namespace

int main(int, char** arguments) {
  const std::map<std::string, std::function<void(Job&)>> phases{
      {"received", receive_in_place}, {"absent", use_absent_pages}, {"window", open_window}};
  try {
    Job job;
    phases.at(arguments[1])(job);
    std::printf("rank %d: all is right\n", job.rank().value());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
