#include "base/error.hpp"

#include <tonari/status.hpp>

#include <cerrno>
#include <string>
#include <system_error>

namespace tonari {

void throw_system_error(int error, std::string_view what, std::string_view remedy) {
  std::string text{what};
  text += ": " + std::generic_category().message(error);
  if (!remedy.empty()) text.append("; ").append(remedy);
  throw SetupError(text);
}

void throw_system_error(std::string_view what, std::string_view remedy) { throw_system_error(errno, what, remedy); }

}  // namespace tonari
