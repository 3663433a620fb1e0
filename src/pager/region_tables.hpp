#pragma once

#include "pager/residency.hpp"

#include <cstddef>
#include <type_traits>

namespace tonari::pager {

/// The state of a region's pages: its blocks, and after them a checksum for each page. The memory begins as zeros, and
/// takes room only where it is written. The pager and the threads that serve their own faults may map it at different
/// addresses.
class RegionTables {
 public:
  RegionTables() noexcept = default;
  /// `memory` has bytes_for() bytes, and outlives the tables.
  RegionTables(Address start, std::size_t bytes, std::byte* memory) noexcept
      : start_(start),
        end_(start + bytes),
        blocks_(reinterpret_cast<Block*>(memory)),
        checksums_(reinterpret_cast<Checksum*>(memory + blocks_in(start, bytes) * sizeof(Block))) {
    static_assert(std::is_trivially_destructible_v<Block>, "nobody destroys them");
  }

  [[nodiscard]] static std::size_t blocks_in(Address start, std::size_t bytes) noexcept {
    return (start + bytes - 1) / block_bytes - start / block_bytes + 1;
  }
  [[nodiscard]] static std::size_t bytes_for(Address start, std::size_t bytes) noexcept {
    return blocks_in(start, bytes) * sizeof(Block) + bytes / page_bytes * sizeof(Checksum);
  }

  [[nodiscard]] bool contains(Address address) const noexcept { return address >= start_ && address < end_; }
  [[nodiscard]] Block* blocks() const noexcept { return blocks_; }
  [[nodiscard]] Checksum* checksums() const noexcept { return checksums_; }
  [[nodiscard]] Block& block_at(Address address) const noexcept {
    return blocks_[address / block_bytes - start_ / block_bytes];
  }
  [[nodiscard]] Checksum& checksum_at(Address address) const noexcept {
    return checksums_[(address - start_) / page_bytes];
  }

 private:
  Address start_ = 0;
  Address end_ = 0;
  Block* blocks_ = nullptr;        // all bytes 0: free, and not yet known
  Checksum* checksums_ = nullptr;  // all bytes 0: a page of zeros
};

}  // namespace tonari::pager
