#pragma once

#include "base/mapping.hpp"
#include "far/file_store.hpp"
#include "far/packed_store.hpp"
#include "far/servers.hpp"
#include "pager/page.hpp"
#include "pager/source.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

namespace tonari::far {

/// Keeps pages compressed at servers, and moves cold ones to a file before the servers are full (decision 28). A page
/// is stored in one of the two. The unit that moves is a block: its compressed pages leave together, and are in the
/// file uncompressed, at their own places. The coldest block is the one whose pages have been compressed for the
/// longest time without a fetch. A page in the file stays there until it is stored again or discarded.
///
/// Owns:    the knowledge where each page is; the servers and both stores outlive it. It alone uses the stores.
/// Threads: as pager::Source; the other calls any.
/// Costs:   a short lock, and the costs of the store that is used. A call of store() that finds little room first moves
///          at most 4 blocks. It moves as many again if there is no room at all.
class TieredStore final : public pager::Source {
 public:
  /// `bytes`: size of the arena. Throws SetupError.
  TieredStore(const Servers& servers, PackedStore& packed, FileStore& file, std::uint64_t bytes);

  Status fetch(std::uint64_t place, std::span<std::byte> into) noexcept override;
  /// Returns no_memory if neither the servers nor the file's disk have room.
  Status store(std::uint64_t place, std::span<const std::byte> from) noexcept override;
  Status discard(std::uint64_t place, std::uint64_t bytes) noexcept override;

  /// Returns the bytes that were ever written to the file, and read from it.
  [[nodiscard]] std::uint64_t bytes_to_file() const noexcept { return to_file_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes_from_file() const noexcept { return from_file_.load(std::memory_order_relaxed); }

 private:
  /// Where the pages of a block are stored. Block numbers count from the first place.
  struct Block {
    // No page is in both. Guarded by the block's lock.
    pager::PageSet packed;
    pager::PageSet filed;
    std::atomic<bool> fetched{false};  // compressed pages were fetched since it entered the queue; relaxed: a hint
    // Guarded by queue_mutex_.
    bool queued = false;
    std::uint64_t next = 0;  // in the queue: number of the next block plus 1; 0: none
  };

  [[nodiscard]] std::mutex& lock_of(std::uint64_t block) noexcept { return locks_[block % locks_.size()]; }
  Status fetch_from_block(std::uint64_t place, std::span<std::byte> into) noexcept;
  Status store_in_block(std::uint64_t place, std::span<const std::byte> from) noexcept;
  Status store_packed(std::uint64_t place, std::span<const std::byte> from) noexcept;
  Status store_in_file(std::uint64_t place, std::span<const std::byte> from) noexcept;
  Status write_file(std::uint64_t place, std::span<const std::byte> from) noexcept;
  [[nodiscard]] bool has_room() const noexcept;
  Status move_early() noexcept;
  Status move_now() noexcept;
  std::optional<Status> move_coldest() noexcept;
  Status move(std::uint64_t block) noexcept;
  std::optional<std::uint64_t> take_coldest() noexcept;
  void queue(std::uint64_t block) noexcept;
  void append(std::uint64_t block) noexcept;

  const Servers& servers_;
  PackedStore& packed_;
  FileStore& file_;
  Mapping block_memory_;  // starts as zeros: nothing is stored
  Block* blocks_;
  std::array<std::mutex, 256> locks_;  // each for many blocks; see lock_of()
  // Relaxed: counts, and a hint that moving early is useless.
  std::atomic<std::uint64_t> to_file_{0};
  std::atomic<std::uint64_t> from_file_{0};
  std::atomic<bool> disk_is_full_{false};

  std::mutex move_mutex_;  // held by the thread that moves a block; taken before a block's lock; guards moved_memory_
  Mapping moved_memory_;   // the pages of one block

  std::mutex queue_mutex_;   // taken after a block's lock; guards the queue of blocks with compressed pages
  std::uint64_t first_ = 0;  // number plus 1, as the next; 0: none
  std::uint64_t last_ = 0;
};

}  // namespace tonari::far
