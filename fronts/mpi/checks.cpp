#include "mpi/checks.hpp"

#include "mpi/failure.hpp"
#include "mpi/last_error.hpp"
#include "mpi/process.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>

namespace tonari::mpi {

namespace {

const char* name_of(Function function) noexcept { return function_names[static_cast<std::size_t>(function)]; }

// The error handler that hears of the holder's errors.
const Errhandler* handler_of(const Holder& holder) noexcept {
  if (holder.comm() != nullptr) return holder.comm()->errhandler.get();
  if (holder.win() != nullptr) return holder.win()->errhandler.get();
  if (holder.file() != nullptr) return holder.file()->errhandler.get();
  if (holder.session() != nullptr) return holder.session()->errhandler.get();
  const Comm* const self = find(MPI_COMM_SELF);
  return self != nullptr ? self->errhandler.get() : nullptr;
}

// Calls a handler of the program.
void call(const Errhandler& handler, const Holder& holder, int code) {
  switch (handler.kind) {
    case Errhandler::Kind::comm: {
      MPI_Comm comm = holder.comm() != nullptr ? handle_of(holder.comm()) : MPI_COMM_SELF;
      return handler.of_comm(&comm, &code);
    }
    case Errhandler::Kind::win: {
      MPI_Win win = holder.win();
      return handler.of_win(&win, &code);
    }
    case Errhandler::Kind::file: {
      MPI_File file = holder.file();
      return handler.of_file(&file, &code);
    }
    case Errhandler::Kind::session: {
      MPI_Session session = holder.session();
      return handler.of_session(&session, &code);
    }
    default: return;
  }
}

[[noreturn]] void end(Function function, const std::string& text) noexcept {
  const Process* const process = Process::current();
  const std::string who =
      process == nullptr ? "" : " on rank " + std::to_string(const_cast<Process*>(process)->job().rank().value());
  Process::abort(1, std::string("tonari: ") + name_of(function) + " failed" + who + ": " + text);
}

}  // namespace

int report(Function function, const Holder& holder, int code, const char* text) noexcept {
  remember_error(code, std::string(name_of(function)) + ": " + text);
  const Errhandler* const handler = handler_of(holder);
  if (handler == nullptr || handler->kind == Errhandler::Kind::fatal || handler->kind == Errhandler::Kind::abort) {
    end(function, text);
  }
  if (handler->kind != Errhandler::Kind::returns) call(*handler, holder, code);
  return code;
}

int raise(Function function, const Holder& holder) noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return report(function, holder, failure.code, failure.what());
  } catch (const std::bad_alloc&) {
    return report(function, holder, MPI_ERR_NO_MEM, "the system refused memory");
  } catch (const std::exception& error) {
    return report(function, holder, MPI_ERR_OTHER, error.what());
  }
}

bool is_running() noexcept { return Process::current() != nullptr; }

int not_running(Function function) noexcept {
  const bool is_after = Process::phase() == Process::Phase::after;
  end(function, is_after ? "it was called after MPI_Finalize" : "it was called before MPI_Init");
}

int unsupported(Function function, const Holder& holder) noexcept {
  return report(function, holder, MPI_ERR_UNSUPPORTED_OPERATION,
                "tonari's MPI does not support this function yet; `tonari info --mpi` lists what it does not support");
}

void end_unsupported(Function function) noexcept { end(function, "tonari's MPI does not support this function yet"); }

int bad_number(Function function, const Holder& holder, int code, const char* argument, long long value,
               const char* remedy) noexcept {
  return report(function, holder, code, fmt::format("{} is {}: {}", argument, value, remedy).c_str());
}

int bad_handle_number(Function function, const Holder& holder, const char* argument, const char* what, int code,
                      std::uintptr_t handle) noexcept {
  if (code == MPI_ERR_COMM && !is_running()) return not_running(function);
  return report(function, holder, code,
                fmt::format("{} ({:#x}) is no {}: it was freed, or never made", argument, handle, what).c_str());
}

int bad_type(Function function, const Holder& holder, const char* argument, MPI_Datatype type) noexcept {
  const Datatype* const found = find(type);
  if (found == nullptr) return bad_handle(function, holder, argument, "datatype", MPI_ERR_TYPE, type);
  return report(function, holder, MPI_ERR_TYPE,
                fmt::format("{} ({}) was not committed: call MPI_Type_commit first", argument,
                            found->name.empty() ? "a derived datatype" : found->name.c_str())
                    .c_str());
}

int bad_rank(Function function, Comm& comm, const char* argument, int rank) noexcept {
  return report(function, Holder(&comm), MPI_ERR_RANK,
                fmt::format("{} is {}: the ranks of {} are 0 to {}", argument, rank,
                            comm.name.empty() ? "this communicator" : comm.name.c_str(), comm.peers - 1)
                    .c_str());
}

int null_output(Function function, const Holder& holder, const char* argument) noexcept {
  return report(function, holder, MPI_ERR_ARG, fmt::format("{} is a null pointer", argument).c_str());
}

int null_text(Function function, const Holder& holder, const char* argument) noexcept {
  return null_output(function, holder, argument);
}

}  // namespace tonari::mpi
