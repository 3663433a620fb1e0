#include "pager/region.hpp"

#include <tonari/status.hpp>

namespace tonari::pager {

Region::Region(Address start, std::size_t bytes, Source& source, Contents contents)
    : start_(start), bytes_(bytes), base_(start / block_bytes * block_bytes), source_(source) {
  if (bytes == 0 || start % page_bytes != 0 || bytes % page_bytes != 0) {
    throw SetupError("a region is whole pages: let it begin and end at multiples of 4096");
  }
  count_ = block_at(end() - 1) + 1;
  blocks_ = std::make_unique<Block[]>(count_);
  for (std::size_t index = 0; index < count_; ++index) {
    blocks_[index].entry.region = this;
    blocks_[index].entry.block = index;
  }
  const std::size_t pages = bytes / page_bytes;
  checksum_memory_ = Mapping::of_zeros(pages * sizeof(Checksum), "the checksums of a region");
  checksums_ = reinterpret_cast<Checksum*>(checksum_memory_.bytes().data());
  if (contents == Contents::at_source) std::fill_n(checksums_, pages, unknown_checksum);
}

PageSet Region::valid(std::size_t block) const noexcept {
  const Address base = address_of(block);
  const std::size_t first = start_ > base ? (start_ - base) / page_bytes : 0;
  const std::size_t end_page = std::min((end() - base) / page_bytes, block_pages);
  return PageSet::of(first, end_page - first);
}

}  // namespace tonari::pager
