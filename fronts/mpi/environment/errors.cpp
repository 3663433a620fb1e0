#include "functions.hpp"
#include "mpi/environment/error_codes.hpp"
#include "mpi/environment/error_handlers.hpp"
#include "mpi/environment/handle_names.hpp"
#include "mpi/last_error.hpp"
#include "mpi/text.hpp"

#include <fmt/format.h>

#include <string>

// Error handlers and the texts of errors.
namespace tonari::mpi {

namespace {

using Kind = Errhandler::Kind;

template <class CallBack>
Errhandler* make(Kind kind, CallBack* Errhandler::*member, CallBack* function, const char* argument) {
  if (function == nullptr) throw Failure(MPI_ERR_ARG, fmt::format("{} is a null pointer", argument));
  auto* const handler = new Errhandler(kind);
  handler->*member = function;
  return handler;
}

MPI_Errhandler predefined_handle(const Errhandler& handler) noexcept {
  switch (handler.kind) {
    case Kind::fatal: return MPI_ERRORS_ARE_FATAL;
    case Kind::abort: return MPI_ERRORS_ABORT;
    default: return MPI_ERRORS_RETURN;
  }
}

bool is_predefined(const Errhandler& handler) noexcept {
  return handler.kind == Kind::fatal || handler.kind == Kind::abort || handler.kind == Kind::returns;
}

void check_kind(const Errhandler& handler, Kind kind, const char* object) {
  if (handler.kind != kind && !is_predefined(handler)) {
    throw Failure(
        MPI_ERR_ERRHANDLER,
        fmt::format("errhandler was made for another kind of object: make it with MPI_{}_create_errhandler", object));
  }
}

void set(Ref<Errhandler>& slot, Errhandler& handler, Kind kind, const char* object) {
  check_kind(handler, kind, object);
  set_error_handler(slot, Ref(&handler));
}

// Returns a handle that the program frees: unless it is a number, it has a reference of its own.
MPI_Errhandler get(const Ref<Errhandler>& slot) noexcept {
  Ref<Errhandler> handler = error_handler(slot);
  return is_predefined(*handler) ? predefined_handle(*handler) : handler.take();
}

// Calls the error handler for MPI_X_call_errhandler. Programs pass codes of failed calls, and their own.
void call(Function function, const Holder& holder, int code) {
  std::string text = last_error(code);
  if (text.empty()) text = error_sentence(code);
  handle_error(function, holder, code, fmt::format("the program reported error {}: {}", code, text));
}

}  // namespace

void comm_create_errhandler(MPI_Comm_errhandler_function* comm_errhandler_fn, MPI_Errhandler* errhandler) {
  *errhandler = make(Kind::comm, &Errhandler::of_comm, comm_errhandler_fn, "comm_errhandler_fn");
}
void win_create_errhandler(MPI_Win_errhandler_function* win_errhandler_fn, MPI_Errhandler* errhandler) {
  *errhandler = make(Kind::win, &Errhandler::of_win, win_errhandler_fn, "win_errhandler_fn");
}
void file_create_errhandler(MPI_File_errhandler_function* file_errhandler_fn, MPI_Errhandler* errhandler) {
  *errhandler = make(Kind::file, &Errhandler::of_file, file_errhandler_fn, "file_errhandler_fn");
}
void session_create_errhandler(MPI_Session_errhandler_function* session_errhandler_fn, MPI_Errhandler* errhandler) {
  *errhandler = make(Kind::session, &Errhandler::of_session, session_errhandler_fn, "session_errhandler_fn");
}

void comm_set_errhandler(Comm& comm, Errhandler& errhandler) {
  check_kind(errhandler, Kind::comm, "Comm");
  set_error_handler(comm, errhandler);
}
void win_set_errhandler(Win& win, Errhandler& errhandler) { set(win.errhandler, errhandler, Kind::win, "Win"); }
void file_set_errhandler(File& file, Errhandler& errhandler) { set(file.errhandler, errhandler, Kind::file, "File"); }
void session_set_errhandler(Session& session, Errhandler& errhandler) {
  set(session.errhandler, errhandler, Kind::session, "Session");
}

void comm_get_errhandler(Comm& comm, MPI_Errhandler* errhandler) { *errhandler = get(comm.errhandler); }
void win_get_errhandler(Win& win, MPI_Errhandler* errhandler) { *errhandler = get(win.errhandler); }
void file_get_errhandler(File& file, MPI_Errhandler* errhandler) { *errhandler = get(file.errhandler); }
void session_get_errhandler(Session& session, MPI_Errhandler* errhandler) { *errhandler = get(session.errhandler); }

void comm_call_errhandler(Comm& comm, int errorcode) { call(Function::Comm_call_errhandler, Holder(&comm), errorcode); }
void win_call_errhandler(Win& win, int errorcode) { call(Function::Win_call_errhandler, Holder(&win), errorcode); }
void file_call_errhandler(File& fh, int errorcode) { call(Function::File_call_errhandler, Holder(&fh), errorcode); }
void session_call_errhandler(Session& session, int errorcode) {
  call(Function::Session_call_errhandler, Holder(&session), errorcode);
}

void errhandler_free(MPI_Errhandler* errhandler) {
  Errhandler* const handler = find(*errhandler);
  if (handler == nullptr) fail_handle(MPI_ERR_ERRHANDLER, "errhandler", "error handler", *errhandler);
  // Programs may free predefined handlers that MPI_Comm_get_errhandler returned.
  *errhandler = MPI_ERRHANDLER_NULL;
  if (!is_predefined(*handler)) Ref<Errhandler>::adopt(handler);
}

void error_class(int errorcode, int* errorclass) { *errorclass = error_class_of(errorcode); }

void error_string(int errorcode, char* string, int* resultlen) {
  // The text that a program gave its code says more than the last error with this code.
  std::string text = errorcode <= MPI_ERR_LASTCODE ? last_error(errorcode) : std::string();
  if (text.empty()) text = error_sentence(errorcode);
  const std::string_view name = error_class_name(errorcode);
  give_text(name.empty() ? text : fmt::format("{}: {}", name, text), string, MPI_MAX_ERROR_STRING, resultlen);
}

}  // namespace tonari::mpi
