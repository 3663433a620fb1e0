#pragma once

#include "message/layout_cursor.hpp"

#include <cstddef>
#include <functional>
#include <span>

namespace tonari::message {

/// Data of this rank that one message of a collective carries.
using Part = LayoutCursor;

/// Returns the part that goes to a rank, or comes from it.
using Parts = std::function<Part(int rank)>;

/// A part that is only sent.
inline Part sent_part(std::span<const std::byte> bytes) noexcept {
  return Part({const_cast<std::byte*>(bytes.data()), bytes.size()});
}

}  // namespace tonari::message
