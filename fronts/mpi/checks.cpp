#include "mpi/checks.hpp"

#include "mpi/environment/error_handlers.hpp"
#include "mpi/environment/handle_names.hpp"
#include "mpi/environment/object_names.hpp"
#include "mpi/failure.hpp"
#include "mpi/last_error.hpp"
#include "mpi/process.hpp"
#include "mpi/request.hpp"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

namespace tonari::mpi {

int report(Function function, const Holder& holder, int code, const char* text) noexcept {
  remember_error(code, call_text(function, holder) + ": " + text);
  handle_error(function, holder, code, text);
  return code;
}

int raise(Function function, const Holder& holder) noexcept {
  try {
    throw;
  } catch (const CommFailure& failure) {
    return report(function, failure.comm ? Holder(failure.comm.get()) : holder, failure.code, failure.what());
  } catch (const Failure& failure) {
    return report(function, holder, failure.code, failure.what());
  } catch (const std::bad_alloc&) {
    return report(function, holder, MPI_ERR_NO_MEM, "the system refused memory");
  } catch (const std::length_error&) {
    return report(function, holder, MPI_ERR_VALUE_TOO_LARGE,
                  "the data of a datatype or buffer, or the distances between them, are 2^63 bytes or more");
  } catch (const std::exception& error) {
    return report(function, holder, MPI_ERR_OTHER, error.what());
  }
}

bool is_running() noexcept { return Process::current() != nullptr; }

int not_running(Function function) noexcept {
  const bool is_after = Process::phase() == Process::Phase::after;
  return report(function, Holder(), MPI_ERR_OTHER,
                is_after ? "it was called after MPI_Finalize" : "it was called before MPI_Init");
}

int unsupported(Function function, const Holder& holder) noexcept {
  return report(function, holder, MPI_ERR_UNSUPPORTED_OPERATION,
                "tonari's MPI does not support this function yet; `tonari info --mpi` lists what it does not support");
}

void end_unsupported(Function function) noexcept {
  end_job(function, "tonari's MPI does not support this function yet");
}

int bad_number(Function function, const Holder& holder, int code, const char* argument, long long value,
               const char* remedy) noexcept {
  return report(function, holder, code, fmt::format("{} is {}: {}", argument, value, remedy).c_str());
}

int bad_handle_number(Function function, const Holder& holder, const char* argument, const char* what, int code,
                      std::uintptr_t handle) noexcept {
  if (code == MPI_ERR_COMM && !is_running()) return not_running(function);
  if (code == MPI_ERR_COMM && (handle == number_of(MPI_COMM_WORLD) || handle == number_of(MPI_COMM_SELF))) {
    return report(
        function, holder, code,
        fmt::format("{} is {}, which exists between MPI_Init and MPI_Finalize only; make communicators from a "
                    "session's groups with MPI_Comm_create_from_group",
                    argument, handle == number_of(MPI_COMM_WORLD) ? "MPI_COMM_WORLD" : "MPI_COMM_SELF")
            .c_str());
  }
  return report(function, holder, code, wrong_handle_text(argument, what, handle).c_str());
}

int bad_type(Function function, const Holder& holder, const char* argument, MPI_Datatype type) noexcept {
  const Datatype* const found = find(type);
  if (found == nullptr) return bad_handle(function, holder, argument, "datatype", MPI_ERR_TYPE, type);
  return report(
      function, holder, MPI_ERR_TYPE,
      found->is_absent
          ? fmt::format("{} is {}, which this platform does not have", argument, found->name).c_str()
          : fmt::format("{} is {}, which was not committed: call MPI_Type_commit first", argument, description(*found))
                .c_str());
}

int bad_rank(Function function, Comm& comm, const char* argument, int rank) noexcept {
  return report(
      function, Holder(&comm), MPI_ERR_RANK,
      fmt::format("{} is {}: the ranks of {} are 0 to {}", argument, rank, description(comm), comm.peers - 1).c_str());
}

int null_output(Function function, const Holder& holder, const char* argument) noexcept {
  return report(function, holder, MPI_ERR_ARG, fmt::format("{} is a null pointer", argument).c_str());
}

int null_text(Function function, const Holder& holder, const char* argument) noexcept {
  return null_output(function, holder, argument);
}

}  // namespace tonari::mpi
