#include "cli/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace tonari::cli {

void open_missing_descriptors() {
  for (int number = 0; number <= STDERR_FILENO; ++number) {
    // Output that has nowhere to go is an error. Lost messages on standard error are not.
    if (::fcntl(number, F_GETFD) < 0) ::open("/dev/null", number == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

std::string output_failure_text(int error) {
  const std::string cause = error == EBADF ? "it is closed" : std::generic_category().message(error);
  return "cannot write standard output: " + cause;
}

}  // namespace tonari::cli
