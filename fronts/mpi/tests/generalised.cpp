// ranks: 2
#include "messages.hpp"

#include <atomic>
#include <thread>

// Requests for operations of the program.
namespace {

struct State {
  std::atomic<int> queries{0};
  std::atomic<int> frees{0};
  std::atomic<int> cancels{0};
  int was_complete = -1;
};

int query(void* state, MPI_Status* status) {
  ++static_cast<State*>(state)->queries;
  MPI_Status_set_source(status, 7);
  MPI_Status_set_tag(status, 8);
  MPI_Status_set_cancelled(status, static_cast<State*>(state)->cancels > 0 ? 1 : 0);
  return MPI_SUCCESS;
}
int free_state(void* state) {
  ++static_cast<State*>(state)->frees;
  return MPI_SUCCESS;
}
int cancel(void* state, int complete) {
  ++static_cast<State*>(state)->cancels;
  static_cast<State*>(state)->was_complete = complete;
  return MPI_SUCCESS;
}

MPI_Request start(State& state) {
  MPI_Request request;
  MPI_Grequest_start(query, free_state, cancel, &state, &request);
  return request;
}

void wait_for_another_thread() {
  State state;
  MPI_Request request = start(state);
  int flag = 1;
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  CHECK_EQUAL(flag, 0);
  CHECK_EQUAL(state.queries, 0);
  std::thread other([request] { MPI_Grequest_complete(request); });
  MPI_Status status;
  MPI_Wait(&request, &status);
  other.join();
  CHECK(request == MPI_REQUEST_NULL);
  CHECK_EQUAL(status.MPI_SOURCE, 7);
  CHECK_EQUAL(status.MPI_TAG, 8);
  CHECK_EQUAL(state.queries, 1);
  CHECK_EQUAL(state.frees, 1);
}

// Among messages: a wait for any ends by either, whichever comes first.
void wait_beside_a_message() {
  State state;
  int value = 0;
  int index = -1;
  MPI_Request requests[2] = {start(state)};
  MPI_Irecv(&value, 1, MPI_INT, test::left(), 1, MPI_COMM_WORLD, &requests[1]);
  std::thread other([request = requests[0]] { MPI_Grequest_complete(request); });
  MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
  other.join();
  CHECK_EQUAL(index, 0);
  requests[0] = start(state);
  test::meet();
  MPI_Send(&index, 1, MPI_INT, test::right(), 1, MPI_COMM_WORLD);
  MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
  CHECK_EQUAL(index, 1);
  MPI_Grequest_complete(requests[0]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK_EQUAL(state.frees, 2);
}

void cancel_and_free() {
  State state;
  MPI_Request request = start(state);
  MPI_Cancel(&request);
  CHECK_EQUAL(state.cancels, 1);
  CHECK_EQUAL(state.was_complete, 0);
  MPI_Grequest_complete(request);
  MPI_Cancel(&request);
  CHECK_EQUAL(state.cancels, 2);
  CHECK_EQUAL(state.was_complete, 1);
  MPI_Status status;
  int flag = 0;
  MPI_Request_get_status(request, &flag, &status);
  CHECK_EQUAL(flag, 1);
  CHECK(test::is_cancelled(status));
  CHECK_EQUAL(state.frees, 0);
  MPI_Wait(&request, &status);
  CHECK(test::is_cancelled(status));
  CHECK_EQUAL(state.frees, 1);

  request = start(state);
  MPI_Request freed = request;
  MPI_Request_free(&freed);
  CHECK(freed == MPI_REQUEST_NULL);
  CHECK_EQUAL(state.frees, 1);
  MPI_Grequest_complete(request);
  CHECK_EQUAL(state.frees, 2);
  request = start(state);
  MPI_Grequest_complete(request);
  MPI_Request_free(&request);
  CHECK_EQUAL(state.frees, 3);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  wait_for_another_thread();
  wait_beside_a_message();
  cancel_and_free();
  MPI_Finalize();
}
