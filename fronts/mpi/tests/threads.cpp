// ranks: 1 2
#include "messages.hpp"

#include <thread>
#include <vector>

// Threads of a rank send, receive and wait at the same time.
namespace {

constexpr int threads = 4;
constexpr int rounds = 300;

// Each thread talks to the thread of the same number of the neighbour, by its tag.
void talk(int thread) {
  std::vector<unsigned char> received(70'000);
  for (int round = 0; round < rounds; ++round) {
    const int count = round % 50 == 0 ? 70'000 : 97 * round % 5000;
    const auto sent = test::payload(static_cast<std::size_t>(count), static_cast<unsigned>(thread + round));
    MPI_Request requests[2];
    MPI_Irecv(received.data(), 70'000, MPI_BYTE, test::left(), thread, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(sent.data(), count, MPI_BYTE, test::right(), thread, MPI_COMM_WORLD, &requests[1]);
    MPI_Status statuses[2];
    if (round % 2 == 0) {
      MPI_Waitall(2, requests, statuses);
    } else {
      int index = 0;
      MPI_Waitany(2, requests, &index, &statuses[1]);
      MPI_Wait(&requests[1 - index], &statuses[1]);
    }
    CHECK(std::equal(sent.begin(), sent.end(), received.begin()));
  }
}

// A thread may wait for requests that another one has started.
void wait_for_requests_of_another_thread() {
  constexpr int messages = 100;
  std::vector<int> received(messages);
  std::vector<MPI_Request> requests(messages);
  for (int i = 0; i < messages; ++i) {
    MPI_Irecv(&received[static_cast<std::size_t>(i)], 1, MPI_INT, test::left(), 10, MPI_COMM_WORLD,
              &requests[static_cast<std::size_t>(i)]);
  }
  std::thread waiting([&] { MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE); });
  for (int i = 0; i < messages; ++i) MPI_Send(&i, 1, MPI_INT, test::right(), 10, MPI_COMM_WORLD);
  waiting.join();
  for (int i = 0; i < messages; ++i) CHECK_EQUAL(received[static_cast<std::size_t>(i)], i);
}

// Each message is received once, although all threads probe for any.
void probe_in_threads() {
  constexpr int messages = 400;
  std::vector<MPI_Request> sends(messages);
  std::vector<int> sent(messages);
  for (int i = 0; i < messages; ++i) {
    sent[static_cast<std::size_t>(i)] = i;
    MPI_Isend(&sent[static_cast<std::size_t>(i)], 1, MPI_INT, test::right(), 20, MPI_COMM_WORLD,
              &sends[static_cast<std::size_t>(i)]);
  }
  std::vector<int> seen(messages);
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&seen] {
      for (int i = 0; i < messages / threads; ++i) {
        MPI_Message message;
        int value = -1;
        MPI_Mprobe(MPI_ANY_SOURCE, 20, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        ++seen[static_cast<std::size_t>(value)];
      }
    });
  }
  for (std::thread& each : all) each.join();
  MPI_Waitall(messages, sends.data(), MPI_STATUSES_IGNORE);
  CHECK(seen == std::vector<int>(messages, 1));
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) all.emplace_back(talk, t);
  for (std::thread& each : all) each.join();
  wait_for_requests_of_another_thread();
  test::meet();
  probe_in_threads();
  MPI_Finalize();
}
