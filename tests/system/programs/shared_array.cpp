// Ranks that are processes share an array. By its first argument:
//
//   pointers   a list is linked through the array by all ranks in turn; each walks it, and says "rank R found N"
//   death      rank 1 dies by a signal while the others wait for it at a barrier
//   lost       the others survive that, and rank 0 touches pages of which only rank 1 had a copy
//   large      an array of more bytes than there are addresses for it
//   after      a rank ends without destroying its array, by an exception, while the others wait
//   barrier    a barrier is the first that ranks do with shared memory
//   alone      rank 0 waits for a flag that the others, who leave the job, have not set
//   fork       a child, which has none of it, destroys its array and its job as any process does
#include <tonari/tonari.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <numeric>

#include <stdexcept>
#include <string>

namespace {

using namespace tonari;

struct Node {
  Node* next;
  int rank;
};

void meet(Job& job) {
  if (share::barrier(job) != Status::ok) throw std::runtime_error("barrier: a rank is gone");
}

void link_pointers(Job& job) {
  constexpr std::size_t nodes_a_rank = 100;
  const auto ranks = static_cast<std::size_t>(job.size());
  const shared_array<Node> nodes(job, nodes_a_rank * ranks);
  const shared_array<Node*> first(job, 1);
  share::mutex mutex(job);
  for (std::size_t i = 0; i < nodes_a_rank; ++i) {
    Node& node = nodes[i * ranks + job.rank().index()];
    const auto lock = mutex.lock();
    if (lock.status() != Status::ok) throw std::runtime_error("the mutex could not be locked");
    node = {first[0], job.rank().value()};
    first[0] = &node;
  }
  meet(job);
  std::size_t found = 0;
  for (const Node* node = first[0]; node != nullptr; node = node->next) ++found;
  std::printf("rank %d found %zu\n", job.rank().value(), found);
  meet(job);
}

void die(Job& job) {
  const shared_array<int> array(job, 100'000);
  array[job.rank().index()] = 1;
  meet(job);
  if (job.rank() == 1) std::raise(SIGKILL);
  meet(job);
}

void lose(Job& job) {
  job.on_death([](const Death&) {});
  ArrayOptions at_rank_1;
  at_rank_1.placement = Placement::by_function;
  at_rank_1.home = [](std::uint64_t) { return JobRank{1}; };
  const shared_array<int> array(job, 100'000, at_rank_1);
  if (job.rank() == 1) std::raise(SIGKILL);
  const Status status = share::barrier(job);
  std::printf("rank %d: barrier %s\n", job.rank().value(), std::string(to_string(status)).c_str());
  std::fflush(stdout);
  if (job.rank() == 0) std::printf("found %d\n", array[50'000]);
  std::fflush(stdout);
}

// An exception has destroyed it at its home.
void use_what_another_threw_away(Job& job) {
  Communicator ranks(job);
  try {
    const shared_array<int> array(job, 100'000, {.homes_move = false});
    if (job.rank() == 1) array[0] = 1;
    meet(job);
    if (job.rank() == 1) array[1] = 1;
    if (job.rank() == 0) throw std::runtime_error("rank 0 had enough");
    (void)ranks.barrier();
    std::printf("rank 1: release %s\n", std::string(to_string(share::release(job))).c_str());
    std::fflush(stdout);
    std::printf("found %d\n", array[20'000]);
  } catch (const std::runtime_error&) {
    (void)ranks.barrier();
    (void)ranks.barrier();
  }
}

void make_large(Job& job) { const shared_array<char> array(job, std::size_t{1} << 30); }

void leave_by_exception(Job& job) {
  const shared_array<int> array(job, 10);
  if (job.rank() == 1) throw std::runtime_error("rank 1 had enough");
  meet(job);
}

void meet_first(Job& job) { std::printf("barrier: %s\n", std::string(to_string(share::barrier(job))).c_str()); }

void wait_alone(Job& job) {
  share::flag flag(job);
  if (job.rank() == 0) std::printf("rank 0: wait %s\n", std::string(to_string(flag.wait(1))).c_str());
}

// The parent's is as it was.
void fork_a_child(Job& job) {
  auto array = std::make_unique<shared_array<int>>(job, 100'000);
  (*array)[job.rank().index()] = 1;
  const pid_t child = ::fork();
  if (child == 0) {
    array.reset();
    return;
  }
  int status = -1;
  if (::waitpid(child, &status, 0) != child || status != 0) throw std::runtime_error("the child did not end well");
  meet(job);
  std::printf("rank %d sees %d\n", job.rank().value(), std::accumulate(array->data(), array->data() + job.size(), 0));
  meet(job);
}

}  // namespace

int main(int, char** arguments) {
  const std::map<std::string, std::function<void(Job&)>> phases{{"pointers", link_pointers},
                                                                {"death", die},
                                                                {"lost", lose},
                                                                {"thrown", use_what_another_threw_away},
                                                                {"large", make_large},
                                                                {"after", leave_by_exception},
                                                                {"barrier", meet_first},
                                                                {"alone", wait_alone},
                                                                {"fork", fork_a_child}};
  try {
    Job job;
    phases.at(arguments[1])(job);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
