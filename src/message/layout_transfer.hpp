#pragma once

#include "fabric/transfer.hpp"
#include "message/layout_cursor.hpp"

#include <tonari/status.hpp>

#include <cstddef>
#include <cstdint>

// Copies between a layout of this rank and contiguous memory of another rank of its host: long runs directly, short
// ones packed in parts on the stack. They return what DirectCopy::read and write do.
namespace tonari::message {

/// Copies data bytes [offset, offset + bytes) to the other rank's memory at `to`.
Status write_scattered(LayoutCursor& data, const fabric::DirectCopy& copy, std::size_t offset, std::uint64_t to,
                       std::size_t bytes) noexcept;
/// The same from the other rank's memory at `from`.
Status read_scattered(LayoutCursor& data, const fabric::DirectCopy& copy, std::size_t offset, std::uint64_t from,
                      std::size_t bytes) noexcept;

}  // namespace tonari::message
