#include "pager/region.hpp"

#include <tonari/status.hpp>

#include <bit>

namespace tonari::pager {

Region::Region(Address start, std::size_t bytes, Source& source, Contents contents, std::span<std::byte> tables)
    : start_(start), bytes_(bytes), base_(start / block_bytes * block_bytes), source_(source), contents_(contents) {
  if (bytes == 0 || start % page_bytes != 0 || bytes % page_bytes != 0) {
    throw SetupError("a region must be whole pages: begin and end it at multiples of 4096");
  }
  count_ = RegionTables::blocks_in(start, bytes);
  known_memory_ = Mapping::of_sparse_zeros((count_ + 63) / 64 * sizeof *known_, "the known blocks of a region");
  if (tables.empty()) {
    table_memory_ = Mapping::of_sparse_zeros(RegionTables::bytes_for(start, bytes), "the tables of a region");
    tables = table_memory_.bytes();
  }
  tables_ = RegionTables(start, bytes, tables.data());
  known_ = reinterpret_cast<std::atomic<std::uint64_t>*>(known_memory_.bytes().data());
  if (contents == Contents::at_source) std::fill_n(tables_.checksums(), bytes / page_bytes, unknown_checksum);
}

std::size_t Region::next_known(std::size_t index) const noexcept {
  while (index < count_) {
    const std::uint64_t rest = known_[index / 64].load(std::memory_order_relaxed) >> index % 64;
    if (rest != 0) return index + static_cast<std::size_t>(std::countr_zero(rest));
    index = index / 64 * 64 + 64;
  }
  return count_;
}

PageSet Region::valid(std::size_t block) const noexcept {
  const Address base = address_of(block);
  const std::size_t first = start_ > base ? (start_ - base) / page_bytes : 0;
  const std::size_t end_page = std::min((end() - base) / page_bytes, block_pages);
  return PageSet::of(first, end_page - first);
}

}  // namespace tonari::pager
