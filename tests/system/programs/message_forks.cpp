// Every rank forks children that end in each way a child may, and goes on with its messages, also while some still run.
#include "../../support/collective.hpp"
#include "../../support/exchange.hpp"

#include <tonari/tonari.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

namespace {

using namespace tonari;

constexpr int later_tag = 50;

enum class End { exits, exits_quietly, destroys, is_killed };

[[noreturn]] void be_child(End end, std::unique_ptr<Job> job, std::unique_ptr<Communicator> world) {
  switch (end) {
    case End::exits: std::exit(0);
    case End::exits_quietly: ::_exit(0);
    case End::destroys:
      world.reset();
      job.reset();
      ::_exit(0);
    case End::is_killed: std::raise(SIGKILL);
  }
  ::_exit(1);
}

}  // namespace

int main() {
  try {
    auto job = std::make_unique<Job>();
    auto world = std::make_unique<Communicator>(*job);
    std::vector<int> later(50000, world->rank().value());
    const int other = 1 - world->rank().value();
    std::vector<int> received(later.size());
    Request receive =
        world->start_receive(received, Rank{other}, Tag{later_tag});  // under way while the children come and go
    std::vector<pid_t> children;
    for (const End end : {End::exits, End::exits_quietly, End::destroys, End::is_killed}) {
      const pid_t child = ::fork();
      if (child == 0) be_child(end, std::move(job), std::move(world));
      test::require(child > 0, "fork");
      children.push_back(child);
      for (std::size_t i = 0; i < 4; ++i) test::require_ok(test::collective(*world, i, 1000 * i));
    }
    test::exchange_all(*world, 0, 1);
    for (const pid_t child : children) {
      int status = 0;
      test::require(::waitpid(child, &status, 0) == child, "waitpid");
      const bool well =
          (WIFEXITED(status) && WEXITSTATUS(status) == 0) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
      test::require(well, "a child ended with wait status " + std::to_string(status));
    }
    test::exchange_all(*world, 1, 0);
    test::require_ok(world->send(later, Rank{other}, Tag{later_tag}));
    test::require_ok(receive.wait().status);
    test::require(received == std::vector<int>(later.size(), other), "what was received across the forks is wrong");
    std::printf("rank %d did it\n", world->rank().value());
    receive = Request();
    world.reset();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
