// ranks: 1
#include "check.hpp"

#include <cstdio>
#include <cstring>
#include <string>

// Exits without MPI_Finalize, with a session that is left over, and sessions after MPI_Finalize. This program starts
// itself again, alone.

namespace {

void begin_session() {
  static MPI_Session session = MPI_SESSION_NULL;  // is never finalised: static, so that it is no leak
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
}

std::string run(const char* program, const std::string& argument) {
  std::FILE* const pipe =
      ::popen(("env -u TONARI_JOIN " + std::string(program) + " " + argument + " 2>&1").c_str(), "r");
  CHECK(pipe != nullptr);
  std::string printed;
  for (int byte = std::fgetc(pipe); byte != EOF; byte = std::fgetc(pipe)) printed.push_back(static_cast<char>(byte));
  CHECK_EQUAL(::pclose(pipe), 0);
  return printed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    const std::string what = argv[1];
    if (what == "session") {
      begin_session();
      return 0;
    }
    MPI_Init(&argc, &argv);
    if (what == "world") return 0;
    if (what == "both") begin_session();
    MPI_Finalize();
    if (what == "again") begin_session();  // a process alone may join another job
    return 0;
  }
  CHECK_EQUAL(run(argv[0], "world"), std::string("tonari: rank 0 exits without MPI_Finalize\n"));
  CHECK_EQUAL(run(argv[0], "session"), std::string("tonari: rank 0 exits without MPI_Session_finalize\n"));
  CHECK_EQUAL(run(argv[0], "both"), std::string());
  CHECK_EQUAL(run(argv[0], "again"), std::string());
  MPI_Init(&argc, &argv);
  MPI_Finalize();

  MPI_Session session = MPI_SESSION_NULL;
  const int code = MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  CHECK_EQUAL(code, static_cast<int>(MPI_ERR_OTHER));  // `tonari run` started this process: it can join once
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  CHECK(std::strstr(text, "begin a session before it") != nullptr);
}
