#pragma once

#include "pager/page.hpp"

#include <cstddef>
#include <cstdint>

namespace tonari::pager {

/// XXH3-128 of a page, combined with that of a page of zeros. So a table that starts as zero bytes says that all pages
/// are zeros.
struct Checksum {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  [[nodiscard]] constexpr bool is_of_zeros() const noexcept { return low == 0 && high == 0; }
  friend constexpr bool operator==(const Checksum&, const Checksum&) noexcept = default;
};

/// Stands for the checksum of a page that was never fetched. A real page has it as improbably as any other value.
inline constexpr Checksum unknown_checksum{~0ULL, ~0ULL};

/// Returns the checksum of the page at `page`. Takes about 0.1 us if the page is in the cache.
Checksum checksum_of(const std::byte* page) noexcept;

}  // namespace tonari::pager
