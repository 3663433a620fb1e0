// ranks: 1 2 5
#include "messages.hpp"

#include <numeric>
#include <thread>
#include <vector>

// Partitioned messages.
namespace {

using test::left;
using test::right;

struct Pair {
  Pair(int send_partitions, int receive_partitions, int count)
      : sent(static_cast<std::size_t>(count)), received(sent.size()) {
    MPI_Psend_init(sent.data(), send_partitions, count / send_partitions, MPI_INT, right(), 4, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(received.data(), receive_partitions, count / receive_partitions, MPI_INT, left(), 4, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &requests[1]);
  }
  Pair(Pair&&) = delete;
  ~Pair() {
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
  }
  void start(int round) {
    std::iota(sent.begin(), sent.end(), round);
    received.assign(received.size(), -1);
    MPI_Startall(2, requests);
  }
  void check(int round) const {
    auto expected = received;
    std::iota(expected.begin(), expected.end(), round);
    CHECK(received == expected);
  }

  std::vector<int> sent;
  std::vector<int> received;
  MPI_Request requests[2];
};

bool has_arrived(MPI_Request request, int partition) {
  int flag = 0;
  MPI_Parrived(request, partition, &flag);
  return flag != 0;
}

// The numbers of partitions of the two sides may differ.
void send_all(int send_partitions, int receive_partitions, int count) {
  Pair pair(send_partitions, receive_partitions, count);
  CHECK(has_arrived(pair.requests[1], 0));  // inactive
  for (int round = 0; round < 3; ++round) {
    pair.start(round);
    int flag = 1;
    MPI_Test(&pair.requests[0], &flag, MPI_STATUS_IGNORE);
    CHECK_EQUAL(flag, 0);
    if (send_partitions > 2) {
      const int last = send_partitions - 1;
      MPI_Pready_list(1, &last, pair.requests[0]);
      MPI_Pready(0, pair.requests[0]);
      MPI_Pready_range(1, send_partitions - 2, pair.requests[0]);
    } else {
      MPI_Pready_range(0, send_partitions - 1, pair.requests[0]);
    }
    MPI_Status statuses[2];
    MPI_Waitall(2, pair.requests, statuses);
    test::check_status(statuses[1], left(), 4, 4 * count);
    CHECK(pair.requests[0] != MPI_REQUEST_NULL);
    pair.check(round);
  }
}

// Ranks wait for their sends before they look at their receives, in the very first round.
void wait_for_sends_first() {
  Pair pair(4, 4, 400'000);
  pair.start(9);
  MPI_Pready_range(0, 3, pair.requests[0]);
  MPI_Wait(&pair.requests[0], MPI_STATUS_IGNORE);
  MPI_Wait(&pair.requests[1], MPI_STATUS_IGNORE);
  pair.check(9);
}

// Partitions arrive one by one, before the others are sent.
void watch_partitions() {
  Pair pair(8, 4, 80);
  pair.start(1);
  for (int i = 3; i >= 0; --i) {
    MPI_Pready(2 * i, pair.requests[0]);
    CHECK(!has_arrived(pair.requests[1], i));
    test::meet();
    MPI_Pready(2 * i + 1, pair.requests[0]);
    while (!has_arrived(pair.requests[1], i)) {
    }
    CHECK_EQUAL(pair.received[static_cast<std::size_t>(20 * i + 19)], 20 * i + 20);
  }
  MPI_Wait(&pair.requests[1], MPI_STATUS_IGNORE);
  MPI_Wait(&pair.requests[0], MPI_STATUS_IGNORE);
  pair.check(1);
}

void mark_ready_in_threads() {
  Pair pair(64, 64, 64 * 1000);
  for (int round = 0; round < 5; ++round) {
    pair.start(round);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&pair, t] {
        for (int i = 16 * t; i < 16 * t + 16; ++i) MPI_Pready(i, pair.requests[0]);
        for (int i = 16 * t; i < 16 * t + 16; ++i) {
          while (!has_arrived(pair.requests[1], i)) std::this_thread::yield();
        }
      });
    }
    MPI_Wait(&pair.requests[0], MPI_STATUS_IGNORE);
    for (std::thread& thread : threads) thread.join();
    MPI_Wait(&pair.requests[1], MPI_STATUS_IGNORE);
    pair.check(round);
  }
}

// Partitions without data arrive like any others.
void send_nothing() {
  Pair pair(3, 3, 0);
  pair.start(0);
  for (int i = 0; i < 3; ++i) {
    CHECK(!has_arrived(pair.requests[1], i));
    test::meet();
    MPI_Pready(i, pair.requests[0]);
    while (!has_arrived(pair.requests[1], i)) {
    }
  }
  MPI_Waitall(2, pair.requests, MPI_STATUSES_IGNORE);
}

// They meet neither each other out of order nor ordinary messages of the same tag.
void match_in_order() {
  int ordinary = 0;
  MPI_Request receive;
  MPI_Irecv(&ordinary, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receive);
  Pair first(2, 2, 10);
  Pair second(2, 2, 20);
  second.start(50);
  MPI_Pready_range(0, 1, second.requests[0]);
  first.start(70);
  MPI_Pready_range(0, 1, first.requests[0]);
  MPI_Waitall(2, second.requests, MPI_STATUSES_IGNORE);
  MPI_Waitall(2, first.requests, MPI_STATUSES_IGNORE);
  first.check(70);
  second.check(50);
  const int sent = 3;
  MPI_Send(&sent, 1, MPI_INT, right(), 4, MPI_COMM_WORLD);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  CHECK_EQUAL(ordinary, 3);
}

void use_nobody() {
  int value = 0;
  MPI_Request requests[2];
  MPI_Psend_init(&value, 1, 1, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Precv_init(&value, 1, 1, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  MPI_Startall(2, requests);
  MPI_Pready(0, requests[0]);
  CHECK(has_arrived(requests[1], 0));
  MPI_Status statuses[2];
  MPI_Waitall(2, requests, statuses);
  test::check_nobody(statuses[1]);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  for (const int count : {12, 60'000, 1'200'000}) {
    for (const int partitions : {1, 2, 3, 12}) {
      send_all(partitions, partitions, count);
      send_all(4, partitions, count);
      send_all(partitions, 6, count);
    }
  }
  for (int i = 0; i < 50; ++i) wait_for_sends_first();
  watch_partitions();
  send_nothing();
  mark_ready_in_threads();
  match_in_order();
  use_nobody();
  MPI_Finalize();
}
