// ranks: 1 2
#include "messages.hpp"

#include <array>
#include <limits>
#include <string>
#include <vector>

// Errors of messages and requests, returned to the program.
namespace {

using test::left;
using test::right;

int class_of(int code) {
  int error_class = -1;
  MPI_Error_class(code, &error_class);
  return error_class;
}

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

void check_failed(int line, int code, int error_class, const std::vector<std::string>& words) {
  if (class_of(code) != error_class) {
    test::fail(__FILE__, line, "error class " + std::to_string(class_of(code)) + " is " + std::to_string(error_class));
  }
  const std::string text = text_of(code);
  for (const std::string& word : words) {
    if (text.find(word) == std::string::npos) test::fail(__FILE__, line, "'" + text + "' contains '" + word + "'");
  }
}
#define CHECK_FAILS(call, error_class, ...) check_failed(__LINE__, call, error_class, {__VA_ARGS__})

void pass_wrong_arguments() {
  int value = 0;
  MPI_Request request;
  CHECK_FAILS(MPI_Send(&value, 1, MPI_INT, test::ranks(), 0, MPI_COMM_WORLD), MPI_ERR_RANK, "MPI_Send", "dest");
  CHECK_FAILS(MPI_Send(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD), MPI_ERR_RANK, "dest");
  CHECK_FAILS(MPI_Recv(&value, 1, MPI_INT, -5, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_RANK, "source");
  CHECK_FAILS(MPI_Send(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD), MPI_ERR_TAG, "tag");
  CHECK_FAILS(MPI_Irecv(&value, 1, MPI_INT, 0, -7, MPI_COMM_WORLD, &request), MPI_ERR_TAG, "tag");
  CHECK_FAILS(MPI_Isend(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request), MPI_ERR_COUNT, "count is -1");
  CHECK_FAILS(MPI_Send(nullptr, 1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER, "null pointer");
  CHECK_FAILS(MPI_Send(MPI_IN_PLACE, 1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER, "MPI_IN_PLACE");
  CHECK_FAILS(MPI_Send_c(&value, MPI_Count{1} << 62, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_COUNT, "address space");
  CHECK_FAILS(MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE, "datatype");
}

MPI_Request start_too_long(int tag, std::vector<char>& buffer) {
  static const char sent[20] = {};
  MPI_Request request;
  MPI_Irecv(buffer.data(), static_cast<int>(buffer.size()), MPI_CHAR, left(), tag, MPI_COMM_WORLD, &request);
  MPI_Send(sent, 20, MPI_CHAR, right(), tag, MPI_COMM_WORLD);
  return request;
}

void truncate() {
  std::vector<char> buffer(7);
  MPI_Status status;
  MPI_Request request = start_too_long(3, buffer);
  CHECK_FAILS(MPI_Wait(&request, &status), MPI_ERR_TRUNCATE, "MPI_Wait", "20 bytes", "7 bytes", "tag 3",
              "rank " + std::to_string(left()));
  CHECK(request == MPI_REQUEST_NULL);
  test::check_status(status, left(), 3, 20);
  request = start_too_long(4, buffer);
  int flag = 0;
  int code = MPI_SUCCESS;
  while (flag == 0) code = MPI_Test(&request, &flag, &status);
  CHECK_FAILS(code, MPI_ERR_TRUNCATE, "20 bytes");
  const char sent[20] = {};
  MPI_Request send;
  MPI_Isend(sent, 20, MPI_CHAR, right(), 5, MPI_COMM_WORLD, &send);
  CHECK_FAILS(MPI_Recv(buffer.data(), 7, MPI_CHAR, left(), 5, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE, "MPI_Recv",
              "20 bytes", "7 bytes");
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  MPI_Isend(sent, 20, MPI_CHAR, right(), 6, MPI_COMM_WORLD, &send);
  MPI_Message message;
  MPI_Mprobe(left(), 6, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  CHECK_FAILS(MPI_Mrecv(buffer.data(), 7, MPI_CHAR, &message, &status), MPI_ERR_TRUNCATE, "MPI_Mrecv");
  CHECK(message == MPI_MESSAGE_NULL);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
}

// One bad request among good ones: each status says which.
void fail_one_of_several() {
  std::vector<char> buffer(7);
  std::array<int, 2> values{};
  MPI_Request requests[4];
  MPI_Status statuses[4];
  const auto start = [&] {
    MPI_Irecv(&values[0], 1, MPI_INT, left(), 1, MPI_COMM_WORLD, &requests[0]);
    requests[1] = start_too_long(2, buffer);
    requests[2] = MPI_REQUEST_NULL;
    MPI_Irecv(&values[1], 1, MPI_INT, left(), 3, MPI_COMM_WORLD, &requests[3]);
    const int sent = 9;
    MPI_Send(&sent, 1, MPI_INT, right(), 1, MPI_COMM_WORLD);
    MPI_Send(&sent, 1, MPI_INT, right(), 3, MPI_COMM_WORLD);
    for (MPI_Status& status : statuses) status.MPI_ERROR = 99;
  };
  const auto check = [&](const int* error_classes, int count) {
    for (int i = 0; i < count; ++i) CHECK_EQUAL(class_of(statuses[i].MPI_ERROR), error_classes[i]);
    CHECK_EQUAL(values[1], 9);
    for (const MPI_Request request : requests) CHECK(request == MPI_REQUEST_NULL);
  };
  const int in_order[4] = {MPI_SUCCESS, MPI_ERR_TRUNCATE, MPI_SUCCESS, MPI_SUCCESS};
  start();
  CHECK_FAILS(MPI_Waitall(4, requests, statuses), MPI_ERR_IN_STATUS, "MPI_Waitall", "20 bytes", "1 of 4");
  check(in_order, 4);
  const std::string text = text_of(statuses[1].MPI_ERROR);
  CHECK(text.find("20 bytes") != std::string::npos);
  CHECK(text.find("7 bytes") != std::string::npos);
  start();
  CHECK_FAILS(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS, "20 bytes");
  start();
  int flag = 0;
  int code = MPI_SUCCESS;
  while (flag == 0) code = MPI_Testall(4, requests, &flag, statuses);
  CHECK_FAILS(code, MPI_ERR_IN_STATUS, "MPI_Testall");
  check(in_order, 4);
}

void fail_some() {
  std::vector<char> buffer(7);
  int value = 0;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  int count = 0;
  int indices[2];
  MPI_Irecv(&value, 1, MPI_INT, left(), 1, MPI_COMM_WORLD, &requests[0]);
  requests[1] = start_too_long(2, buffer);
  statuses[0].MPI_ERROR = 99;
  CHECK_FAILS(MPI_Waitsome(2, requests, &count, indices, statuses), MPI_ERR_IN_STATUS, "MPI_Waitsome");
  CHECK_EQUAL(count, 1);
  CHECK_EQUAL(indices[0], 1);
  CHECK_EQUAL(class_of(statuses[0].MPI_ERROR), int{MPI_ERR_TRUNCATE});
  CHECK(requests[0] != MPI_REQUEST_NULL);
  requests[1] = start_too_long(2, buffer);
  int index = 0;
  CHECK_FAILS(MPI_Waitany(2, requests, &index, statuses), MPI_ERR_TRUNCATE, "MPI_Waitany");
  CHECK_EQUAL(index, 1);
  MPI_Cancel(&requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

void misuse_requests() {
  int value = 0;
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, left(), 1, MPI_COMM_WORLD, &request);
  CHECK_FAILS(MPI_Start(&request), MPI_ERR_REQUEST, "not persistent");
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_FAILS(MPI_Request_free(&request), MPI_ERR_REQUEST, "MPI_Request_free",
              "request must be a request, but it is MPI_REQUEST_NULL");
  CHECK_FAILS(MPI_Cancel(&request), MPI_ERR_REQUEST, "MPI_Cancel", "MPI_REQUEST_NULL");
  alignas(8) char nothing[64] = {};
  request = reinterpret_cast<MPI_Request>(nothing);
  CHECK_FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_REQUEST, "completed or freed, or never made");
  request = nullptr;
  CHECK_FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_REQUEST, "the variable was never set");
  request = reinterpret_cast<MPI_Request>(0x181);
  CHECK_FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_REQUEST, "0x181");
  CHECK_FAILS(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST, "array_of_requests[0]", "0x181");
  CHECK_FAILS(MPI_Waitall(-1, &request, MPI_STATUSES_IGNORE), MPI_ERR_COUNT, "-1");
  CHECK_FAILS(MPI_Waitall(1, nullptr, MPI_STATUSES_IGNORE), MPI_ERR_ARG, "array_of_requests");
  CHECK_FAILS(MPI_Grequest_complete(MPI_REQUEST_NULL), MPI_ERR_REQUEST, "generalised");
  MPI_Recv_init(&value, 1, MPI_INT, left(), 1, MPI_COMM_WORLD, &request);
  MPI_Start(&request);
  CHECK_FAILS(MPI_Start(&request), MPI_ERR_REQUEST, "active already");
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
  MPI_Message message = MPI_MESSAGE_NULL;
  CHECK_FAILS(MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE), MPI_ERR_REQUEST,
              "message must be a message, but it is MPI_MESSAGE_NULL");
}

void misuse_communicators() {
  int value = 0;
  MPI_Comm made = MPI_COMM_NULL;
  CHECK_FAILS(MPI_Allgatherv(&value, 1, MPI_INT, &value, nullptr, nullptr, MPI_INT, MPI_COMM_WORLD), MPI_ERR_ARG,
              "recvcounts is a null pointer");
  CHECK_FAILS(MPI_Bcast(nullptr, 4, MPI_INT, 0, MPI_COMM_SELF), MPI_ERR_BUFFER, "buffer is a null pointer");
  CHECK_FAILS(MPI_Gather(&value, 1, MPI_INT, nullptr, 1, MPI_INT, 0, MPI_COMM_SELF), MPI_ERR_BUFFER,
              "recvbuf is a null pointer");
  const int count = 1;
  const int displacement = 0;
  CHECK_FAILS(MPI_Gatherv(&value, 1, MPI_INT, nullptr, &count, &displacement, MPI_INT, 0, MPI_COMM_SELF),
              MPI_ERR_BUFFER, "recvbuf is a null pointer");
  CHECK_FAILS(MPI_Allreduce(MPI_IN_PLACE, nullptr, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF), MPI_ERR_BUFFER,
              "recvbuf is a null pointer");
  CHECK_FAILS(MPI_Scan(nullptr, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF), MPI_ERR_BUFFER,
              "sendbuf is a null pointer");
  CHECK(MPI_Bcast(nullptr, 0, MPI_INT, 0, MPI_COMM_SELF) == MPI_SUCCESS);
  const std::string ranks = std::to_string(test::ranks());
  int dims[3] = {test::ranks(), 3, 1};
  const int periods[3] = {};
  CHECK_FAILS(MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &made), MPI_ERR_DIMS,
              "dims need " + std::to_string(3 * test::ranks()) + " ranks, but comm has " + ranks);
  for (int& extent : dims) extent = std::numeric_limits<int>::max();
  CHECK_FAILS(MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &made), MPI_ERR_DIMS, "dims need 2^63 or more");
  CHECK_FAILS(MPI_Intercomm_create(MPI_COMM_SELF, 5, MPI_COMM_WORLD, 0, 1, &made), MPI_ERR_RANK,
              "local_leader is 5: the ranks of MPI_COMM_SELF, the local communicator, are 0 to 0");
  CHECK_FAILS(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 7, 1, &made), MPI_ERR_RANK,
              "remote_leader is 7: the ranks of MPI_COMM_WORLD, the peer communicator, are 0 to " +
                  std::to_string(test::ranks() - 1));
}

void misuse_buffers() {
  char memory[600];
  const char sent[100] = {};
  void* address = nullptr;
  int size = 0;
  CHECK_FAILS(MPI_Bsend(sent, 100, MPI_CHAR, right(), 1, MPI_COMM_WORLD), MPI_ERR_BUFFER, "no buffer is attached");
  CHECK_FAILS(MPI_Buffer_detach(&address, &size), MPI_ERR_BUFFER, "no buffer");
  MPI_Buffer_attach(memory, 110);
  CHECK_FAILS(MPI_Buffer_attach(memory, 600), MPI_ERR_BUFFER, "already");
  CHECK_FAILS(MPI_Bsend(sent, 100, MPI_CHAR, right(), 1, MPI_COMM_WORLD), MPI_ERR_BUFFER, "110 bytes", "100 bytes");
  MPI_Buffer_detach(&address, &size);
}

void misuse_partitions() {
  int values[4] = {};
  MPI_Request requests[2];
  CHECK_FAILS(MPI_Psend_init(values, 0, 1, MPI_INT, right(), 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]),
              MPI_ERR_ARG, "partitions is 0");
  MPI_Psend_init(values, 2, 1, MPI_INT, right(), 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Precv_init(values + 2, 2, 1, MPI_INT, left(), 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  CHECK_FAILS(MPI_Pready(0, requests[0]), MPI_ERR_REQUEST, "inactive");
  MPI_Startall(2, requests);
  CHECK_FAILS(MPI_Pready(2, requests[0]), MPI_ERR_ARG, "partition is 2");
  CHECK_FAILS(MPI_Pready(0, requests[1]), MPI_ERR_REQUEST, "partitioned send");
  MPI_Pready(0, requests[0]);
  CHECK_FAILS(MPI_Pready(0, requests[0]), MPI_ERR_REQUEST, "ready before");
  CHECK_FAILS(MPI_Cancel(&requests[0]), MPI_ERR_REQUEST, "cannot be cancelled");
  MPI_Pready(1, requests[0]);
  int flag = 0;
  CHECK_FAILS(MPI_Parrived(requests[0], 0, &flag), MPI_ERR_REQUEST, "partitioned receive");
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

// The error handler of the communicator hears of a request's failure, also if the program has freed the handle.
int heard = 0;
void hear(MPI_Comm* comm, int* code, ...) {
  ++heard;
  CHECK(*comm != MPI_COMM_SELF);
  CHECK_EQUAL(class_of(*code), int{MPI_ERR_TRUNCATE});
}

void tell_the_communicator() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  const char sent[20] = {};
  char received[7];
  MPI_Request request;
  MPI_Irecv(received, 7, MPI_CHAR, left(), 1, comm, &request);
  MPI_Send(sent, 20, MPI_CHAR, right(), 1, comm);
  MPI_Comm_free(&comm);
  CHECK_FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "20 bytes");
  CHECK_EQUAL(heard, 1);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  pass_wrong_arguments();
  truncate();
  fail_one_of_several();
  test::meet();
  fail_some();
  misuse_requests();
  misuse_communicators();
  misuse_buffers();
  misuse_partitions();
  tell_the_communicator();
  MPI_Finalize();
}
