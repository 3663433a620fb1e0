#pragma once

#include "job/identity.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

namespace tonari::share {

/// True if tonari was built with assertions: then mistakes of the program are detected and reported.
inline constexpr bool has_assertions =
#ifdef NDEBUG
    false;
#else
    true;
#endif

/// Ends the program with a message; returns in builds without assertions.
template <class... Arguments>
[[gnu::cold]] void name_misuse(int rank, fmt::format_string<Arguments...> what, Arguments&&... arguments) {
  if (!has_assertions) return;
  job::write_line(fmt::format("tonari: rank {}: {}", rank, fmt::format(what, std::forward<Arguments>(arguments)...)));
  std::abort();
}

/// Returns the object behind a handle of the program. Ends the program with a message if the handle was moved from.
template <class T>
T& used(const std::unique_ptr<T>& handle, std::string_view what) {
  if (has_assertions && handle == nullptr) [[unlikely]] {
    job::write_line(fmt::format("tonari: {} is used that was moved from", what));
    std::abort();
  }
  return *handle;
}

}  // namespace tonari::share
