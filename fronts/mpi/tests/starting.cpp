// ranks: 1 2 5
#include "check.hpp"

#include <cstring>

// Starting, ending, and what a program asks about the library.
int main(int argc, char** argv) {
  int flag = -1;
  MPI_Initialized(&flag);
  CHECK_EQUAL(flag, 0);
  int version = 0;
  int subversion = -1;
  MPI_Get_version(&version, &subversion);
  CHECK_EQUAL(version, 5);
  CHECK_EQUAL(subversion, 0);

  int provided = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK_EQUAL(provided, static_cast<int>(MPI_THREAD_MULTIPLE));
  MPI_Initialized(&flag);
  CHECK_EQUAL(flag, 1);
  MPI_Finalized(&flag);
  CHECK_EQUAL(flag, 0);
  MPI_Is_thread_main(&flag);
  CHECK_EQUAL(flag, 1);
  CHECK(test::rank() >= 0 && test::rank() < test::ranks());

  char name[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  MPI_Get_processor_name(name, &length);
  CHECK_EQUAL(std::strlen(name), static_cast<std::size_t>(length));
  CHECK(length > 0);
  const double before = MPI_Wtime();
  CHECK(MPI_Wtime() >= before);
  CHECK(MPI_Wtick() > 0);

  MPI_Finalize();
  MPI_Finalized(&flag);
  CHECK_EQUAL(flag, 1);
}
