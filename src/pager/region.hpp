#pragma once

#include "base/mapping.hpp"
#include "pager/residency.hpp"
#include "pager/source.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
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
/// What is known lies in tables of zeros, which take memory only where somebody has held a block: a region may be of
/// terabytes.
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
  [[nodiscard]] Contents contents() const noexcept { return contents_; }
  [[nodiscard]] bool contains(Address address) const noexcept { return address >= start_ && address < end(); }

  [[nodiscard]] std::size_t blocks() const noexcept { return count_; }
  [[nodiscard]] Block& block(std::size_t index) noexcept { return blocks_[index]; }
  [[nodiscard]] std::size_t block_at(Address address) const noexcept { return (address - base_) / block_bytes; }
  [[nodiscard]] Address address_of(std::size_t block) const noexcept { return base_ + block * block_bytes; }
  /// By whoever has got hold of the block, before anything else.
  void know(std::size_t index) noexcept {
    Block& block = blocks_[index];
    if (block.entry.region != nullptr) return;
    block.buffer = no_buffer;
    block.entry.region = this;
    block.entry.block = index;
    known_[index / 64].fetch_or(1ULL << index % 64, std::memory_order_relaxed);  // see next_known()
  }
  /// The first block at or after `index` that anybody ever held, or blocks(). Relaxed: one that is held for the first
  /// time just now may be passed over; whoever saw a page of it come was woken after it was known.
  [[nodiscard]] std::size_t next_known(std::size_t index) const noexcept;
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
  Contents contents_;
  std::size_t count_;
  Mapping block_memory_;
  Mapping known_memory_;
  Mapping checksum_memory_;
  Block* blocks_;                      // all bytes 0: free, and nothing known
  std::atomic<std::uint64_t>* known_;  // a bit a block
  Checksum* checksums_;                // all bytes 0: the page is zeros
};

}  // namespace tonari::pager
