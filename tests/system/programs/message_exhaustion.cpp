// Rank 0 sends without an end; rank 1 receives nothing, and is given no more memory than it has and a little.
#include <tonari/tonari.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool can_be_limited = false;
#else
constexpr bool can_be_limited = true;
#endif

void limit_memory(rlim_t more_bytes) {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + more_bytes;
  const rlimit limit{bytes, bytes};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) std::perror("setrlimit");
}

}  // namespace

int main() {
  if (!can_be_limited) {
    std::puts("cannot be tried");
    return 0;
  }
  tonari::Job job;
  tonari::Communicator world{job};
  if (world.rank() == 1) limit_memory(rlim_t{20} << 20);
  if (world.barrier() != tonari::Status::ok) return 2;
  int never = 0;
  if (world.rank() == 1)
    return world.receive(never, tonari::Rank{0}, tonari::Tag{1}).status == tonari::Status::ok ? 0 : 1;
  while (world.send(1, tonari::Rank{1}, tonari::Tag{2}) == tonari::Status::ok) continue;
  return 3;
}
