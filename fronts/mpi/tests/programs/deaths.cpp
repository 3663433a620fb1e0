#include <mpi.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// Rank 1 of 3 ends in the middle of a call of the others, as deaths.py says. Usage: deaths ENDING CALL HANDLER
//   ENDING   how rank 1 ends: killed (by the script), abort, exit, return, finalize
//   CALL     what the others do meanwhile
//   HANDLER  the error handler of MPI_COMM_WORLD: fatal, return, user

namespace {

constexpr int victim = 1;
constexpr int survivors[] = {0, 2};
int rank = 0;
int handled = 0;  // calls of the user's handler

void say(const char* what, const std::string& text = "") {
  std::printf("rank %d %s%s\n", rank, what, text.c_str());
  std::fflush(stdout);
}

int number = 0;
std::vector<int> many(300'000);

struct Call {
  const char* name;
  int (*make)();
};

int wait_for(MPI_Request request) { return MPI_Wait(&request, MPI_STATUS_IGNORE); }

const Call calls[] = {
    {"recv", [] { return MPI_Recv(&number, 1, MPI_INT, victim, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }},
    {"any", [] { return MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }},
    {"ssend", [] { return MPI_Ssend(&number, 1, MPI_INT, victim, 0, MPI_COMM_WORLD); }},
    {"send", [] { return MPI_Send(many.data(), static_cast<int>(many.size()), MPI_INT, victim, 0, MPI_COMM_WORLD); }},
    {"sendrecv",
     [] {
       return MPI_Sendrecv(&number, 1, MPI_INT, victim, 0, many.data(), 1, MPI_INT, victim, 0, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE);
     }},
    {"probe", [] { return MPI_Probe(victim, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }},
    {"mprobe",
     [] {
       MPI_Message message = MPI_MESSAGE_NULL;
       return MPI_Mprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
     }},
    {"waitany",
     [] {
       MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
       int which = -1;
       MPI_Irecv(&number, 1, MPI_INT, survivors[rank == 0 ? 1 : 0], 7, MPI_COMM_WORLD, &requests[0]);
       MPI_Irecv(many.data(), 1, MPI_INT, victim, 0, MPI_COMM_WORLD, &requests[1]);
       const int code = MPI_Waitany(2, requests, &which, MPI_STATUS_IGNORE);
       MPI_Cancel(&requests[0]);
       MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
       return which == 1 ? code : MPI_ERR_OTHER;
     }},
    {"waitall",  // the message of the other survivor arrives
     [] {
       const int other = survivors[rank == 0 ? 1 : 0];
       MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
       MPI_Status statuses[3];
       int got = -1;
       MPI_Irecv(&got, 1, MPI_INT, other, 7, MPI_COMM_WORLD, &requests[0]);
       MPI_Irecv(many.data(), 1, MPI_INT, victim, 0, MPI_COMM_WORLD, &requests[1]);
       MPI_Isend(&rank, 1, MPI_INT, other, 7, MPI_COMM_WORLD, &requests[2]);
       const int code = MPI_Waitall(3, requests, statuses);
       const bool others_are_fine =
           got == other && statuses[0].MPI_ERROR == MPI_SUCCESS && statuses[2].MPI_ERROR == MPI_SUCCESS;
       return code == MPI_ERR_IN_STATUS && others_are_fine ? statuses[1].MPI_ERROR : MPI_ERR_OTHER;
     }},
    {"persistent",
     [] {
       MPI_Request request = MPI_REQUEST_NULL;
       MPI_Recv_init(&number, 1, MPI_INT, victim, 0, MPI_COMM_WORLD, &request);
       MPI_Start(&request);
       const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
       MPI_Request_free(&request);
       return code;
     }},
    {"partitioned",
     [] {
       MPI_Request request = MPI_REQUEST_NULL;
       MPI_Precv_init(many.data(), 4, 10, MPI_INT, victim, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
       MPI_Start(&request);
       const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
       MPI_Request_free(&request);
       return code;
     }},
    {"barrier", [] { return MPI_Barrier(MPI_COMM_WORLD); }},
    {"allreduce",
     [] {
       return MPI_Allreduce(MPI_IN_PLACE, many.data(), static_cast<int>(many.size()), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
     }},
    {"ialltoall",
     [] {
       std::vector<int> received(many.size());
       MPI_Request request = MPI_REQUEST_NULL;
       MPI_Ialltoall(many.data(), 100'000, MPI_INT, received.data(), 100'000, MPI_INT, MPI_COMM_WORLD, &request);
       return wait_for(request);
     }},
    {"bcast", [] { return MPI_Bcast(&number, 1, MPI_INT, victim, MPI_COMM_WORLD); }},
    {"split",
     [] {
       MPI_Comm made = MPI_COMM_NULL;
       return MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &made);
     }},
    {"idup",  // may succeed without the dead rank; then a collective on the new communicator does not
     [] {
       static MPI_Comm made = MPI_COMM_NULL;  // is never freed: static, so that it is no leak
       MPI_Request request = MPI_REQUEST_NULL;
       MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
       const int code = wait_for(request);
       return code == MPI_SUCCESS ? MPI_Barrier(made) : code;
     }},
    {"finalize", [] { return MPI_Finalize(); }},
};

[[noreturn]] void fail(const char* what) {
  say("failed: ", what);
  MPI_Abort(MPI_COMM_WORLD, 99);
  std::abort();
}

void require(bool is_true, const char* what) {
  if (!is_true) fail(what);
}

// Calls that do not involve the dead rank work as before; new ones that do fail at once.
void go_on() {
  const int other = survivors[rank == 0 ? 1 : 0];
  for (int i = 0; i < 100; ++i) {
    int got = -1;
    require(MPI_Sendrecv(&i, 1, MPI_INT, other, 8, &got, 1, MPI_INT, other, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
                    MPI_SUCCESS &&
                got == i,
            "messages between survivors");
  }
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group living = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 2, survivors, &living);
  require(MPI_Comm_create_group(MPI_COMM_WORLD, living, 0, &comm) == MPI_SUCCESS, "a communicator of the survivors");
  int sum = 0;
  require(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == 2,
          "a collective of the survivors");
  MPI_Comm_free(&comm);
  MPI_Group_free(&all);
  MPI_Group_free(&living);
  int code = MPI_Recv(&number, 1, MPI_INT, victim, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  require(code == MPI_ERR_PROC_ABORTED, "a later receive");
}

[[noreturn]] void end_as(const std::string& ending) {
  if (ending == "killed") {
    for (;;) ::pause();
  }
  if (ending == "abort") MPI_Abort(MPI_COMM_WORLD, 7);
  if (ending == "exit") std::exit(3);
  if (ending == "finalize") MPI_Finalize();
  std::exit(0);  // as by returning from main
}

int call_of_handler = 0;
void user_handler(MPI_Comm*, int* code, ...) {
  ++handled;
  call_of_handler = *code;
}

void set_handler(const std::string& name) {
  if (name == "return") MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (name != "user") return;
  MPI_Errhandler made = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(user_handler, &made);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, made);
  MPI_Errhandler_free(&made);
}

int make_call(const std::string& name) {
  for (const Call& each : calls) {
    if (name == each.name) return each.make();
  }
  fail("no such call");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string ending = argv[1];
  const std::string handler = argv[3];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::printf("%d is %d\n", rank, static_cast<int>(::getpid()));
  set_handler(handler);
  // Connects all ranks with each other: UCX 1.13 aborts a rank now and then whose peer dies while the two connect (its
  // pull request 8175).
  int sent[3] = {};
  int received[3] = {};
  MPI_Alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, MPI_COMM_WORLD);
  say("is ready");
  if (rank == victim) end_as(ending);

  const int code = make_call(argv[2]);
  if (std::strcmp(argv[2], "finalize") == 0) {
    say("left");
    return code;
  }
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  say("saw ", text);
  require(code == MPI_ERR_PROC_ABORTED, "the error code");
  if (handler == "user")
    require(handled == 1 && (call_of_handler == code || call_of_handler == MPI_ERR_IN_STATUS), "the handler's call");
  go_on();
  say("went on");
  MPI_Finalize();
  say("left");
}
