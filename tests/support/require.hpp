#pragma once

#include <tonari/status.hpp>

#include <source_location>
#include <stdexcept>
#include <string>

namespace tonari::test {

/// Throws unless `condition` is true. For code that unit tests share with whole programs, which do not have GoogleTest.
inline void require(bool condition, const std::string& what,
                    const std::source_location& where = std::source_location::current()) {
  if (condition) return;
  throw std::runtime_error(std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": " + what);
}

inline void require_ok(Status status, const std::source_location& where = std::source_location::current()) {
  require(status == Status::ok, "returned " + std::string(to_string(status)), where);
}

}  // namespace tonari::test
