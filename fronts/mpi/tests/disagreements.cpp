// ranks: 2 3
#include "check.hpp"

#include <cstring>
#include <vector>

// If ranks disagree about the size of their data, each form of a collective reports the same error on the same ranks.
// Which ranks these are depends on the hosts, along whose tree the data travel; at least one rank reports it.
namespace {

constexpr int large = 1000;

struct Mine {
  int count = test::rank() == 0 ? 10 : large;
  std::vector<int> from = std::vector<int>(large);
  std::vector<int> to = std::vector<int>(large * static_cast<std::size_t>(test::ranks()));
};

void check_code(int code, bool has_failed) {
  CHECK_EQUAL(code, has_failed ? int{MPI_ERR_TRUNCATE} : int{MPI_SUCCESS});
  if (!has_failed) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  CHECK(std::strstr(text, "the ranks disagree about the size of their data") != nullptr);
}

bool fails_somewhere(bool fails) {
  int any = fails ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return any != 0;
}

// Calls a collective blocking, started and persistent.
template <class Block, class Start, class Prepare>
void check_forms(Block&& block, Start&& start, Prepare&& prepare) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  Mine mine;
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = block(mine, comm);
  const bool fails = code != MPI_SUCCESS;
  check_code(code, fails);
  CHECK(fails_somewhere(fails));
  CHECK_EQUAL(start(mine, comm, &request), int{MPI_SUCCESS});
  check_code(MPI_Wait(&request, MPI_STATUS_IGNORE), fails);
  CHECK_EQUAL(prepare(mine, comm, &request), int{MPI_SUCCESS});
  for (int i = 0; i < 2; ++i) {
    CHECK_EQUAL(MPI_Start(&request), int{MPI_SUCCESS});
    check_code(MPI_Wait(&request, MPI_STATUS_IGNORE), fails);
  }
  MPI_Request_free(&request);
  MPI_Comm_free(&comm);
}

void broadcast(int root) {
  check_forms([&](Mine& mine, MPI_Comm comm) { return MPI_Bcast(mine.to.data(), mine.count, MPI_INT, root, comm); },
              [&](Mine& mine, MPI_Comm comm, MPI_Request* request) {
                return MPI_Ibcast(mine.to.data(), mine.count, MPI_INT, root, comm, request);
              },
              [&](Mine& mine, MPI_Comm comm, MPI_Request* request) {
                return MPI_Bcast_init(mine.to.data(), mine.count, MPI_INT, root, comm, MPI_INFO_NULL, request);
              });
}

void gather() {
  constexpr int root = 1;
  check_forms(
      [](Mine& mine, MPI_Comm comm) {
        return MPI_Gather(mine.from.data(), mine.count, MPI_INT, mine.to.data(), mine.count, MPI_INT, root, comm);
      },
      [](Mine& mine, MPI_Comm comm, MPI_Request* request) {
        return MPI_Igather(mine.from.data(), mine.count, MPI_INT, mine.to.data(), mine.count, MPI_INT, root, comm,
                           request);
      },
      [](Mine& mine, MPI_Comm comm, MPI_Request* request) {
        return MPI_Gather_init(mine.from.data(), mine.count, MPI_INT, mine.to.data(), mine.count, MPI_INT, root, comm,
                               MPI_INFO_NULL, request);
      });
}

void all_to_all() {
  check_forms(
      [](Mine& mine, MPI_Comm comm) {
        const int count = mine.count / test::ranks();
        return MPI_Alltoall(mine.from.data(), count, MPI_INT, mine.to.data(), count, MPI_INT, comm);
      },
      [](Mine& mine, MPI_Comm comm, MPI_Request* request) {
        const int count = mine.count / test::ranks();
        return MPI_Ialltoall(mine.from.data(), count, MPI_INT, mine.to.data(), count, MPI_INT, comm, request);
      },
      [](Mine& mine, MPI_Comm comm, MPI_Request* request) {
        const int count = mine.count / test::ranks();
        return MPI_Alltoall_init(mine.from.data(), count, MPI_INT, mine.to.data(), count, MPI_INT, comm, MPI_INFO_NULL,
                                 request);
      });
}

void reduce() {
  constexpr int root = 1;
  check_forms(
      [](Mine& mine, MPI_Comm comm) {
        return MPI_Reduce(mine.from.data(), mine.to.data(), mine.count, MPI_INT, MPI_SUM, root, comm);
      },
      [](Mine& mine, MPI_Comm comm, MPI_Request* request) {
        return MPI_Ireduce(mine.from.data(), mine.to.data(), mine.count, MPI_INT, MPI_SUM, root, comm, request);
      },
      [](Mine& mine, MPI_Comm comm, MPI_Request* request) {
        return MPI_Reduce_init(mine.from.data(), mine.to.data(), mine.count, MPI_INT, MPI_SUM, root, comm,
                               MPI_INFO_NULL, request);
      });
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  broadcast(0);
  broadcast(1);
  gather();
  all_to_all();
  reduce();
  MPI_Finalize();
}
