// ranks: 1 2 5
#include "messages.hpp"

#include <array>
#include <vector>

// Sends and receives in every mode and of every length, wildcards, order, MPI_PROC_NULL, exchanges.
namespace {

using test::check_status;
using test::left;
using test::payload;
using test::right;

using Send = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
using Isend = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

// A rank may send to itself, so each receive is posted before its send.
void send_round_a_ring(std::size_t bytes, Send send) {
  const auto sent = payload(bytes, static_cast<unsigned>(test::rank()));
  std::vector<unsigned char> received(bytes + 1, 254);
  MPI_Request request;
  MPI_Irecv(received.data(), static_cast<int>(bytes) + 1, MPI_BYTE, left(), 7, MPI_COMM_WORLD, &request);
  CHECK_EQUAL(send(sent.data(), static_cast<int>(bytes), MPI_BYTE, right(), 7, MPI_COMM_WORLD), int{MPI_SUCCESS});
  MPI_Status status;
  status.MPI_ERROR = 77;
  MPI_Wait(&request, &status);
  CHECK(request == MPI_REQUEST_NULL);
  CHECK_EQUAL(status.MPI_ERROR, 77);
  check_status(status, left(), 7, static_cast<MPI_Count>(bytes));
  CHECK_EQUAL(received[bytes], 254);
  received.pop_back();
  CHECK(received == payload(bytes, static_cast<unsigned>(left())));
}

void start_round_a_ring(std::size_t bytes, Isend isend) {
  const auto sent = payload(bytes, static_cast<unsigned>(test::rank()));
  std::vector<unsigned char> received(bytes);
  MPI_Request requests[2];
  MPI_Irecv(received.data(), static_cast<int>(bytes), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
            &requests[0]);
  isend(sent.data(), static_cast<int>(bytes), MPI_BYTE, right(), 9, MPI_COMM_WORLD, &requests[1]);
  MPI_Status statuses[2];
  MPI_Waitall(2, requests, statuses);
  CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
  check_status(statuses[0], left(), 9, static_cast<MPI_Count>(bytes));
  CHECK(!test::is_cancelled(statuses[1]));
  CHECK(received == payload(bytes, static_cast<unsigned>(left())));
}

void use_all_modes_and_lengths() {
  for (const std::size_t bytes : {0, 1, 8, 48, 49, 4096, 12287, 12288, 100'000, 1 << 20}) {
    for (Send send : {MPI_Send, MPI_Rsend, MPI_Ssend}) send_round_a_ring(bytes, send);
    for (Isend isend : {MPI_Isend, MPI_Irsend, MPI_Issend}) start_round_a_ring(bytes, isend);
    test::meet();  // a wildcard of one round must not receive a message of the next
  }
  if (test::ranks() == 2) start_round_a_ring(std::size_t{64} << 20, MPI_Isend);
  test::meet();
}

void use_large_counts() {
  const long sent = 5;
  long received = 0;
  MPI_Request request;
  MPI_Irecv_c(&received, MPI_Count{1}, MPI_LONG, left(), 3, MPI_COMM_WORLD, &request);
  MPI_Send_c(&sent, MPI_Count{1}, MPI_LONG, right(), 3, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQUAL(received, 5L);
}

// A synchronous send ends only after its receive was posted.
void wait_for_the_receive() {
  MPI_Request request;
  const int sent = 1;
  int received = 0;
  MPI_Issend(&sent, 1, MPI_INT, right(), 4, MPI_COMM_WORLD, &request);
  for (int i = 0; i < 100; ++i) {
    int flag = 1;
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    CHECK_EQUAL(flag, 0);
  }
  test::meet();
  MPI_Recv(&received, 1, MPI_INT, left(), 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQUAL(received, 1);
}

// Messages of one sender are received in order; a tag picks one out of the middle.
void keep_the_order() {
  constexpr int messages = 300;
  std::vector<MPI_Request> requests(messages);
  std::vector<int> sent(messages);
  for (int i = 0; i < messages; ++i) {
    sent[static_cast<std::size_t>(i)] = i;
    MPI_Isend(&sent[static_cast<std::size_t>(i)], 1, MPI_INT, right(), i % 3, MPI_COMM_WORLD,
              &requests[static_cast<std::size_t>(i)]);
  }
  int value = -1;
  MPI_Status status;
  MPI_Recv(&value, 1, MPI_INT, left(), 2, MPI_COMM_WORLD, &status);
  CHECK_EQUAL(value, 2);
  for (int i = 0; i < messages; ++i) {
    if (i == 2) continue;
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    CHECK_EQUAL(value, i);
    check_status(status, left(), i % 3, 4);
  }
  MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
  test::meet();
}

void use_nobody() {
  int value = 5;
  MPI_Status status;
  MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Ssend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
  test::check_nobody(status);
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, &status);
  test::check_nobody(status);
  MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQUAL(value, 5);
}

void exchange(std::size_t bytes) {
  const int count = static_cast<int>(bytes);
  const auto expected = payload(bytes, static_cast<unsigned>(left()));
  const auto sent = payload(bytes, static_cast<unsigned>(test::rank()));
  std::vector<unsigned char> received(bytes);
  MPI_Status status;
  MPI_Sendrecv(sent.data(), count, MPI_BYTE, right(), 1, received.data(), count, MPI_BYTE, left(), 1, MPI_COMM_WORLD,
               &status);
  check_status(status, left(), 1, count);
  CHECK(received == expected);

  auto data = sent;
  MPI_Sendrecv_replace(data.data(), count, MPI_BYTE, right(), 2, left(), MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  check_status(status, left(), 2, count);
  CHECK(data == expected);

  MPI_Request requests[2];
  MPI_Status statuses[2];
  received.assign(bytes, 0);
  data = sent;
  MPI_Isendrecv(sent.data(), count, MPI_BYTE, right(), 3, received.data(), count, MPI_BYTE, left(), 3, MPI_COMM_WORLD,
                &requests[0]);
  MPI_Isendrecv_replace(data.data(), count, MPI_BYTE, right(), 4, left(), 4, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, statuses);
  check_status(statuses[0], left(), 3, count);
  check_status(statuses[1], left(), 4, count);
  CHECK(received == expected);
  CHECK(data == expected);

  MPI_Sendrecv(sent.data(), count, MPI_BYTE, MPI_PROC_NULL, 1, nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD,
               &status);
  test::check_nobody(status);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  use_all_modes_and_lengths();
  use_large_counts();
  wait_for_the_receive();
  keep_the_order();
  use_nobody();
  for (const std::size_t bytes : {0, 8, 1024, 1025, 300'000}) exchange(bytes);
  MPI_Finalize();
}
