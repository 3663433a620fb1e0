#include <tonari/tonari.hpp>

#include <cstdio>

// Every rank sends its number to the next one. Exits with 0 if each rank receives the number of the previous rank.
int main() {
  tonari::Job job;
  tonari::Communicator world(job);
  const tonari::Rank next = (world.rank() + 1) % world.size();
  const tonari::Rank previous = (world.rank() + world.size() - 1) % world.size();

  int number = -1;
  auto received = world.start_receive(number, previous);
  const auto sent = world.send(world.rank(), next);

  const bool right = received.wait().status == tonari::Status::ok && sent == tonari::Status::ok && number == previous;
  std::printf("rank %d of %d: %s\n", world.rank().value(), world.size(), right ? "right" : "wrong");
  return right ? 0 : 1;
}
