#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace tonari::cli {

/// Writes to standard error. What nobody can read (a full disk, a reader that has gone) is dropped: it ends nothing,
/// and changes no exit status.
template <class... Values>
void say(fmt::format_string<Values...> format, Values&&... values) {
  const std::string text = fmt::format(format, std::forward<Values>(values)...);
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace tonari::cli
