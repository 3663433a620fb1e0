#pragma once

#include "base/mapping.hpp"
#include "pager/region_tables.hpp"
#include "pager/source.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::pager {

/// The contents of a region before its first write.
enum class Contents : std::uint8_t {
  zeros,      ///< Zeros, without asking the source.
  at_source,  ///< The source's contents.
};

/// A range of addresses whose pages may be absent, with the state of its blocks. Blocks are aligned as huge pages are,
/// so that the first and the last block may contain pages outside the region.
///
/// The state is in tables that start as zeros and take memory only for blocks that were held once: a region may have
/// terabytes.
///
/// Threads: see Block. `users` counts the threads that use the region. A thread becomes a user under the lock of
/// Regions, which finds only regions that are not being removed; under the lock of PageMover while `leaves` is false;
/// or while it is one already. So once the removal has taken both locks, a count of 0 stays 0.
class Region {
 public:
  /// The range must be whole pages. `tables` is zeroed memory of RegionTables::bytes_for() bytes, which outlives the
  /// region; if it is empty, the region has its own. Throws SetupError.
  Region(Address start, std::size_t bytes, Source& source, Contents contents, std::span<std::byte> tables = {});

  [[nodiscard]] Address start() const noexcept { return start_; }
  [[nodiscard]] Address end() const noexcept { return start_ + bytes_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Source& source() const noexcept { return source_; }
  [[nodiscard]] Contents contents() const noexcept { return contents_; }
  [[nodiscard]] bool contains(Address address) const noexcept { return address >= start_ && address < end(); }

  [[nodiscard]] std::size_t blocks() const noexcept { return count_; }
  [[nodiscard]] Block& block(std::size_t index) noexcept { return tables_.blocks()[index]; }
  [[nodiscard]] std::size_t block_at(Address address) const noexcept { return (address - base_) / block_bytes; }
  [[nodiscard]] Address address_of(std::size_t block) const noexcept { return base_ + block * block_bytes; }
  /// The holder of a block calls it before anything else.
  void know(std::size_t index) noexcept {
    Block& block = tables_.blocks()[index];
    if (block.entry.region != nullptr) return;
    block.buffer = no_buffer;
    block.entry.region = this;
    block.entry.block = index;
    known_[index / 64].fetch_or(1ULL << index % 64, std::memory_order_relaxed);  // relaxed: see next_known()
  }
  /// Returns the first block at or after `index` that was ever held, or blocks(). Relaxed: a block that is held for the
  /// first time just now may be missed. A thread that saw one of its pages was woken after the block was known.
  [[nodiscard]] std::size_t next_known(std::size_t index) const noexcept;
  /// Returns the pages of a block that belong to the region.
  [[nodiscard]] PageSet valid(std::size_t block) const noexcept;
  /// Returns the place of a page in the source.
  [[nodiscard]] std::uint64_t place(std::size_t block, std::size_t page) const noexcept {
    return address_of(block) + page * page_bytes - start_;
  }
  /// Returns the checksums of `count` pages as the source has them. The caller holds the block.
  [[nodiscard]] std::span<Checksum> checksums(std::size_t block, std::size_t page, std::size_t count) noexcept {
    return {tables_.checksums() + place(block, page) / page_bytes, count};
  }

  // release at the end of each use: all its effects come before the region is destroyed
  std::atomic<std::uint32_t> users{0};
  // Set under the lock of PageMover. Relaxed: a thread that reads it without that lock is a user already.
  std::atomic<bool> leaves{false};
  // Pages may be present that no block has in `here`. Nothing may drop or replace them, so no block comes or goes as a
  // whole. Relaxed: a thread that reads false holds a block, and sees all that was told of its pages before.
  std::atomic<bool> has_unknown_pages{false};

 private:
  Address start_;
  std::size_t bytes_;
  Address base_;
  Source& source_;
  Contents contents_;
  std::size_t count_;
  Mapping table_memory_;
  Mapping known_memory_;
  RegionTables tables_;
  std::atomic<std::uint64_t>* known_;  // one bit per block
};

}  // namespace tonari::pager
