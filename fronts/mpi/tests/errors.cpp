// ranks: 1 2
#include "check.hpp"

#include <cstring>
#include <string>

// Error handlers: which one is called for which error, with which handle, and how long it lives.

namespace {

int calls = 0;
int last_code = 0;
MPI_Comm last_comm = MPI_COMM_NULL;
MPI_Session last_session = MPI_SESSION_NULL;

void note_comm(MPI_Comm* comm, int* code, ...) {
  ++calls;
  last_comm = *comm;
  last_code = *code;
}
void note_session(MPI_Session* session, int* code, ...) {
  ++calls;
  last_session = *session;
  last_code = *code;
}

std::string text_of_code(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = -1;
  CHECK_EQUAL(MPI_Error_string(code, text, &length), MPI_SUCCESS);
  CHECK_EQUAL(std::strlen(text), static_cast<std::size_t>(length));
  return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void returned_codes_have_texts() {
  CHECK_EQUAL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), MPI_SUCCESS);
  int size = 0;
  const int code = MPI_Comm_remote_size(MPI_COMM_WORLD, &size);
  CHECK_EQUAL(code, static_cast<int>(MPI_ERR_COMM));
  const std::string text = text_of_code(code);
  CHECK(has(text, "MPI_ERR_COMM"));
  CHECK(has(text, "MPI_Comm_remote_size on MPI_COMM_WORLD"));
  CHECK(has(text_of_code(MPI_ERR_TRUNCATE), "longer than the buffer"));  // no error of this thread

  CHECK_EQUAL(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Comm_size(MPI_COMM_NULL, &size), static_cast<int>(MPI_ERR_COMM));
  CHECK(has(text_of_code(MPI_ERR_COMM), "MPI_COMM_NULL"));
  CHECK_EQUAL(MPI_Comm_size(reinterpret_cast<MPI_Comm>(MPI_INT), &size), static_cast<int>(MPI_ERR_COMM));
  CHECK(has(text_of_code(MPI_ERR_COMM), "MPI_INT, a datatype"));
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  CHECK_EQUAL(MPI_Comm_size(reinterpret_cast<MPI_Comm>(info), &size), static_cast<int>(MPI_ERR_COMM));
  CHECK(has(text_of_code(MPI_ERR_COMM), "an info object"));
  CHECK_EQUAL(MPI_Comm_size(MPI_COMM_WORLD, nullptr), static_cast<int>(MPI_ERR_ARG));
  CHECK(has(text_of_code(MPI_ERR_ARG), "size is a null pointer"));
  MPI_Info_free(&info);
}

void handlers_of_the_program_get_the_handle() {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  CHECK_EQUAL(MPI_Comm_create_errhandler(note_comm, &handler), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler), MPI_SUCCESS);
  MPI_Errhandler mine = MPI_ERRHANDLER_NULL;
  CHECK_EQUAL(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &mine), MPI_SUCCESS);
  CHECK(mine == handler);
  // The communicator still has it after the program has freed both of its handles.
  CHECK_EQUAL(MPI_Errhandler_free(&mine), MPI_SUCCESS);
  CHECK(mine == MPI_ERRHANDLER_NULL);
  CHECK_EQUAL(MPI_Errhandler_free(&handler), MPI_SUCCESS);

  int size = 0;
  calls = 0;
  CHECK_EQUAL(MPI_Comm_remote_size(MPI_COMM_WORLD, &size), static_cast<int>(MPI_ERR_COMM));
  CHECK_EQUAL(calls, 1);
  CHECK(last_comm == MPI_COMM_WORLD);
  CHECK_EQUAL(last_code, static_cast<int>(MPI_ERR_COMM));

  CHECK_EQUAL(MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER), MPI_SUCCESS);
  CHECK_EQUAL(calls, 2);
  CHECK_EQUAL(last_code, static_cast<int>(MPI_ERR_OTHER));

  // Errors without an object go to MPI_COMM_SELF.
  MPI_Group group = MPI_GROUP_NULL;
  CHECK_EQUAL(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Group_size(group, &size), static_cast<int>(MPI_ERR_GROUP));
  CHECK_EQUAL(calls, 2);
  MPI_Comm_create_errhandler(note_comm, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  MPI_Errhandler_free(&handler);
  CHECK_EQUAL(MPI_Group_size(group, &size), static_cast<int>(MPI_ERR_GROUP));
  CHECK_EQUAL(calls, 3);
  CHECK(last_comm == MPI_COMM_SELF);
  CHECK_EQUAL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), MPI_SUCCESS);
}

