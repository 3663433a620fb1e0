// ranks: 1
#include "check.hpp"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string>

// The text of fatal errors. This program starts itself again, alone, with the name of an error.

namespace {

struct Case {
  const char* name;
  void (*fail)();
  std::array<const char*, 4> parts;  // of the text that the child must print
};

int number = 0;
const Case cases[] = {
    {"argument",
     [] { MPI_Comm_size(MPI_COMM_WORLD, nullptr); },
     {"rank 0 on ", "MPI_Comm_size on MPI_COMM_WORLD failed with MPI_ERR_ARG", "size is a null pointer",
      "the error handler of MPI_COMM_WORLD is MPI_ERRORS_ARE_FATAL"}},
    {"abort",
     [] {
       MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT);
       MPI_Comm_remote_size(MPI_COMM_WORLD, &number);
     },
     {"MPI_Comm_remote_size", "MPI_ERR_COMM", "inter-communicator", "MPI_ERRORS_ABORT"}},
    {"null",
     [] { MPI_Comm_size(MPI_COMM_NULL, &number); },
     {"MPI_Comm_size failed", "comm must be a communicator, but it is MPI_COMM_NULL", "MPI_COMM_SELF", "ends the job"}},
    {"unset", [] { MPI_Comm_size(nullptr, &number); }, {"comm must be", "the variable was never set", "", ""}},
    {"group",
     [] {
       const int ranks[] = {0, 0};
       MPI_Group group = MPI_GROUP_NULL;
       MPI_Session session = MPI_SESSION_NULL;
       MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
       MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
       MPI_Group_incl(group, 2, ranks, &group);
     },
     {"MPI_Group_incl failed with MPI_ERR_RANK", "ranks[1] names rank 0", "MPI_COMM_SELF", ""}},
    {"session",
     [] {
       MPI_Session session = MPI_SESSION_NULL;
       MPI_Group group = MPI_GROUP_NULL;
       MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
       MPI_Group_from_session_pset(session, "mpi://MOON", &group);
     },
     {"MPI_Group_from_session_pset", "mpi://MOON", "mpi://WORLD, mpi://SELF", "the session's error handler"}},
    {"program",
     [] { MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_IO); },
     {"MPI_Comm_call_errhandler on MPI_COMM_WORLD", "MPI_ERR_IO", "reading or writing failed", ""}},
    {"called",
     [] { MPI_Abort(MPI_COMM_WORLD, 1); },
     {"tonari: rank 0 on ", ": MPI_Abort on MPI_COMM_WORLD with code 1", "aborted the job with code 1", ""}},
    {"after",
     [] {
       MPI_Finalize();
       MPI_Comm_size(MPI_COMM_WORLD, &number);
     },
     {"tonari: rank 0: MPI_Comm_size failed", "after MPI_Finalize", "", ""}},
};

void check_child(const char* program, const Case& each) {
  const std::string command = "env -u TONARI_JOIN " + std::string(program) + " " + each.name + " 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  CHECK(pipe != nullptr);
  std::string printed;
  for (int byte = std::fgetc(pipe); byte != EOF; byte = std::fgetc(pipe)) printed.push_back(static_cast<char>(byte));
  const int status = ::pclose(pipe);
  for (const char* const part : each.parts) {
    if (printed.find(part) == std::string::npos) {
      std::fprintf(stderr, "%s: `%s` is missing in: %s\n", each.name, part, printed.c_str());
      std::exit(1);
    }
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 1) {
    std::fprintf(stderr, "%s: ended with %d: %s\n", each.name, status, printed.c_str());
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    for (const Case& each : cases) {
      if (std::strcmp(argv[1], each.name) != 0) continue;
      MPI_Init(&argc, &argv);
      each.fail();
    }
    return 0;  // nothing failed
  }
  for (const Case& each : cases) check_child(argv[0], each);
  MPI_Init(&argc, &argv);
  MPI_Finalize();
}
