#pragma once

#include "message/layout_transfer.hpp"
#include "message/operation.hpp"

#include <cstddef>
#include <cstring>

// Copies between the user's data, which only the owning thread of an operation touches, and shared memory.
namespace tonari::message {

/// Copies bytes [offset, offset + bytes) of the payload.
inline void copy_out(Operation& operation, std::size_t offset, std::byte* to, std::size_t bytes) noexcept {
  if (operation.scattered != nullptr) [[unlikely]] {
    pack_to_shared(*operation.scattered, offset, to, bytes);
  } else {
    std::memcpy(to, operation.call.buffer.data() + offset, bytes);
  }
}

/// Copies arrived data to bytes [offset, offset + bytes) of the user's buffer.
inline void copy_in(Operation& operation, std::size_t offset, const std::byte* from, std::size_t bytes) noexcept {
  if (operation.scattered != nullptr) [[unlikely]] {
    unpack_from_shared(*operation.scattered, offset, from, bytes);
  } else if (bytes != 0) {
    std::memcpy(operation.call.buffer.data() + offset, from, bytes);
  }
}

}  // namespace tonari::message
