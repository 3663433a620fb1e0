#include "mpi/environment/handle_names.hpp"

#include "mpi/environment/object_names.hpp"
#include "mpi/message.hpp"
#include "mpi/predefined.hpp"
#include "mpi/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace tonari::mpi {

namespace {

struct Named {
  std::uintptr_t number;
  std::string_view name;
};
const std::array named{
    Named{number_of(MPI_OP_NULL), "MPI_OP_NULL"},
    Named{number_of(MPI_COMM_NULL), "MPI_COMM_NULL"},
    Named{number_of(MPI_COMM_WORLD), "MPI_COMM_WORLD, a communicator"},
    Named{number_of(MPI_COMM_SELF), "MPI_COMM_SELF, a communicator"},
    Named{number_of(MPI_GROUP_NULL), "MPI_GROUP_NULL"},
    Named{number_of(MPI_GROUP_EMPTY), "MPI_GROUP_EMPTY, a group"},
    Named{number_of(MPI_WIN_NULL), "MPI_WIN_NULL"},
    Named{number_of(MPI_FILE_NULL), "MPI_FILE_NULL"},
    Named{number_of(MPI_SESSION_NULL), "MPI_SESSION_NULL"},
    Named{number_of(MPI_MESSAGE_NULL), "MPI_MESSAGE_NULL"},
    Named{number_of(MPI_MESSAGE_NO_PROC), "MPI_MESSAGE_NO_PROC"},
    Named{number_of(MPI_INFO_NULL), "MPI_INFO_NULL"},
    Named{number_of(MPI_INFO_ENV), "MPI_INFO_ENV, an info object"},
    Named{number_of(MPI_ERRHANDLER_NULL), "MPI_ERRHANDLER_NULL"},
    Named{number_of(MPI_ERRORS_ARE_FATAL), "MPI_ERRORS_ARE_FATAL, an error handler"},
    Named{number_of(MPI_ERRORS_ABORT), "MPI_ERRORS_ABORT, an error handler"},
    Named{number_of(MPI_ERRORS_RETURN), "MPI_ERRORS_RETURN, an error handler"},
    Named{number_of(MPI_REQUEST_NULL), "MPI_REQUEST_NULL"},
    Named{number_of(MPI_DATATYPE_NULL), "MPI_DATATYPE_NULL"},
};

// Returns what the object at this address is. Empty if it is none.
std::string_view kind_at(std::uintptr_t address) noexcept {
  switch (reinterpret_cast<const Object*>(address)->magic) {
    case Comm::word: return "a communicator";
    case Datatype::word: return "a datatype";
    case Group::word: return "a group";
    case Op::word: return "an operation";
    case Info::word: return "an info object";
    case Errhandler::word: return "an error handler";
    case Session::word: return "a session";
    case Win::word: return "a window";
    case File::word: return "a file";
    case Request::word: return "a request";
    case Message::word: return "a message";
    default: return {};
  }
}

}  // namespace

std::string wrong_handle_text(std::string_view argument, std::string_view what, std::uintptr_t handle) {
  const bool begins_with_vowel = std::string_view("aeiou").find(what.front()) != std::string_view::npos;
  const std::string_view how_ended = what == "request"   ? "completed or freed"
                                     : what == "message" ? "received"
                                     : what == "session" ? "finalised"
                                                         : "freed";
  return fmt::format("{} must be {} {}, but it is {}", argument, begins_with_vowel ? "an" : "a", what,
                     describe_handle(handle, how_ended));
}

std::string describe_handle(std::uintptr_t handle, std::string_view how_ended) {
  if (handle == 0) return "0: the variable was never set";
  if (handle >= first_address) {
    const std::string_view kind = kind_at(handle);
    return kind.empty() ? fmt::format("{:#x}, which was {}, or never made", handle, how_ended)
                        : fmt::format("{:#x}, which is {}", handle, kind);
  }
  if (const auto found = std::ranges::find(named, handle, &Named::number); found != named.end()) {
    return std::string(found->name);
  }
  if (const Datatype* const type = find(reinterpret_cast<MPI_Datatype>(handle)); type != nullptr) {
    return name_of(*type) + ", a datatype";
  }
  if (find(reinterpret_cast<MPI_Op>(handle)) != nullptr) return "an operation";
  return fmt::format("{:#x}, which is no handle", handle);
}

}  // namespace tonari::mpi
