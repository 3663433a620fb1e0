#include "functions.hpp"
#include "mpi/status.hpp"

// Reading and writing statuses.
namespace tonari::mpi {

void status_get_source(const MPI_Status* status, int* source) { *source = status->MPI_SOURCE; }
void status_get_tag(const MPI_Status* status, int* tag) { *tag = status->MPI_TAG; }
void status_get_error(const MPI_Status* status, int* error) { *error = status->MPI_ERROR; }
void status_set_source(MPI_Status* status, int source) { status->MPI_SOURCE = source; }
void status_set_tag(MPI_Status* status, int tag) { status->MPI_TAG = tag; }
void status_set_error(MPI_Status* status, int error) { status->MPI_ERROR = error; }
void status_set_cancelled(MPI_Status* status, int flag) { set_cancelled(*status, flag != 0); }
void test_cancelled(const MPI_Status* status, int* flag) { *flag = is_cancelled(*status) ? 1 : 0; }

}  // namespace tonari::mpi
