// ranks: 1 2 5
#include "messages.hpp"

#include <algorithm>
#include <vector>

// Waiting, testing, null and inactive requests, freeing, cancelling, persistent requests.
namespace {

using test::check_empty;
using test::check_status;
using test::left;
using test::right;

void use_no_request() {
  MPI_Request null = MPI_REQUEST_NULL;
  MPI_Request nulls[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status status;
  MPI_Status statuses[2];
  int flag = 0;
  int index = 0;
  int indices[2];
  std::memset(&status, 1, sizeof status);
  MPI_Wait(&null, &status);
  check_empty(status);
  std::memset(&status, 1, sizeof status);
  MPI_Test(&null, &flag, &status);
  CHECK_EQUAL(flag, 1);
  check_empty(status);
  std::memset(statuses, 1, sizeof statuses);
  MPI_Waitall(2, nulls, statuses);
  check_empty(statuses[1]);
  flag = 0;
  MPI_Testall(2, nulls, &flag, statuses);
  CHECK_EQUAL(flag, 1);
  MPI_Waitany(2, nulls, &index, &status);
  CHECK_EQUAL(index, int{MPI_UNDEFINED});
  check_empty(status);
  index = 0;
  MPI_Testany(2, nulls, &index, &flag, &status);
  CHECK_EQUAL(index, int{MPI_UNDEFINED});
  CHECK_EQUAL(flag, 1);
  MPI_Waitsome(2, nulls, &index, indices, statuses);
  CHECK_EQUAL(index, int{MPI_UNDEFINED});
  MPI_Testsome(2, nulls, &index, indices, statuses);
  CHECK_EQUAL(index, int{MPI_UNDEFINED});
  MPI_Request_get_status(null, &flag, &status);
  CHECK_EQUAL(flag, 1);
  MPI_Request_get_status_all(2, nulls, &flag, statuses);
  CHECK_EQUAL(flag, 1);
  MPI_Request_get_status_any(2, nulls, &index, &flag, &status);
  CHECK_EQUAL(flag, 1);
  CHECK_EQUAL(index, int{MPI_UNDEFINED});
  MPI_Request_get_status_some(2, nulls, &index, indices, statuses);
  CHECK_EQUAL(index, int{MPI_UNDEFINED});
  MPI_Waitall(0, nullptr, MPI_STATUSES_IGNORE);
  MPI_Waitany(0, nullptr, &index, MPI_STATUS_IGNORE);
  CHECK_EQUAL(index, int{MPI_UNDEFINED});
}

// Receives posted with tags 0, 1, 2; messages sent one after the other. Each way of asking finds exactly what is there.
class Three {
 public:
  Three() {
    for (int i = 0; i < 3; ++i) {
      MPI_Irecv(&values[i], 1, MPI_INT, left(), i, MPI_COMM_WORLD, &requests[i]);
    }
  }
  void send(int tag) {
    const int value = 100 + tag;
    MPI_Request request;
    MPI_Isend(&value, 1, MPI_INT, right(), tag, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  void end() {
    for (int i = 0; i < 3; ++i) send(10 + i);
    for (int i = 0; i < 3; ++i) MPI_Recv(&values[i], 1, MPI_INT, left(), 10 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (const MPI_Request request : requests) CHECK(request == MPI_REQUEST_NULL);
    test::meet();
  }

  int values[3] = {};
  MPI_Request requests[3];
};

void ask_for_all() {
  Three three;
  MPI_Status statuses[3];
  int flag = 1;
  three.send(0);
  three.send(2);
  test::meet();
  MPI_Testall(3, three.requests, &flag, statuses);
  CHECK_EQUAL(flag, 0);
  MPI_Request_get_status_all(3, three.requests, &flag, statuses);
  CHECK_EQUAL(flag, 0);
  for (const MPI_Request request : three.requests) CHECK(request != MPI_REQUEST_NULL);
  test::meet();
  three.send(1);
  test::meet();
  while (flag == 0) MPI_Request_get_status_all(3, three.requests, &flag, statuses);
  check_status(statuses[2], left(), 2, 4);
  MPI_Request_get_status_all(3, three.requests, &flag, MPI_STATUSES_IGNORE);
  flag = 0;
  while (flag == 0) MPI_Testall(3, three.requests, &flag, statuses);
  for (int i = 0; i < 3; ++i) {
    check_status(statuses[i], left(), i, 4);
    CHECK_EQUAL(three.values[i], 100 + i);
  }
  three.end();
}

void ask_for_any() {
  Three three;
  MPI_Status status;
  int flag = 1;
  int index = 7;
  MPI_Testany(3, three.requests, &index, &flag, &status);
  CHECK_EQUAL(flag, 0);
  CHECK_EQUAL(index, int{MPI_UNDEFINED});
  test::meet();
  three.send(1);
  MPI_Waitany(3, three.requests, &index, &status);
  CHECK_EQUAL(index, 1);
  check_status(status, left(), 1, 4);
  test::meet();
  three.send(2);
  flag = 0;
  while (flag == 0) MPI_Request_get_status_any(3, three.requests, &index, &flag, &status);
  CHECK_EQUAL(index, 2);
  check_status(status, left(), 2, 4);
  CHECK(three.requests[2] != MPI_REQUEST_NULL);
  flag = 0;
  while (flag == 0) MPI_Testany(3, three.requests, &index, &flag, &status);
  CHECK_EQUAL(index, 2);
  check_status(status, left(), 2, 4);
  test::meet();
  three.send(0);
  MPI_Waitany(3, three.requests, &index, MPI_STATUS_IGNORE);
  CHECK_EQUAL(index, 0);
  three.end();
}

void ask_for_some() {
  Three three;
  MPI_Status statuses[3];
  int indices[3];
  int count = 7;
  MPI_Testsome(3, three.requests, &count, indices, statuses);
  CHECK_EQUAL(count, 0);
  test::meet();
  three.send(2);
  three.send(0);
  test::meet();
  MPI_Request_get_status_some(3, three.requests, &count, indices, statuses);
  CHECK(count <= 2);
  std::vector<int> found;
  while (found.size() < 2) {
    MPI_Waitsome(3, three.requests, &count, indices, statuses);
    CHECK(count > 0);
    for (int i = 0; i < count; ++i) {
      check_status(statuses[i], left(), indices[i], 4);
      CHECK_EQUAL(three.values[indices[i]], 100 + indices[i]);
      found.push_back(indices[i]);
    }
  }
  std::sort(found.begin(), found.end());
  CHECK(found == std::vector({0, 2}));
  test::meet();
  three.send(1);
  count = 0;
  while (count == 0) MPI_Request_get_status_some(3, three.requests, &count, indices, statuses);
  CHECK_EQUAL(count, 1);
  check_status(statuses[0], left(), 1, 4);
  count = 0;
  while (count == 0) MPI_Testsome(3, three.requests, &count, indices, MPI_STATUSES_IGNORE);
  CHECK_EQUAL(count, 1);
  CHECK_EQUAL(indices[0], 1);
  three.end();
}

void cancel() {
  int value = 3;
  MPI_Status status;
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, left(), 77, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  CHECK(test::is_cancelled(status));
  test::meet();
  // The message that it would have received goes to another one.
  MPI_Request send;
  const int sent = 8;
  MPI_Issend(&sent, 1, MPI_INT, right(), 77, MPI_COMM_WORLD, &send);
  MPI_Cancel(&send);
  int flag = 1;
  MPI_Test(&send, &flag, MPI_STATUS_IGNORE);
  CHECK_EQUAL(flag, 0);
  MPI_Recv(&value, 1, MPI_INT, left(), 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQUAL(value, 8);
  MPI_Wait(&send, &status);
  CHECK(!test::is_cancelled(status));
  MPI_Status_set_cancelled(&status, 1);
  CHECK(test::is_cancelled(status));
}

void free_active_ones() {
  static int sent[2] = {4, 5};
  static std::vector<int> long_sent(100'000, 6);
  static int never = 0;
  MPI_Request request;
  for (int& each : sent) {
    MPI_Isend(&each, 1, MPI_INT, right(), 31, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
  }
  MPI_Isend(long_sent.data(), 100'000, MPI_INT, right(), 32, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  MPI_Irecv(&never, 1, MPI_INT, left(), 33, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  int value = 0;
  for (const int each : sent) {
    MPI_Recv(&value, 1, MPI_INT, left(), 31, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQUAL(value, each);
  }
  std::vector<int> received(100'000);
  MPI_Recv(received.data(), 100'000, MPI_INT, left(), 32, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(received == long_sent);
}

void use_persistent_ones() {
  int sent[3] = {};
  int received[3] = {};
  MPI_Request requests[6];
  MPI_Send_init(&sent[0], 1, MPI_INT, right(), 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Ssend_init(&sent[1], 1, MPI_INT, right(), 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Rsend_init(&sent[2], 1, MPI_INT, right(), 2, MPI_COMM_WORLD, &requests[2]);
  for (int i = 0; i < 3; ++i) MPI_Recv_init(&received[i], 1, MPI_INT, left(), i, MPI_COMM_WORLD, &requests[3 + i]);
  MPI_Status statuses[6];
  MPI_Waitall(6, requests, statuses);  // inactive: returns at once
  check_empty(statuses[4]);
  int index = 0;
  MPI_Waitany(6, requests, &index, &statuses[0]);
  CHECK_EQUAL(index, int{MPI_UNDEFINED});
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < 3; ++i) sent[i] = 10 * round + i;
    MPI_Start(&requests[3]);
    MPI_Startall(2, &requests[4]);
    test::meet();  // the ready send needs its receive
    MPI_Startall(3, requests);
    MPI_Waitall(6, requests, statuses);
    for (int i = 0; i < 3; ++i) {
      CHECK(requests[i] != MPI_REQUEST_NULL);
      CHECK_EQUAL(received[i], 10 * round + i);
      check_status(statuses[3 + i], left(), i, 4);
    }
  }
  MPI_Start(&requests[3]);
  MPI_Cancel(&requests[3]);
  MPI_Wait(&requests[3], &statuses[3]);
  CHECK(test::is_cancelled(statuses[3]));
  for (MPI_Request& request : requests) {
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
  }
  MPI_Request nobody;
  MPI_Recv_init(received, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &nobody);
  MPI_Start(&nobody);
  MPI_Wait(&nobody, &statuses[0]);
  test::check_nobody(statuses[0]);
  MPI_Request_free(&nobody);
}

// Many requests under way at once, completed in the reverse order and in chunks.
void use_many() {
#ifdef __SANITIZE_THREAD__
  constexpr int messages = 2'000;  // MPI_Waitsome looks at all requests in each call
#else
  constexpr int messages = 20'000;
#endif
  std::vector<int> sent(messages);
  std::vector<int> received(messages);
  std::vector<MPI_Request> sends(messages);
  std::vector<MPI_Request> receives(messages);
  for (int i = 0; i < messages; ++i) {
    const auto at = static_cast<std::size_t>(i);
    sent[at] = i;
    MPI_Irecv(&received[at], 1, MPI_INT, left(), messages - i, MPI_COMM_WORLD, &receives[at]);
  }
  for (int i = 0; i < messages; ++i) {
    const auto at = static_cast<std::size_t>(i);
    MPI_Isend(&sent[at], 1, MPI_INT, right(), messages - i, MPI_COMM_WORLD, &sends[at]);
  }
  std::vector<MPI_Status> statuses(messages);
  MPI_Waitall(messages, receives.data(), statuses.data());
  for (int i = 0; i < messages; ++i) check_status(statuses[static_cast<std::size_t>(i)], left(), messages - i, 4);
  CHECK(received == sent);
  int left_over = messages;
  while (left_over > 0) {
    int count = 0;
    std::vector<int> indices(messages);
    MPI_Waitsome(messages, sends.data(), &count, indices.data(), MPI_STATUSES_IGNORE);
    CHECK(count > 0);
    left_over -= count;
  }
}

void read_statuses() {
  MPI_Status status{};
  int value = 0;
  MPI_Status_set_source(&status, 3);
  MPI_Status_set_tag(&status, MPI_ANY_TAG);
  MPI_Status_set_error(&status, MPI_ERR_TAG);
  MPI_Status_get_source(&status, &value);
  CHECK_EQUAL(value, 3);
  MPI_Status_get_tag(&status, &value);
  CHECK_EQUAL(value, int{MPI_ANY_TAG});
  MPI_Status_get_error(&status, &value);
  CHECK_EQUAL(value, int{MPI_ERR_TAG});
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  use_no_request();
  ask_for_all();
  ask_for_any();
  ask_for_some();
  cancel();
  use_persistent_ones();
  use_many();
  read_statuses();
  free_active_ones();
  MPI_Finalize();
}
