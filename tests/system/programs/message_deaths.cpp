// Three ranks, of which rank 1 dies in the PHASE given as first argument; rank 0 and 2 say what they see of it.
//
//   receive     the others wait to receive from it
//   anyone      the others have started to receive from anyone
//   barrier     the others are in a barrier
//   reduce      rank 2 is in an all-reduce, rank 0 in the middle of a started one
//   copy        rank 0 receives a long message from it, and kills it when the first bytes are there
//   unclaimed   it claims a slot in the rings of both others and never publishes it
//   sent        it has sent to both others, who receive only after its death
//   matched     the others have taken a long message of it by a matched probe, and receive it only after its death
//   room        rank 0 sends to it until there is no room
//
// With `live` as second argument the others have a death handler: they say "rank R saw STATUS", then exchange more
// messages than a ring has slots, and say "rank R went on".
#include "fabric/segment.hpp"
#include "job/session.hpp"

#include <tonari/tonari.hpp>

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using tonari::Communicator;
using tonari::Job;
using tonari::Status;

constexpr int victim = 1;
constexpr int never_sent = 9;  // a tag: no receive from any rank takes the survivors' first messages
constexpr std::size_t long_bytes = std::size_t{512} << 20;

void say(int rank, std::string_view what) {
  std::printf("rank %d %.*s\n", rank, static_cast<int>(what.size()), what.data());
  std::fflush(stdout);
}

[[noreturn]] void wait_for_death() {
  for (;;) ::pause();
}

std::atomic<bool> heard_of_death{false};

// The part of the other ranks while rank 1 dies.
Status survive(const std::string& phase, Communicator& world) {
  int value = 0;
  if (phase == "receive" || phase == "unclaimed") return world.receive(value, tonari::Rank{victim}).status;
  if (phase == "sent") {
    while (!heard_of_death.load()) std::this_thread::yield();
    const Status first = world.receive(value, tonari::Rank{victim}, tonari::Tag{4}).status;
    return first != Status::ok || value != victim ? Status::invalid
                                                  : world.receive(value, tonari::Rank{victim}, tonari::Tag{4}).status;
  }
  if (phase == "matched") {
    tonari::Message message = world.matched_probe(tonari::Rank{victim}, tonari::Tag{4});
    if (world.send(value, tonari::Rank{victim}, tonari::Tag{5}) != Status::ok) return Status::invalid;
    while (!heard_of_death.load()) std::this_thread::yield();
    std::vector<char> buffer(message.envelope().bytes);
    return message.receive(buffer).status;
  }
  if (phase == "barrier") return world.barrier();
  if (phase == "reduce" && world.rank() == 2) return world.all_reduce(value);
  if (phase == "reduce") return world.start_all_reduce(value).wait().status;
  if (world.rank() != 0) return world.receive(value, tonari::Rank{victim}).status;
  if (phase == "room") {
    for (;;) {
      const Status status = world.send(value, tonari::Rank{victim});
      if (status != Status::ok) return status;
    }
  }
  pid_t pid = 0;
  if (const Status status = world.receive(pid, tonari::Rank{victim}, tonari::Tag{1}).status; status != Status::ok)
    return status;
  std::vector<char> buffer(long_bytes);
  std::atomic<bool> over{false};
  std::jthread killer([&] {
    const volatile char* first = buffer.data();  // written by the kernel, for this rank or for the sender
    while (*first == 0 && !over.load()) {
    }
    ::kill(pid, SIGKILL);
  });
  const Status status = world.receive(buffer, tonari::Rank{victim}, tonari::Tag{2}).status;
  over.store(true);
  return status;
}

[[noreturn]] void die(const std::string& phase, Job& job, Communicator& world) {
  if (phase == "copy") {
    if (world.send(::getpid(), tonari::Rank{0}, tonari::Tag{1}) == Status::ok)
      (void)world.send(std::vector<char>(long_bytes, 1), tonari::Rank{0}, tonari::Tag{2});
  }
  if (phase == "unclaimed") {
    for (const int rank : {0, 2}) {
      auto& tail = tonari::fabric::Segment(job.session().arena().segment(rank)).requests().tail;
      const auto claimed = tonari::fabric::claimed_count(tail.load());
      tail.store((claimed + 1) << tonari::fabric::count_shift | std::uint64_t{victim} << 1);
    }
  }
  if (phase == "matched") {
    const std::vector<char> bytes(std::size_t{1} << 20);
    const std::array sends{world.start_send(bytes, tonari::Rank{0}, tonari::Tag{4}),
                           world.start_send(bytes, tonari::Rank{2}, tonari::Tag{4})};
    int taken = 0;
    for (const int rank : {0, 2}) (void)world.receive(taken, tonari::Rank{rank}, tonari::Tag{5});
    ::kill(::getpid(), SIGKILL);
  }
  if (phase == "sent") {
    for (const int rank : {0, 2}) (void)world.send(victim, tonari::Rank{rank}, tonari::Tag{4});
    ::kill(::getpid(), SIGKILL);
  }
  wait_for_death();
}

// More than a ring has slots, both ways at once.
Status go_on(Communicator& world) {
  const int other = 2 - world.rank().value();
  for (int i = 0; i < 5000; ++i) {
    int value = -1;
    if (const Status status = world.send(i, tonari::Rank{other}, tonari::Tag{3}); status != Status::ok) return status;
    if (const Status status = world.receive(value, tonari::Rank{other}, tonari::Tag{3}).status; status != Status::ok)
      return status;
    if (value != i) return Status::invalid;
  }
  return Status::ok;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string phase = argc > 1 ? argv[1] : "";
  Job job;
  Communicator world(job);
  if (argc > 2) job.on_death([](const tonari::Death&) { heard_of_death.store(true); });
  std::printf("%d is %d\n", world.rank().value(), ::getpid());
  if (world.barrier() != Status::ok) return 1;
  // Started before the rank says that it is ready: a receive from any rank ends with deaths that follow, not with
  // earlier ones.
  std::optional<tonari::Request> from_anyone;
  int never_received = 0;
  if (phase == "anyone" && world.rank() != victim) {
    from_anyone = world.start_receive(never_received, tonari::Rank::any, tonari::Tag{never_sent});
  }
  say(world.rank().value(), "is ready");
  if (world.rank() == victim) die(phase, job, world);

  const Status seen = from_anyone ? from_anyone->wait().status : survive(phase, world);
  say(world.rank().value(), "saw " + std::string(to_string(seen)));
  if (const Status status = go_on(world); status != Status::ok) {
    say(world.rank().value(), "could not go on: " + std::string(explain(status)));
    return 1;
  }
  say(world.rank().value(), "went on");
}
