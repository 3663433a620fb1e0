#pragma once

#include <tonari/layout.hpp>
#include <tonari/status.hpp>

#include <cstddef>

namespace tonari::message {

/// The properties of a layout, before any data are copied.
struct Extent {
  Status status = Status::ok;  ///< If bounds or invalid, the other fields are not set.
  std::size_t bytes = 0;
  /// True if the blocks follow each other without gaps, from `first` on.
  bool contiguous = false;
  std::byte* first = nullptr;
};

/// Measures a layout. `written`: data are received into it, so evenly spaced blocks may not overlap.
Extent measure(const detail::Blocks& blocks, bool written) noexcept;

/// A payload that has gaps on one side only is copied directly to or from the other side in parts of this size.
inline constexpr std::size_t packed_bytes_max = 32 * 1024;

/// The user's data of an operation whose data are in several places, presented as one buffer. Used by the owning
/// thread only.
class Scattered {
 public:
  explicit Scattered(const detail::Blocks& blocks) noexcept : blocks_(blocks) {}

  /// Copy bytes [offset, offset + bytes) out of or into the blocks. Cheap if a copy starts where the last one ended.
  void pack(std::size_t offset, std::byte* to, std::size_t bytes) noexcept;
  void unpack(std::size_t offset, const std::byte* from, std::size_t bytes) noexcept;

 private:
  template <class Way>
  void move_spaced(std::size_t offset, typename Way::Pointer packed, std::size_t bytes) const noexcept;
  template <class Way>
  void move_listed(std::size_t offset, typename Way::Pointer packed, std::size_t bytes) noexcept;

  detail::Blocks blocks_;
  // The place where the last copy of listed blocks ended.
  std::size_t offset_ = 0;
  const Block* block_ = blocks_.listed;
  std::size_t within_ = 0;  // bytes of *block_ before offset_
};

}  // namespace tonari::message
