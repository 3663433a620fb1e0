#include "fabric/bulk.hpp"

#include "base/cache.hpp"

#include <bit>
#include <mutex>

namespace tonari::fabric {

std::optional<BulkPlace> BulkOwner::allocate(std::size_t bytes, int reader, std::size_t spared) noexcept {
  for (std::size_t size_class = 0; size_class < bulk_classes; ++size_class) {
    if (bytes > bulk_block_bytes[size_class]) continue;
    Class& own = classes_[size_class];
    const auto left = static_cast<int>(size_class + 1 == bulk_classes ? spared : 0);
    const std::lock_guard guard(own.lock);
    if (std::popcount(own.free) <= left) reclaim(size_class);
    if (std::popcount(own.free) <= left) continue;  // a larger block will do
    // The lowest free block was most likely used last and is still in the caches.
    const auto index = static_cast<std::size_t>(std::countr_zero(own.free));
    const std::uint64_t bit = std::uint64_t{1} << index;
    own.free &= ~bit;
    own.turn ^= bit;
    own.reader[index] = reader;
    bytes_last_.store(static_cast<std::uint32_t>(bytes), std::memory_order_relaxed);
    return BulkPlace{index | size_class << 6 | ((own.turn >> index) & 1) << 8};
  }
  return std::nullopt;
}

bool BulkOwner::has_plenty() noexcept {
  constexpr int plenty = bulk_blocks / 2;
  constexpr std::size_t largest = bulk_classes - 1;
  Class& own = classes_[largest];
  const std::lock_guard guard(own.lock);
  if (std::popcount(own.free) < plenty) reclaim(largest);
  return std::popcount(own.free) >= plenty;
}

void BulkOwner::reclaim(std::size_t size_class) noexcept {
  Class& own = classes_[size_class];
  std::uint64_t taken = ~own.free;
  while (taken != 0) {
    const auto index = static_cast<std::size_t>(std::countr_zero(taken));
    const std::uint64_t bit = std::uint64_t{1} << index;
    taken &= ~bit;
    // Acquire: the reader has read the block before it is written again; pairs with give_back().
    const std::uint8_t returned = memory_->returned[size_class].turn[index].load(std::memory_order_acquire);
    if (returned == ((own.turn >> index) & 1)) own.free |= bit;
  }
}

void BulkOwner::tidy() noexcept {
  const std::size_t bytes = bytes_last_.exchange(0, std::memory_order_relaxed);
  if (bytes == 0) return;
  for (std::size_t size_class = 0; size_class < bulk_classes; ++size_class) {
    if (bytes > bulk_block_bytes[size_class]) continue;
    Class& own = classes_[size_class];
    const std::lock_guard guard(own.lock);
    reclaim(size_class);
    if (own.free == 0) continue;
    const auto index = static_cast<std::size_t>(std::countr_zero(own.free));
    const std::byte* block = memory_->block(size_class, index);
    for (std::size_t offset = 0; offset < bytes; offset += head_bytes) prefetch_to_write(block + offset);
    return;
  }
}

void BulkOwner::reader_died(int reader) noexcept {
  for (std::size_t size_class = 0; size_class < bulk_classes; ++size_class) {
    Class& own = classes_[size_class];
    const std::lock_guard guard(own.lock);
    for (std::size_t index = 0; index < bulk_blocks; ++index) {
      const std::uint64_t bit = std::uint64_t{1} << index;
      if ((own.free & bit) != 0 || own.reader[index] != reader) continue;
      memory_->returned[size_class].turn[index].store((own.turn >> index) & 1, std::memory_order_relaxed);
      own.free |= bit;
    }
  }
}

std::span<std::byte> BulkReader::block(BulkMemory& memory, BulkPlace place, std::uint64_t bytes) noexcept {
  if (place.value >> 9 != 0 || bytes > bulk_block_bytes[place.size_class()]) return {};
  return {memory.block(place.size_class(), place.index()), bytes};
}

}  // namespace tonari::fabric
