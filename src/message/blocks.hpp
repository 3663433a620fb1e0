#pragma once

#include "message/layout_cursor.hpp"

#include <tonari/layout.hpp>
#include <tonari/status.hpp>

#include <cstddef>
#include <span>

namespace tonari::message {

/// The data of a public layout. If the status is not ok (bounds or invalid), there are none.
struct CheckedBlocks {
  // Constructors, because GCC zeroes an aggregate of this size with a slow instruction first.
  explicit CheckedBlocks(Status refusal) noexcept : status(refusal), data(std::span<std::byte>()) {}
  template <class... Arguments>
  explicit CheckedBlocks(std::byte* memory, Arguments... arguments) noexcept
      : status(Status::ok), data(memory, arguments...) {}

  Status status;
  LayoutCursor data;
};

/// Checks a layout of a caller. `written`: data are received into it, so evenly spaced blocks may not overlap.
CheckedBlocks check(const detail::Blocks& blocks, bool written) noexcept;

}  // namespace tonari::message
