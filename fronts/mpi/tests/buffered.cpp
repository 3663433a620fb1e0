// ranks: 1 2 5
#include "messages.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

// Buffered sends, from buffers of the process, of a session and of a communicator.
namespace {

using test::left;
using test::payload;
using test::right;

constexpr int long_count = 100'000;  // such a message waits for its receive

std::vector<unsigned char> receive(int count) {
  std::vector<unsigned char> received(static_cast<std::size_t>(count));
  MPI_Recv(received.data(), count, MPI_BYTE, left(), 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return received;
}

// The data may change after the send, which waits for nothing.
void overwrite_after_sending(int count) {
  const auto expected = payload(static_cast<std::size_t>(count), 1);
  auto data = expected;
  MPI_Bsend(data.data(), count, MPI_BYTE, right(), 5, MPI_COMM_WORLD);
  data.assign(data.size(), 0);
  MPI_Request request;
  data = expected;
  MPI_Ibsend(data.data(), count, MPI_BYTE, right(), 5, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  data.assign(data.size(), 0);
  MPI_Bsend_init(data.data(), count, MPI_BYTE, right(), 5, MPI_COMM_WORLD, &request);
  data = expected;
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  data.assign(data.size(), 0);
  MPI_Request_free(&request);
  test::meet();
  for (int i = 0; i < 3; ++i) CHECK(receive(count) == expected);
  test::meet();  // all messages have left the buffer
}

// More messages than fit at once, if their room is used again.
void use_the_room_again(int size) {
  std::vector<char> memory(static_cast<std::size_t>(size));
  MPI_Buffer_attach(memory.data(), size);
  for (const int count : {0, 10, 20'000, long_count}) overwrite_after_sending(count);
  void* address = nullptr;
  int detached = 0;
  MPI_Buffer_detach(&address, &detached);
  CHECK(address == memory.data());
  CHECK_EQUAL(detached, size);
}

// A flush returns once the messages have left; its started form says so.
void flush() {
  std::vector<char> memory(2 * (long_count + MPI_BSEND_OVERHEAD));
  MPI_Comm_attach_buffer(MPI_COMM_WORLD, memory.data(), static_cast<int>(memory.size()));
  const auto sent = payload(long_count, 2);
  MPI_Bsend(sent.data(), long_count, MPI_BYTE, right(), 5, MPI_COMM_WORLD);
  MPI_Request requests[2];
  MPI_Comm_iflush_buffer(MPI_COMM_WORLD, &requests[0]);
  MPI_Comm_iflush_buffer(MPI_COMM_WORLD, &requests[1]);
  int flag = 1;
  MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
  CHECK_EQUAL(flag, 0);
  test::meet();
  CHECK(receive(long_count) == sent);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Comm_flush_buffer(MPI_COMM_WORLD);
  MPI_Waitall(1, &requests[1], MPI_STATUSES_IGNORE);
  MPI_Buffer_flush();  // the process has no buffer
  MPI_Buffer_iflush(&requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  void* address = nullptr;
  MPI_Count size = 0;
  MPI_Comm_detach_buffer_c(MPI_COMM_WORLD, &address, &size);
  CHECK(address == memory.data());
  CHECK_EQUAL(size, static_cast<MPI_Count>(memory.size()));
}

void use_automatic_memory() {
  MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
  constexpr int messages = 50;
  const auto sent = payload(long_count, 3);
  for (int i = 0; i < messages; ++i) MPI_Bsend(sent.data(), long_count, MPI_BYTE, right(), 5, MPI_COMM_WORLD);
  for (int i = 0; i < messages; ++i) CHECK(receive(long_count) == sent);
  void* address = nullptr;
  int size = 1;
  MPI_Buffer_detach(&address, &size);
  CHECK(address == MPI_BUFFER_AUTOMATIC);
}

// Each communicator has a buffer of its own. Freeing the communicator waits until its messages have left.
void free_the_communicator() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<char> memory(long_count + MPI_BSEND_OVERHEAD);
  MPI_Comm_attach_buffer(comm, memory.data(), static_cast<int>(memory.size()));
  const auto sent = payload(long_count, 4);
  std::vector<unsigned char> received(long_count);
  MPI_Request request;
  MPI_Irecv(received.data(), long_count, MPI_BYTE, left(), 5, comm, &request);
  MPI_Bsend(sent.data(), long_count, MPI_BYTE, right(), 5, comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
  CHECK(received == sent);
}

void use_the_buffer_of_a_session() {
  MPI_Session session;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  char memory[1000];
  MPI_Session_attach_buffer(session, memory, 1000);
  MPI_Session_flush_buffer(session);
  MPI_Request request;
  MPI_Session_iflush_buffer(session, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  void* address = nullptr;
  int size = 0;
  MPI_Session_detach_buffer(session, &address, &size);
  CHECK(address == memory);
  CHECK_EQUAL(size, 1000);
  MPI_Session_finalize(&session);
}

using Memory = std::vector<unsigned char>;

// Sends a message on the communicator, and returns whether the memory contains its data.
bool sends_from(Memory& memory, MPI_Comm comm, unsigned seed) {
  constexpr int count = 300;
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  const auto sent = payload(count, seed);
  Memory received(count);
  MPI_Request request;
  MPI_Irecv(received.data(), count, MPI_BYTE, (rank + ranks - 1) % ranks, 5, comm, &request);
  MPI_Bsend(sent.data(), count, MPI_BYTE, (rank + 1) % ranks, 5, comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(received == sent);
  return std::search(memory.begin(), memory.end(), sent.begin(), sent.end()) != memory.end();
}

// All communicators and groups that are derived from a session use its buffer, unless a communicator has its own.
void derive_communicators_from_a_session() {
  Memory of_process(2000);
  Memory of_session(2000);
  Memory of_comm(2000);
  MPI_Session session;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Session_attach_buffer(session, of_session.data(), 2000);
  MPI_Buffer_attach(of_process.data(), 2000);

  MPI_Group all;
  MPI_Group part;
  MPI_Group whole;
  MPI_Comm comms[6];
  MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
  MPI_Comm_create_from_group(all, "buffered", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comms[0]);
  MPI_Comm_dup(comms[0], &comms[1]);
  MPI_Request request;
  MPI_Comm_idup(comms[0], &comms[2], &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_split(comms[0], test::rank() % 2, 0, &comms[3]);
  MPI_Comm_group(comms[3], &part);
  MPI_Comm_create_from_group(part, test::rank() % 2 == 0 ? "even" : "odd", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                             &comms[4]);
  MPI_Group_union(MPI_GROUP_EMPTY, all, &whole);
  MPI_Comm_create_from_group(whole, "whole", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comms[5]);

  unsigned seed = 10;
  for (MPI_Comm comm : comms) CHECK(sends_from(of_session, comm, seed++));
  CHECK(!sends_from(of_session, MPI_COMM_WORLD, seed));
  CHECK(sends_from(of_process, MPI_COMM_WORLD, seed++));
  MPI_Comm_attach_buffer(comms[1], of_comm.data(), 2000);
  CHECK(sends_from(of_comm, comms[1], seed++));
  CHECK(sends_from(of_session, comms[0], seed++));
  void* address = nullptr;
  int size = 0;
  MPI_Comm_detach_buffer(comms[1], &address, &size);
  CHECK(sends_from(of_session, comms[1], seed++));
  MPI_Session_detach_buffer(session, &address, &size);
  CHECK(address == of_session.data());
  CHECK(sends_from(of_process, comms[1], seed++));
  MPI_Buffer_detach(&address, &size);
  CHECK(address == of_process.data());

  // The end of the session waits until the messages have left.
  std::vector<char> memory(long_count + MPI_BSEND_OVERHEAD);
  MPI_Session_attach_buffer(session, memory.data(), static_cast<int>(memory.size()));
  const auto sent = payload(long_count, seed);
  std::vector<unsigned char> received(long_count);
  MPI_Irecv(received.data(), long_count, MPI_BYTE, left(), 5, comms[0], &request);
  MPI_Bsend(sent.data(), long_count, MPI_BYTE, right(), 5, comms[0]);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  memory.clear();
  memory.shrink_to_fit();
  CHECK(received == sent);
  for (MPI_Group* group : {&all, &part, &whole}) MPI_Group_free(group);
}

// The end of MPI waits until the messages have left. Messages of different lengths fill the room in turns.
void leave_messages_behind() {
  static std::vector<char> memory(10 * (long_count + MPI_BSEND_OVERHEAD));
  MPI_Buffer_attach(memory.data(), static_cast<int>(memory.size()));
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 10; ++i) {
      const auto sent = payload(static_cast<std::size_t>(long_count - 7 * i), static_cast<unsigned>(i + round));
      MPI_Bsend(sent.data(), long_count - 7 * i, MPI_BYTE, right(), 5, MPI_COMM_WORLD);
    }
    test::meet();
    for (int i = 0; i < 10; ++i) {
      CHECK(receive(long_count - 7 * i) ==
            payload(static_cast<std::size_t>(long_count - 7 * i), static_cast<unsigned>(i + round)));
    }
    test::meet();
  }
  if (test::ranks() == 1) return;
  const auto sent = payload(long_count, 9);
  MPI_Bsend(sent.data(), long_count, MPI_BYTE, right(), 5, MPI_COMM_WORLD);
  if (test::rank() == 0) CHECK(receive(long_count) == sent);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  use_the_room_again(3 * (long_count + MPI_BSEND_OVERHEAD));
  flush();
  use_automatic_memory();
  free_the_communicator();
  use_the_buffer_of_a_session();
  derive_communicators_from_a_session();
  leave_messages_behind();
  // Other ranks receive their last message after rank 0 has begun to leave.
  std::vector<unsigned char> received(long_count);
  if (test::ranks() > 1 && test::rank() != 0) received = receive(long_count);
  MPI_Finalize();
}
