#pragma once

#include "fabric/transfer.hpp"
#include "message/layout_cursor.hpp"

#include <tonari/status.hpp>

#include <cstddef>
#include <cstdint>

// Copies between a layout of this rank and contiguous memory of another rank of its host: long runs directly, short
// ones packed in parts on the stack. They return what DirectCopy::read and write do.
namespace tonari::message {

/// Pack and unpack data bytes [offset, offset + bytes), as the cursor does. The contiguous memory is shared, and most
/// of its cache lines are in another core: they are fetched before they are needed, many at a time.
void pack_to_shared(LayoutCursor& data, std::size_t offset, std::byte* to, std::size_t bytes) noexcept;
void unpack_from_shared(LayoutCursor& data, std::size_t offset, const std::byte* from, std::size_t bytes) noexcept;

/// Copies data bytes [offset, offset + bytes) to the other rank's memory at `to`.
Status write_scattered(LayoutCursor& data, const fabric::DirectCopy& copy, std::size_t offset, std::uint64_t to,
                       std::size_t bytes) noexcept;
/// The same from the other rank's memory at `from`.
Status read_scattered(LayoutCursor& data, const fabric::DirectCopy& copy, std::size_t offset, std::uint64_t from,
                      std::size_t bytes) noexcept;

}  // namespace tonari::message