void handlers_are_for_one_kind_of_object() {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  CHECK_EQUAL(MPI_Session_create_errhandler(note_session, &handler), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler), static_cast<int>(MPI_ERR_ERRHANDLER));
  CHECK_EQUAL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL), static_cast<int>(MPI_ERR_ERRHANDLER));

  MPI_Session session = MPI_SESSION_NULL;
  CHECK_EQUAL(MPI_Session_init(MPI_INFO_NULL, handler, &session), MPI_SUCCESS);
  MPI_Group group = MPI_GROUP_EMPTY;
  calls = 0;
  CHECK_EQUAL(MPI_Group_from_session_pset(session, "mpi://nothing", &group), static_cast<int>(MPI_ERR_ARG));
  CHECK(group == MPI_GROUP_NULL);
  CHECK_EQUAL(calls, 1);
  CHECK(last_session == session);
  CHECK_EQUAL(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN), MPI_SUCCESS);
  MPI_Errhandler now = MPI_ERRHANDLER_NULL;
  CHECK_EQUAL(MPI_Session_get_errhandler(session, &now), MPI_SUCCESS);
  CHECK(now == MPI_ERRORS_RETURN);
  CHECK_EQUAL(MPI_Errhandler_free(&now), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Session_call_errhandler(session, MPI_ERR_OTHER), MPI_SUCCESS);
  CHECK_EQUAL(calls, 1);
  MPI_Session_finalize(&session);

  // An error of MPI_Session_init goes to its error handler.
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "thread_level", "many");
  CHECK_EQUAL(MPI_Session_init(info, handler, &session), static_cast<int>(MPI_ERR_INFO_VALUE));
  CHECK_EQUAL(calls, 2);
  CHECK(last_session == MPI_SESSION_NULL);
  MPI_Info_free(&info);
  MPI_Errhandler_free(&handler);
  CHECK_EQUAL(MPI_Errhandler_free(&handler), static_cast<int>(MPI_ERR_ERRHANDLER));
  CHECK_EQUAL(MPI_Comm_create_errhandler(nullptr, &handler), static_cast<int>(MPI_ERR_ARG));
}

void the_null_file_has_a_handler() {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  CHECK_EQUAL(MPI_File_get_errhandler(MPI_FILE_NULL, &handler), MPI_SUCCESS);
  CHECK(handler == MPI_ERRORS_RETURN);
  CHECK_EQUAL(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL), MPI_SUCCESS);
  MPI_File_get_errhandler(MPI_FILE_NULL, &handler);
  CHECK(handler == MPI_ERRORS_ARE_FATAL);
  CHECK_EQUAL(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Win_set_errhandler(MPI_WIN_NULL, MPI_ERRORS_RETURN), static_cast<int>(MPI_ERR_WIN));
}

void predefined_handlers_can_be_freed() {
  for (int i = 0; i < 1000; ++i) {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    CHECK(handler == MPI_ERRORS_RETURN);
    CHECK_EQUAL(MPI_Errhandler_free(&handler), MPI_SUCCESS);
  }
}

// mpi4py does this.
void a_communicator_that_is_being_made_takes_a_handler() {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
  CHECK_EQUAL(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN), MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQUAL(MPI_Send(nullptr, 0, MPI_INT, 1000, 0, made), MPI_ERR_RANK);
  MPI_Comm_free(&made);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  CHECK(handler == MPI_ERRORS_ARE_FATAL);
  returned_codes_have_texts();
  handlers_of_the_program_get_the_handle();
  handlers_are_for_one_kind_of_object();
  the_null_file_has_a_handler();
  predefined_handlers_can_be_freed();
  a_communicator_that_is_being_made_takes_a_handler();
  MPI_Finalize();
}
