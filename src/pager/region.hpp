#pragma once

#include "base/mapping.hpp"
#include "pager/residency.hpp"
#include "pager/source.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tonari::pager {

/// What the bytes of a region are before anybody has written them.
enum class Contents : std::uint8_t {
  zeros,      ///< Zeros: the source is not asked for them.
  at_source,  ///< What the source has.
};

/// A range of addresses whose pages may be absent, with what is known of them. Blocks are aligned as huge pages are, so
/// that the first and the last may have pages that are not the region's.
///
/// Threads: see Block; `users` counts who works on it, and it goes only when nobody does.
class Region {
 public:
  /// Whole pages. Throws SetupError.
  Region(Address start, std::size_t bytes, Source& source, Contents contents);

  [[nodiscard]] Address start() const noexcept { return start_; }
  [[nodiscard]] Address end() const noexcept { return start_ + bytes_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Source& source() const noexcept { return source_; }
  [[nodiscard]] bool contains(Address address) const noexcept { return address >= start_ && address < end(); }

  [[nodiscard]] std::size_t blocks() const noexcept { return count_; }
  [[nodiscard]] Block& block(std::size_t index) noexcept { return blocks_[index]; }
  [[nodiscard]] std::size_t block_at(Address address) const noexcept { return (address - base_) / block_bytes; }
  [[nodiscard]] Address address_of(std::size_t block) const noexcept { return base_ + block * block_bytes; }
  /// Those pages of a block that are the region's.
  [[nodiscard]] PageSet valid(std::size_t block) const noexcept;
  /// Of a page, in the source.
  [[nodiscard]] std::uint64_t place(std::size_t block, std::size_t page) const noexcept {
    return address_of(block) + page * page_bytes - start_;
  }
  /// Of `count` pages as they are at the source. By the holder of the block.
  [[nodiscard]] std::span<Checksum> checksums(std::size_t block, std::size_t page, std::size_t count) noexcept {
    return {checksums_ + place(block, page) / page_bytes, count};
  }

  std::atomic<std::uint32_t> users{0};  // release when one leaves: what it did comes before the region goes
  std::atomic<bool> leaves{false};      // relaxed: who sees it late has begun before, and is waited for

 private:
  Address start_;
  std::size_t bytes_;
  Address base_;
  Source& source_;
  std::size_t count_;
  std::unique_ptr<Block[]> blocks_;
  Mapping checksum_memory_;  // of zeros, which say that all pages are
  Checksum* checksums_;
};

}  // namespace tonari::pager
