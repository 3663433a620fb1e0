#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

namespace tonari::mpi {

/// Copies a text, cut off if need be, into a program's array of `room` characters. Writes its length without the zero.
inline void give_text(std::string_view text, char* to, std::size_t room, int* length) noexcept {
  const std::size_t fits = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), fits);
  to[fits] = '\0';
  *length = static_cast<int>(fits);
}

}  // namespace tonari::mpi
