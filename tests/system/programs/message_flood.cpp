// Both ranks send without an end and receive nothing: more than a rank may keep for the other.
#include <tonari/tonari.hpp>

#include <array>

int main() {
  tonari::Job job;
  tonari::Communicator world{job};
  const std::array<char, 1000> values{};
  while (world.send(values, 1 - world.rank()) == tonari::Status::ok) continue;
}
