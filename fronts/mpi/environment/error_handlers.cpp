#include "mpi/environment/error_handlers.hpp"

#include "mpi/environment/error_codes.hpp"
#include "mpi/environment/object_names.hpp"
#include "mpi/failure.hpp"
#include "mpi/process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

namespace tonari::mpi {

namespace {

constinit std::mutex handlers;  // every error_handler of every object

struct Initial {
  const char* name;
  MPI_Errhandler handler;
};
constexpr const char* initial_variable = "TONARI_MPI_INITIAL_ERRHANDLER";

// Returns null if the name is wrong.
const Initial* find_initial() noexcept {
  static const Initial all[] = {{"mpi_errors_are_fatal", MPI_ERRORS_ARE_FATAL},
                                {"mpi_errors_abort", MPI_ERRORS_ABORT},
                                {"mpi_errors_return", MPI_ERRORS_RETURN}};
  const char* const name = std::getenv(initial_variable);
  if (name == nullptr) return &all[0];
  const auto* const found = std::ranges::find(all, std::string_view(name), &Initial::name);
  return found != std::ranges::end(all) ? found : nullptr;
}

Ref<Errhandler> handler_of(const Holder& holder) noexcept {
  if (holder.comm() != nullptr) return error_handler(holder.comm()->errhandler);
  if (holder.win() != nullptr) return error_handler(holder.win()->errhandler);
  if (holder.file() != nullptr) return error_handler(holder.file()->errhandler);
  if (holder.session() != nullptr) return error_handler(holder.session()->errhandler);
  if (holder.errhandler() != nullptr) return Ref(holder.errhandler());
  const Comm* const self = find(MPI_COMM_SELF);
  return self != nullptr ? error_handler(self->errhandler) : initial_error_handler();
}

// Calls a function of the program. A holder of another kind, or none, is the null handle.
void call(const Errhandler& handler, const Holder& holder, int code) {
  switch (handler.kind) {
    case Errhandler::Kind::comm: {
      const bool is_self = holder.comm() == nullptr && holder.errhandler() == nullptr;
      MPI_Comm comm = is_self ? MPI_COMM_SELF : holder.comm() != nullptr ? handle_of(holder.comm()) : MPI_COMM_NULL;
      return handler.of_comm(&comm, &code);
    }
    case Errhandler::Kind::win: {
      MPI_Win win = holder.win() != nullptr ? holder.win() : MPI_WIN_NULL;
      return handler.of_win(&win, &code);
    }
    case Errhandler::Kind::file: {
      const bool is_null = holder.file() == nullptr || holder.file() == predefined.no_file;
      MPI_File file = is_null ? MPI_FILE_NULL : holder.file();
      return handler.of_file(&file, &code);
    }
    case Errhandler::Kind::session: {
      MPI_Session session = holder.session() != nullptr ? holder.session() : MPI_SESSION_NULL;
      return handler.of_session(&session, &code);
    }
    default: return;
  }
}

// "the error handler of MPI_COMM_WORLD is MPI_ERRORS_ARE_FATAL"
std::string why_fatal(const Holder& holder, const Errhandler& handler) {
  const char* const name = handler.kind == Errhandler::Kind::abort ? "MPI_ERRORS_ABORT" : "MPI_ERRORS_ARE_FATAL";
  if (holder.comm() != nullptr) return fmt::format("the error handler of {} is {}", description(*holder.comm()), name);
  if (holder.win() != nullptr) return fmt::format("the window's error handler is {}", name);
  if (holder.file() != nullptr) return fmt::format("the file's error handler is {}", name);
  if (holder.session() != nullptr) return fmt::format("the session's error handler is {}", name);
  if (holder.errhandler() != nullptr) return fmt::format("the error handler is {}", name);
  if (find(MPI_COMM_SELF) == nullptr)
    return fmt::format("the error handler outside of MPI_Init and MPI_Finalize is {}", name);
  return fmt::format("the error handler of MPI_COMM_SELF, for calls without an object, is {}", name);
}

[[noreturn]] void end(Function function, const Holder& holder, const Errhandler& handler, int code,
                      const std::string& text) noexcept {
  std::string name(error_class_name(error_class_of(code)));
  if (name.empty()) name = fmt::format("error class {}", error_class_of(code));
  Process::abort(1, fmt::format("tonari: {}{} failed with {}: {}\n        (this ends the job, because {})", place(),
                                call_text(function, holder), name, text, why_fatal(holder, handler)));
}

}  // namespace

Ref<Errhandler> error_handler(const Ref<Errhandler>& slot) noexcept {
  const std::lock_guard guard(handlers);
  return slot;
}

void set_error_handler(Ref<Errhandler>& slot, Ref<Errhandler> handler) noexcept {
  const std::lock_guard guard(handlers);
  slot = std::move(handler);
}

Ref<Errhandler> initial_error_handler() noexcept {
  const Initial* const initial = find_initial();
  return Ref(find(initial != nullptr ? initial->handler : MPI_ERRORS_ARE_FATAL));
}

const char* initial_error_handler_name() {
  if (const Initial* const initial = find_initial()) return initial->name;
  throw Failure(MPI_ERR_ARG, fmt::format("the initial error handler is {} ({}): it must be mpi_errors_are_fatal, "
                                         "mpi_errors_abort or mpi_errors_return",
                                         std::getenv(initial_variable), initial_variable));
}

void set_error_handler(Comm& comm, Errhandler& handler) noexcept {
  const bool ends_job = handler.kind == Errhandler::Kind::fatal || handler.kind == Errhandler::Kind::abort;
  // A communicator that MPI_Comm_idup is still making has no context yet, and may have others.
  const bool has_others = comm.context == nullptr || comm.size() > 1 || comm.is_inter;
  if (!ends_job && has_others) Process::current()->job().session().outlive_deaths();
  set_error_handler(comm.errhandler, Ref(&handler));
}

void handle_error(Function function, const Holder& holder, int code, const std::string& text) noexcept {
  const Ref<Errhandler> handler = handler_of(holder);
  switch (handler->kind) {
    case Errhandler::Kind::returns: return;
    case Errhandler::Kind::fatal:
    case Errhandler::Kind::abort: end(function, holder, *handler, code, text);
    default: call(*handler, holder, code);
  }
}

std::string call_text(Function function, const Holder& holder) {
  const std::string name = function_names[static_cast<std::size_t>(function)];
  return holder.comm() != nullptr ? name + " on " + description(*holder.comm()) : name;
}

std::string place() {
  if (Process* const process = Process::current()) {
    return fmt::format("rank {} on {}: ", process->job().rank().value(), process->job().host_name());
  }
  for (const char* const name : {"TONARI_RANK", "PMIX_RANK"}) {  // before MPI_Init and after MPI_Finalize
    if (const char* const rank = std::getenv(name)) return fmt::format("rank {}: ", rank);
  }
  return "";
}

void end_job(Function function, const std::string& text) noexcept {
  Process::abort(1, fmt::format("tonari: {}{} failed: {}", place(), call_text(function, Holder()), text));
}

}  // namespace tonari::mpi
