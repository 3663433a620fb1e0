#include <mpi.h>
#include <tonari/job.hpp>
#include <tonari/message.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>

// A program that uses MPI and tonari::Job at once. Usage: both ORDER, see `orders`. both.py runs it, linked with
// libtonari.so and with libtonari.a.

namespace {

void require(bool is_true, const char* what) {
  if (is_true) return;
  std::printf("not true: %s\n", what);
  std::fflush(stdout);
  std::_Exit(1);
}

void use_mpi(int expected_rank, int expected_size) {
  int rank = -1;
  int size = 0;
  int sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  require(rank == expected_rank && size == expected_size, "MPI has the rank and the size of the job");
  require(sum == size * (size - 1) / 2, "MPI_Allreduce");
}

void use_tonari(tonari::Job& job) {
  tonari::Communicator world(job);
  int sum = job.rank().value();
  const tonari::Status status = world.all_reduce(sum, [](int a, int b) { return a + b; });
  require(status == tonari::Status::ok && sum == job.size() * (job.size() - 1) / 2, "all_reduce");
}

// MPI_COMM_WORLD and a Communicator of the job are one communicator.
void exchange(tonari::Job& job) {
  tonari::Communicator world(job);
  const int mine = job.rank().value();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(&mine, 1, MPI_INT, job.neighbour(1).value(), 5, MPI_COMM_WORLD, &request);
  int got = -1;
  const auto received = world.receive(std::span(&got, 1), tonari::Rank{job.neighbour(-1).value()}, tonari::Tag{5});
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  require(received.status == tonari::Status::ok && got == job.neighbour(-1).value(), "a message from MPI to tonari");
}

void use_both(tonari::Job& job) {
  use_mpi(job.rank().value(), job.size());
  use_tonari(job);
  exchange(job);
}

int rank_now() {
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
int size_now() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

struct Order {
  const char* name;
  void (*run)();
};
const Order orders[] = {
    {"inside",  // the Job lives while MPI runs
     [] {
       MPI_Init(nullptr, nullptr);
       for (int turn = 0; turn < 2; ++turn) {
         tonari::Job job;
         use_both(job);
       }
       use_mpi(rank_now(), size_now());
       MPI_Finalize();
     }},
    {"outside",  // MPI runs while the Job lives
     [] {
       tonari::Job job;
       use_tonari(job);
       MPI_Init(nullptr, nullptr);
       use_both(job);
       MPI_Finalize();
       use_tonari(job);
     }},
    {"job-first",
     [] {
       std::optional<tonari::Job> job(std::in_place);
       MPI_Init(nullptr, nullptr);
       use_both(*job);
       job.reset();
       use_mpi(rank_now(), size_now());
       MPI_Finalize();
     }},
    {"mpi-first",
     [] {
       MPI_Init(nullptr, nullptr);
       tonari::Job job;
       use_both(job);
       MPI_Finalize();
       use_tonari(job);
     }},
    {"mixed",  // the ranks begin in different orders
     [] {
       std::optional<tonari::Job> job;
       const char* const rank = std::getenv("TONARI_RANK");
       const bool begins_with_job = rank != nullptr && std::atoi(rank) % 2 == 0;
       if (begins_with_job) job.emplace();
       MPI_Init(nullptr, nullptr);
       if (!begins_with_job) job.emplace();
       use_both(*job);
       if (begins_with_job) job.reset();
       MPI_Finalize();
     }},
    {"session",
     [] {
       MPI_Session session = MPI_SESSION_NULL;
       MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
       tonari::Job job;
       use_tonari(job);
       MPI_Session_finalize(&session);
       use_tonari(job);
     }},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Order& each : orders) {
    if (argc != 2 || std::strcmp(argv[1], each.name) != 0) continue;
    try {
      each.run();
    } catch (const std::exception& error) {
      std::printf("refused: %s\n", error.what());
      return 1;
    }
    std::printf("done\n");
    return 0;
  }
  return 2;
}
