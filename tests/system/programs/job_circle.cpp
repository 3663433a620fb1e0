// Every rank receives from the next one, and none sends: what `tonari status` shows of ranks that wait in a circle.
#include <tonari/tonari.hpp>

#include <cstdio>

int main() {
  tonari::Job job;
  tonari::Communicator all{job};
  std::printf("rank %d waits\n", all.rank().value());
  std::fflush(stdout);
  int nothing = 0;
  const auto result = all.receive(nothing, tonari::Rank{(all.rank() + 1) % all.size()}, tonari::Tag{7});
  return result.status == tonari::Status::ok ? 0 : 1;
}
