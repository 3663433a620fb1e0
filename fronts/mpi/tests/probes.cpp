// ranks: 1 2 5
#include "messages.hpp"

#include <vector>

// Probes, matched probes, and receives of the messages that they took.
namespace {

using test::check_status;
using test::left;
using test::right;

void probe() {
  int flag = 1;
  MPI_Status status;
  MPI_Iprobe(left(), 55, MPI_COMM_WORLD, &flag, &status);
  CHECK_EQUAL(flag, 0);
  const double sent[3] = {1, 2, 3};
  MPI_Request request;
  MPI_Isend(sent, 3, MPI_DOUBLE, right(), 5, MPI_COMM_WORLD, &request);
  MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  check_status(status, left(), 5, 24);
  MPI_Iprobe(left(), 5, MPI_COMM_WORLD, &flag, &status);
  CHECK_EQUAL(flag, 1);
  check_status(status, left(), 5, 24);
  MPI_Iprobe(left(), 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  double received[3] = {};
  MPI_Recv(received, 3, MPI_DOUBLE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
  CHECK_EQUAL(received[2], 3.0);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// A message that a matched probe has taken is invisible to other receives.
void take(std::size_t bytes) {
  const int count = static_cast<int>(bytes);
  const auto first = test::payload(bytes, 1);
  const auto second = test::payload(bytes, 2);
  const auto third = test::payload(bytes, 3);
  std::vector<unsigned char> received(bytes);
  MPI_Request sends[3];
  MPI_Isend(first.data(), count, MPI_BYTE, right(), 6, MPI_COMM_WORLD, &sends[0]);
  MPI_Isend(second.data(), count, MPI_BYTE, right(), 6, MPI_COMM_WORLD, &sends[1]);
  MPI_Isend(third.data(), count, MPI_BYTE, right(), 6, MPI_COMM_WORLD, &sends[2]);

  MPI_Message one = MPI_MESSAGE_NULL;
  MPI_Message two = MPI_MESSAGE_NULL;
  MPI_Status status;
  MPI_Mprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &one, &status);
  check_status(status, left(), 6, count);
  CHECK(one != MPI_MESSAGE_NULL);
  int flag = 0;
  while (flag == 0) MPI_Improbe(left(), MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &two, &status);
  check_status(status, left(), 6, count);
  MPI_Recv(received.data(), count, MPI_BYTE, left(), 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(received == third);

  MPI_Request request;
  MPI_Imrecv(received.data(), count, MPI_BYTE, &two, &request);
  CHECK(two == MPI_MESSAGE_NULL);
  MPI_Wait(&request, &status);
  check_status(status, left(), 6, count);
  CHECK(received == second);
  MPI_Mrecv(received.data(), count, MPI_BYTE, &one, &status);
  CHECK(one == MPI_MESSAGE_NULL);
  check_status(status, left(), 6, count);
  CHECK(received == first);
  MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
}

void probe_nobody() {
  MPI_Status status;
  int flag = 0;
  MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
  test::check_nobody(status);
  MPI_Iprobe(MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
  CHECK_EQUAL(flag, 1);
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status);
  CHECK(message == MPI_MESSAGE_NO_PROC);
  test::check_nobody(status);
  MPI_Mrecv(nullptr, 0, MPI_BYTE, &message, &status);
  CHECK(message == MPI_MESSAGE_NULL);
  test::check_nobody(status);
  flag = 0;
  MPI_Improbe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &message, &status);
  CHECK_EQUAL(flag, 1);
  MPI_Request request;
  MPI_Imrecv(nullptr, 0, MPI_BYTE, &message, &request);
  MPI_Wait(&request, &status);
  test::check_nobody(status);
  MPI_Improbe(test::left(), 99, MPI_COMM_WORLD, &flag, &message, &status);
  CHECK_EQUAL(flag, 0);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  probe();
  test::meet();
  for (const std::size_t bytes : {0, 40, 5000, 200'000}) take(bytes);
  probe_nobody();
  MPI_Finalize();
}
