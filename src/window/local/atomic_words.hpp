#pragma once

#include <tonari/window_part.hpp>

// Operations on words of a window, which the inline calls of Window share with the library.
namespace tonari::window {

using detail::apply_to_word;
using detail::AtomicOperation;
using detail::AtomicWords;
using detail::copy_bytes;

/// Checks an operation from a peer or a descriptor: 4 or 8 bytes, and a known operation.
constexpr bool is_sane(const AtomicWords& words) noexcept {
  return (words.bytes == 4 || words.bytes == 8) && words.operation <= AtomicOperation::bit_xor;
}

}  // namespace tonari::window
