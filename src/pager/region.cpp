#include "pager/region.hpp"

#include <tonari/status.hpp>

#include <bit>
#include <type_traits>

namespace tonari::pager {

Region::Region(Address start, std::size_t bytes, Source& source, Contents contents)
    : start_(start), bytes_(bytes), base_(start / block_bytes * block_bytes), source_(source), contents_(contents) {
  if (bytes == 0 || start % page_bytes != 0 || bytes % page_bytes != 0) {
    throw SetupError("a region must be whole pages: begin and end it at multiples of 4096");
  }
  count_ = block_at(end() - 1) + 1;
  const std::size_t pages = bytes / page_bytes;
  block_memory_ = Mapping::of_sparse_zeros(count_ * sizeof(Block), "the blocks of a region");
  known_memory_ = Mapping::of_sparse_zeros((count_ + 63) / 64 * sizeof *known_, "the known blocks of a region");
  checksum_memory_ = Mapping::of_sparse_zeros(pages * sizeof(Checksum), "the checksums of a region");
  static_assert(std::is_trivially_destructible_v<Block>, "nobody destroys them");
  blocks_ = reinterpret_cast<Block*>(block_memory_.bytes().data());
  known_ = reinterpret_cast<std::atomic<std::uint64_t>*>(known_memory_.bytes().data());
  checksums_ = reinterpret_cast<Checksum*>(checksum_memory_.bytes().data());
  if (contents == Contents::at_source) std::fill_n(checksums_, pages, unknown_checksum);
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
