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

/// Returns the bytes of the static variables of a program that is an ELF file: what it has in memory that can be
/// written when it starts, without its libraries. Returns 0 for scripts and for files that cannot be read.
std::uint64_t static_bytes_of(const std::string& path);

}  // namespace tonari::cli
