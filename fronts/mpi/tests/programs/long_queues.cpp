#include "message/looks.hpp"
#include "mpi/tests/check.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

// Matches behind many messages, and among many posted receives, look at as few entries as behind none. Contains the
// runtime, whose counts it reads. Rank 0 sends to rank 1.
namespace {

using tonari::message::looks_are_counted;
using tonari::message::queue_looks;

constexpr int last_tag = 1 << 22;

std::mt19937 shared_random;

// The numbers of `count` messages in random order, the same on both ranks.
std::vector<int> shuffled(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  std::shuffle(numbers.begin(), numbers.end(), shared_random);
  return numbers;
}

void check_looks(const char* what, int count, std::uint64_t before) {
  constexpr std::uint64_t per_message_max = 12;  // its own entry, a few of the same hash, and the growth of the tables
  const std::uint64_t looks = queue_looks.value() - before;
  const auto messages = static_cast<std::uint64_t>(count);
  if (looks_are_counted && (looks < messages || looks > per_message_max * (messages + 10))) {
    test::fail(__FILE__, __LINE__,
               std::string(what) + ": " + std::to_string(looks) + " looks for " + std::to_string(count) + " messages");
  }
}

void send(const std::vector<int>& numbers) {
  for (const int number : numbers) MPI_Send(&number, 1, MPI_INT, 1, number, MPI_COMM_WORLD);
}

// Rank 1 receives the last message first, so that all others wait for their receives.
void receive_late(int count) {
  const std::vector<int> order = shuffled(count);
  const std::uint64_t before = queue_looks.value();
  int value = 0;
  if (test::rank() == 0) {
    std::vector<int> numbers = order;
    std::ranges::sort(numbers);
    send(numbers);
    MPI_Send(&value, 1, MPI_INT, 1, last_tag, MPI_COMM_WORLD);
  } else if (test::rank() == 1) {
    MPI_Recv(&value, 1, MPI_INT, 0, last_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (const int number : order) {
      const int source = number % 3 == 0 ? MPI_ANY_SOURCE : 0;
      MPI_Recv(&value, 1, MPI_INT, source, number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_EQUAL(value, number);
    }
    check_looks("unexpected messages", count, before);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

void receive_early(int count) {
  const std::vector<int> order = shuffled(count);
  const std::uint64_t before = queue_looks.value();
  std::vector<int> values(order.size());
  std::vector<MPI_Request> requests(order.size());
  if (test::rank() == 1) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int source = i % 3 == 0 ? MPI_ANY_SOURCE : 0;
      MPI_Irecv(&values[i], 1, MPI_INT, source, static_cast<int>(i), MPI_COMM_WORLD, &requests[i]);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (test::rank() == 0) send(order);
  if (test::rank() == 1) {
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    for (std::size_t i = 0; i < order.size(); ++i) CHECK_EQUAL(values[i], static_cast<int>(i));
    check_looks("posted receives", count, before);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  shared_random.seed(test::seed());
  for (const int count : {1, 1000, 100'000}) {
    receive_late(count);
    receive_early(count);
  }
  MPI_Finalize();
}
