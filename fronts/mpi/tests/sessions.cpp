// ranks: 1 2 3
#include "check.hpp"

#include <cstring>
#include <string>
#include <thread>
#include <vector>

// Sessions before, beside and after the world model.

namespace {

MPI_Session begin() {
  MPI_Session session = MPI_SESSION_NULL;
  CHECK_EQUAL(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), MPI_SUCCESS);
  CHECK(session != MPI_SESSION_NULL);
  return session;
}

int size_of_set(MPI_Session session, const char* name) {
  MPI_Group group = MPI_GROUP_NULL;
  CHECK_EQUAL(MPI_Group_from_session_pset(session, name, &group), MPI_SUCCESS);
  int size = -1;
  CHECK_EQUAL(MPI_Group_size(group, &size), MPI_SUCCESS);
  int rank = -1;
  CHECK_EQUAL(MPI_Group_rank(group, &rank), MPI_SUCCESS);
  CHECK(rank >= 0 && rank < size);
  MPI_Group_free(&group);

  MPI_Info info = MPI_INFO_NULL;
  CHECK_EQUAL(MPI_Session_get_pset_info(session, name, &info), MPI_SUCCESS);
  char value[16];
  int length = sizeof value;
  int flag = 0;
  MPI_Info_get_string(info, "mpi_size", &length, value, &flag);
  CHECK_EQUAL(flag, 1);
  CHECK_EQUAL(std::string(value), std::to_string(size));
  MPI_Info_free(&info);
  return size;
}

void process_sets(MPI_Session session) {
  int sets = -1;
  CHECK_EQUAL(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets), MPI_SUCCESS);
  CHECK_EQUAL(sets, 2);
  std::string names;
  for (int n = 0; n < sets; ++n) {
    int length = 0;
    CHECK_EQUAL(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, nullptr), MPI_SUCCESS);
    std::vector<char> name(static_cast<std::size_t>(length));
    CHECK_EQUAL(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, name.data()), MPI_SUCCESS);
    names += name.data() + std::string(" ");
    char start[6];
    length = sizeof start;
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, start);
    CHECK_EQUAL(std::string(start), std::string("mpi:/"));
    CHECK_EQUAL(static_cast<std::size_t>(length), name.size());
  }
  CHECK_EQUAL(names, std::string("mpi://WORLD mpi://SELF "));
  CHECK_EQUAL(size_of_set(session, "mpi://SELF"), 1);
  CHECK(size_of_set(session, "mpi://world") >= 1);

  int length = 0;
  CHECK_EQUAL(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 2, &length, nullptr), static_cast<int>(MPI_ERR_ARG));
  MPI_Info info = MPI_INFO_NULL;
  CHECK_EQUAL(MPI_Session_get_pset_info(session, "mpi://", &info), static_cast<int>(MPI_ERR_ARG));
  CHECK_EQUAL(MPI_Session_get_info(session, &info), MPI_SUCCESS);
  char level[32];
  length = sizeof level;
  int flag = 0;
  MPI_Info_get_string(info, "thread_level", &length, level, &flag);
  CHECK_EQUAL(std::string(level), std::string("MPI_THREAD_MULTIPLE"));
  MPI_Info_free(&info);
}

void several_threads() {
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) {
        MPI_Session session = begin();
        CHECK_EQUAL(size_of_set(session, "mpi://SELF"), 1);
        CHECK_EQUAL(MPI_Session_finalize(&session), MPI_SUCCESS);
        CHECK(session == MPI_SESSION_NULL);
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

void check_world_model(int initialized, int finalized) {
  int flag = -1;
  MPI_Initialized(&flag);
  CHECK_EQUAL(flag, initialized);
  MPI_Finalized(&flag);
  CHECK_EQUAL(flag, finalized);
}

}  // namespace

int main(int argc, char** argv) {
  check_world_model(0, 0);
  MPI_Session first = begin();
  const int ranks = size_of_set(first, "mpi://WORLD");
  check_world_model(0, 0);
  process_sets(first);
  CHECK_EQUAL(MPI_Session_finalize(&first), MPI_SUCCESS);
  several_threads();  // again and again, with no session in between

  MPI_Session across = begin();
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  check_world_model(1, 0);
  CHECK_EQUAL(test::ranks(), ranks);
  CHECK_EQUAL(MPI_Session_finalize(&first), static_cast<int>(MPI_ERR_SESSION));
  process_sets(across);
  several_threads();
  MPI_Session last = begin();
  CHECK_EQUAL(MPI_Session_finalize(&across), MPI_SUCCESS);
  MPI_Finalize();
  check_world_model(1, 1);

  // The job goes on for the session that is left.
  process_sets(last);
  CHECK_EQUAL(size_of_set(last, "mpi://WORLD"), ranks);
  CHECK_EQUAL(MPI_Session_finalize(&last), MPI_SUCCESS);
}
