#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace tonari::cli {

/// Writes to standard error. A failure to write (a full disk, a closed pipe) is ignored: it changes no exit status.
template <class... Values>
void print_stderr(fmt::format_string<Values...> format, Values&&... values) {
  const std::string text = fmt::format(format, std::forward<Values>(values)...);
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

/// Opens /dev/null for each of descriptors 0 to 2 that this process was started without, so that no file opened later
/// takes its number. Writing to standard output still fails then, with EBADF.
void open_missing_descriptors();

/// "cannot write standard output: No space left on device", for the error of a write to it.
std::string output_failure_text(int error);

}  // namespace tonari::cli
