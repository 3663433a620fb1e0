#include <tonari/tonari.hpp>

#include <cstdio>

// Every rank tells its successor its own number. Exits with 0 when the number that arrived is the predecessor's.
int main() {
  tonari::Job job;
  tonari::Communicator world(job);
  const int next = (world.rank() + 1) % world.size();
  const int previous = (world.rank() + world.size() - 1) % world.size();

  int number = -1;
  auto received = world.start_receive(number, tonari::Rank{previous});
  const auto sent = world.send(world.rank(), tonari::Rank{next});

  const bool right = received.wait().status == tonari::Status::ok && sent == tonari::Status::ok && number == previous;
  std::printf("rank %d of %d: %s\n", world.rank(), world.size(), right ? "right" : "wrong");
  return right ? 0 : 1;
}
