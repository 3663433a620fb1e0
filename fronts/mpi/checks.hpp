#pragma once

#include "mpi/predefined.hpp"
#include "names.hpp"

#include <limits>

// Help for the generated entry points. Each function that reports an error returns what the entry point returns.
namespace tonari::mpi {

/// The object whose error handler is called for an error, or the error handler itself. Without one, the handler of
/// MPI_COMM_SELF is called.
class Holder {
 public:
  constexpr Holder() noexcept = default;
  explicit Holder(Comm* comm) noexcept : comm_(comm) {}
  explicit Holder(Win* win) noexcept : win_(win) {}
  explicit Holder(File* file) noexcept : file_(file) {}
  explicit Holder(Session* session) noexcept : session_(session) {}
  explicit Holder(Errhandler* errhandler) noexcept : errhandler_(errhandler) {}
  [[nodiscard]] Comm* comm() const noexcept { return comm_; }
  [[nodiscard]] Win* win() const noexcept { return win_; }
  [[nodiscard]] File* file() const noexcept { return file_; }
  [[nodiscard]] Session* session() const noexcept { return session_; }
  [[nodiscard]] Errhandler* errhandler() const noexcept { return errhandler_; }

 private:
  Comm* comm_ = nullptr;
  Win* win_ = nullptr;
  File* file_ = nullptr;
  Session* session_ = nullptr;
  Errhandler* errhandler_ = nullptr;
};

/// The function of MPI that the calling thread is in, for `tonari status`. Entry points that may wait set it.
inline thread_local Function current_function{};

/// Reports the exception that is being handled.
[[gnu::cold]] int raise(Function function, const Holder& holder) noexcept;
/// Reports an error by its code and a text that says cause and remedy.
[[gnu::cold]] int report(Function function, const Holder& holder, int code, const char* text) noexcept;

/// True between MPI_Init and MPI_Finalize, or while a session exists.
bool is_running() noexcept;
[[gnu::cold]] int not_running(Function function) noexcept;
[[gnu::cold]] int unsupported(Function function, const Holder& holder) noexcept;
[[gnu::cold]] int bad_number(Function function, const Holder& holder, int code, const char* argument, long long value,
                             const char* remedy) noexcept;
[[gnu::cold]] int bad_handle_number(Function function, const Holder& holder, const char* argument, const char* what,
                                    int code, std::uintptr_t handle) noexcept;
template <class Handle>
int bad_handle(Function function, const Holder& holder, const char* argument, const char* what, int code,
               Handle handle) noexcept {
  return bad_handle_number(function, holder, argument, what, code, number_of(handle));
}
[[gnu::cold]] int bad_type(Function function, const Holder& holder, const char* argument, MPI_Datatype type) noexcept;
[[gnu::cold]] int bad_rank(Function function, Comm& comm, const char* argument, int rank) noexcept;
inline int bad_count(Function function, const Holder& holder, const char* argument, MPI_Count count) noexcept {
  return bad_number(function, holder, MPI_ERR_COUNT, argument, count, "it must not be negative");
}
inline int bad_tag(Function function, const Holder& holder, const char* argument, int tag) noexcept {
  return bad_number(function, holder, MPI_ERR_TAG, argument, tag,
                    "a tag is from 0 to the value of the attribute MPI_TAG_UB; receives and probes also take "
                    "MPI_ANY_TAG");
}
[[gnu::cold]] int null_output(Function function, const Holder& holder, const char* argument) noexcept;
[[gnu::cold]] int null_text(Function function, const Holder& holder, const char* argument) noexcept;

/// A function that returns no error code and is not supported ends the job.
[[noreturn, gnu::cold]] void end_unsupported(Function function) noexcept;
template <class T>
T no_such_value(Function function) noexcept {
  end_unsupported(function);
}

/// A count that does not fit into the program's type becomes MPI_UNDEFINED.
template <class T>
T narrow(MPI_Count count) noexcept {
  return count > std::numeric_limits<T>::max() ? T{MPI_UNDEFINED} : static_cast<T>(count);
}

}  // namespace tonari::mpi
