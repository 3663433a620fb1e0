#pragma once

#include "base/lock.hpp"
#include "fabric/head.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tonari::fabric {

// Bulk memory: the tails that are under way, in the sender's segment. Four classes of 64 blocks. Only the owner
// allocates blocks; the reader of a block frees it, without a message and without a cache line that both sides write:
//
//   +---------------------------+-----------+-----------+-----------+------------+
//   | returned: 4 x 64 bytes    | 64 x 256  | 64 x 1 Ki | 64 x 4 Ki | 64 x 16 Ki |
//   +---------------------------+-----------+-----------+-----------+------------+
//
// A block's turn is a bit that the owner flips at each allocation and sends in the BulkPlace. The reader stores that
// turn in the block's `returned` byte. The block is free when both are equal, so the owner only reads that cache line.
inline constexpr std::size_t bulk_blocks = 64;
inline constexpr std::array<std::size_t, 4> bulk_block_bytes{256, 1024, 4096, 16384};
inline constexpr std::size_t bulk_classes = bulk_block_bytes.size();
inline constexpr std::size_t bulk_tail_bytes_max = bulk_block_bytes.back();
/// Number of largest blocks reserved for replies to page faults: the threads that would free the other blocks may be
/// waiting for such a reply.
inline constexpr std::size_t bulk_blocks_spared = 4;

struct BulkMemory {
  struct alignas(head_bytes) Returned {
    std::array<std::atomic<std::uint8_t>, bulk_blocks> turn;
  };
  std::array<Returned, bulk_classes> returned;
  alignas(4096) std::byte blocks[1];  // in fact bulk_blocks of each class

  static constexpr std::size_t offset_of_class(std::size_t index) noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < index; ++i) bytes += bulk_blocks * bulk_block_bytes[i];
    return bytes;
  }
  [[nodiscard]] std::byte* block(std::size_t size_class, std::size_t index) noexcept {
    return blocks + offset_of_class(size_class) + index * bulk_block_bytes[size_class];
  }
};
inline constexpr std::size_t bulk_memory_bytes =
    offsetof(BulkMemory, blocks) + BulkMemory::offset_of_class(bulk_classes);

/// The place of a block, as heads carry it: bits 0-5 block, 6-7 class, 8 turn.
struct BulkPlace {
  std::uint64_t value = 0;

  [[nodiscard]] std::size_t index() const noexcept { return value & 63; }
  [[nodiscard]] std::size_t size_class() const noexcept { return (value >> 6) & 3; }
  [[nodiscard]] std::uint8_t turn() const noexcept { return static_cast<std::uint8_t>((value >> 8) & 1); }
};

/// The owner's side. Threads: any thread of the owning rank.
class BulkOwner {
 public:
  explicit BulkOwner(BulkMemory& memory) noexcept : memory_(&memory) {}

  /// Returns a block for `bytes` (at most bulk_tail_bytes_max) that `reader` will free; nothing if only `spared`
  /// largest blocks are free.
  std::optional<BulkPlace> allocate(std::size_t bytes, int reader, std::size_t spared = bulk_blocks_spared) noexcept;
  /// Whether half of the largest blocks are free, so that some may stay with readers that do not poll for a while.
  [[nodiscard]] bool has_plenty() noexcept;
  [[nodiscard]] std::byte* at(BulkPlace place) const noexcept {
    return memory_->block(place.size_class(), place.index());
  }
  /// Takes back the blocks that readers have freed, and prefetches the block for a payload like the last one. Call it
  /// when there is nothing else to do, since it touches cache lines that readers hold.
  void tidy() noexcept;
  /// Takes back the blocks of a reader that has died.
  void reader_died(int reader) noexcept;

 private:
  struct Class {
    SpinLock lock;                           // guards the rest; held for a few instructions
    std::uint64_t free = ~std::uint64_t{0};  // one bit per block
    std::uint64_t turn = 0;                  // one bit per block
    std::array<int, bulk_blocks> reader{};
  };
  void reclaim(std::size_t size_class) noexcept;  // under its lock

  BulkMemory* memory_;
  std::atomic<std::uint32_t> bytes_last_{0};  // relaxed: a hint for tidy(); 0: nothing allocated since
  std::array<Class, bulk_classes> classes_;
};

/// The reader's side: access to a peer's bulk memory.
struct BulkReader {
  /// Returns the bytes of a tail; empty if place and length are malformed and name no block.
  static std::span<const std::byte> look(BulkMemory& memory, BulkPlace place, std::uint64_t bytes) noexcept {
    return block(memory, place, bytes);
  }
  /// Returns the same bytes, for a block that its owner has asked the reader to fill.
  static std::span<std::byte> block(BulkMemory& memory, BulkPlace place, std::uint64_t bytes) noexcept;
  /// Gives the block back. Release: the bytes were read before their reuse.
  static void give_back(BulkMemory& memory, BulkPlace place) noexcept {
    memory.returned[place.size_class()].turn[place.index()].store(place.turn(), std::memory_order_release);
  }
};

}  // namespace tonari::fabric
