#include <tonari/tonari.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

// Every rank sends its number to the next one, and counts in its part of a window. Exits with 0 if each rank receives
// the number of the previous rank, and counts to 1.
int main() {
  tonari::Job job;
  tonari::Communicator world(job);
  const tonari::Rank next = (world.rank() + 1) % world.size();
  const tonari::Rank previous = (world.rank() + world.size() - 1) % world.size();

  int number = -1;
  auto received = world.start_receive(number, previous);
  const auto sent = world.send(world.rank(), next);

  bool right = received.wait().status == tonari::Status::ok && sent == tonari::Status::ok && number == previous;

  // These calls are inline: they are compiled with this project's compiler and flags.
  tonari::Window window(job, sizeof(std::uint64_t));
  const tonari::GlobalAddress there = window.at(tonari::JobRank{next.value()});
  std::uint64_t count = 0;
  right = right && window.push(there, std::as_bytes(std::span(&count, 1))) == tonari::Status::ok;
  right = right && window.fetch_add(there, std::uint64_t{1}).status == tonari::Status::ok;
  right = right && window.pull(std::as_writable_bytes(std::span(&count, 1)), there) == tonari::Status::ok && count == 1;
  right = window.barrier() == tonari::Status::ok && right;

  std::printf("rank %d of %d: %s\n", world.rank().value(), world.size(), right ? "right" : "wrong");
  return right ? 0 : 1;
}
