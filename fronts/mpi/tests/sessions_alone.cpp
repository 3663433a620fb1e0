// ranks: 1 2 3
#include "check.hpp"

// A program without MPI_Init: it may begin sessions again and again, and leaves its job when it exits.
int main() {
  for (int i = 0; i < 3; ++i) {
    MPI_Session session = MPI_SESSION_NULL;
    CHECK_EQUAL(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session), MPI_SUCCESS);
    MPI_Group group = MPI_GROUP_NULL;
    CHECK_EQUAL(MPI_Group_from_session_pset(session, "mpi://WORLD", &group), MPI_SUCCESS);
    int size = 0;
    MPI_Group_size(group, &size);
    CHECK(size >= 1);
    MPI_Group_free(&group);
    CHECK_EQUAL(MPI_Session_finalize(&session), MPI_SUCCESS);
  }
  int flag = -1;
  MPI_Initialized(&flag);
  CHECK_EQUAL(flag, 0);
}
