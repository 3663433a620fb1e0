#pragma once

#include <tonari/layout.hpp>
#include <tonari/status.hpp>

#include <cstddef>

namespace tonari::message {

/// What is known of a layout before anything is copied.
struct Extent {
  Status status = Status::ok;  ///< Or bounds, or invalid; then nothing else is said.
  std::size_t bytes = 0;
  /// The blocks lie one behind the other, from `first` on.
  bool contiguous = false;
  std::byte* first = nullptr;
};

/// `written`: it is to be received into, so evenly spaced blocks may not overlap.
Extent measure(const detail::Blocks& blocks, bool written) noexcept;

/// Payload that has gaps on one side only is copied straight to or from the other by so many bytes at a time.
inline constexpr std::size_t packed_bytes_max = 32 * 1024;

/// The user's data of an operation that lie in several places, as if they were one buffer. By the asker alone.
class Scattered {
 public:
  explicit Scattered(const detail::Blocks& blocks) noexcept : blocks_(blocks) {}

  /// Copies bytes [offset, offset + bytes) out of or into the blocks. Cheap when it goes on where the last one ended.
  void pack(std::size_t offset, std::byte* to, std::size_t bytes) noexcept;
  void unpack(std::size_t offset, const std::byte* from, std::size_t bytes) noexcept;

 private:
  template <class Way>
  void move_spaced(std::size_t offset, typename Way::Pointer packed, std::size_t bytes) const noexcept;
  template <class Way>
  void move_listed(std::size_t offset, typename Way::Pointer packed, std::size_t bytes) noexcept;

  detail::Blocks blocks_;
  // Where the last copy in a list ended.
  std::size_t offset_ = 0;
  const Block* block_ = blocks_.listed;
  std::size_t within_ = 0;  // bytes of *block_ before offset_
};

}  // namespace tonari::message
