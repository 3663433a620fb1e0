// Guarded data: a value that all ranks share and that can be touched only with its lock. The value travels with the
// lock.
//
//   tonari run -n 4 ./guarded

#include <tonari/tonari.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

struct Account {
  long deposits = 0;
  long balance = 0;
};

void expect_ok(tonari::Status status) {
  if (status != tonari::Status::ok) throw std::runtime_error(std::string(tonari::explain(status)));
}

int run() {
  tonari::Job job;
  tonari::Communicator world(job);
  tonari::guarded<Account> account(job);  // collective

  // All ranks pay in at the same time. Each access holds the lock while it lives.
  for (int i = 0; i < 100; ++i) {
    auto access = account.write();
    expect_ok(access.status());
    access->deposits += 1;
    access->balance += 5;
  }
  expect_ok(world.barrier());

  const auto access = account.read();  // any number of ranks read together
  expect_ok(access.status());
  std::printf("rank %d of %d sees %ld deposits and a balance of %ld\n", job.rank().value(), job.size(),
              access->deposits, access->balance);
  return access->deposits == 100L * job.size() && access->balance == 500L * job.size() ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "guarded: %s\n", error.what());
    return 1;
  }
}
