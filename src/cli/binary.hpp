#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tonari::cli {

/// Returns why a preloaded library would not be loaded into the program at `path`: one sentence that begins with the
/// path. Empty if it would be loaded, or if that cannot be found out.
std::optional<std::string> why_not_preloaded(const std::string& path);

/// Returns whether the program would end at once if a library were loaded before its own ones. Programs that are built
/// with a sanitizer do.
bool insists_on_its_libraries(const std::string& path);

/// The static variables of a program, without its libraries.
struct Statics {
  std::uint64_t bytes = 0;          ///< The memory that can be written when it starts.
  std::uint64_t largest_bytes = 0;  ///< The size of the largest variable.
  bool has_symbols = false;         ///< The file was not stripped. If it was, only a few variables are known.
};

/// Returns zeros for scripts and for files that cannot be read.
Statics statics_of(const std::string& path);

}  // namespace tonari::cli
