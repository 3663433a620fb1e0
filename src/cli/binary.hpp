#pragma once

#include <optional>
#include <string>

namespace tonari::cli {

/// Why the preload library would not get into a program, in one sentence that begins with its name; nothing when it
/// would, or when that cannot be told. `path`: of the file.
std::optional<std::string> why_not_preloaded(const std::string& path);

/// The program would end at once if a library were loaded before those that it is linked with: a sanitizer's is one.
bool insists_on_its_libraries(const std::string& path);

}  // namespace tonari::cli
