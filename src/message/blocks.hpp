#pragma once

#include "message/layout_cursor.hpp"

#include <tonari/layout.hpp>
#include <tonari/status.hpp>

namespace tonari::message {

/// The data of a public layout. If the status is not ok (bounds or invalid), there are none.
struct CheckedBlocks {
  Status status = Status::ok;
  LayoutCursor data{std::span<std::byte>()};
};

/// Checks a layout of a caller. `written`: data are received into it, so evenly spaced blocks may not overlap.
CheckedBlocks check(const detail::Blocks& blocks, bool written) noexcept;

}  // namespace tonari::message
