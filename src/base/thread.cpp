#include "base/thread.hpp"

#include "base/error.hpp"

#include <fmt/format.h>

#include <cerrno>

namespace tonari {

void throw_thread_error(int error, std::string_view what) {
  if (error == EPERM) {
    throw_system_error(
        error, fmt::format("starting {}: clone3", what),
        "let the sandbox's filter allow clone3, or refuse it with ENOSYS so that the C library uses clone");
  }
  throw_system_error(error, fmt::format("starting {}", what),
                     "raise the limit of addresses or of processes: see ulimit -v and ulimit -u");
}

}  // namespace tonari
