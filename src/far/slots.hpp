#pragma once

#include "base/mapping.hpp"
#include "far/store.hpp"
#include "pager/page.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace tonari::far {

/// Allocates slots for compressed pages in a store. All slots of a chunk have one size. A few empty chunks are kept: a
/// page that is rewritten takes its new slot before it frees the old one.
///
/// Owns:    the knowledge which chunks of the store are taken; the store outlives it.
/// Threads: any.
/// Costs:   a lock; the servers' lock, too, when a chunk is taken or given back. take() searches the first chunk that
///          has room, from its first word on that is not known to be full.
class Slots {
 public:
  static constexpr std::size_t unit_bytes = 256;
  static constexpr std::size_t slot_bytes_max = pager::page_bytes;

  /// `store` is used by nobody else. Throws SetupError.
  explicit Slots(Store& store);

  /// Takes a slot of `slot_bytes`, a multiple of unit_bytes up to slot_bytes_max, and returns its place. Returns
  /// nullopt if the servers are full.
  [[nodiscard]] std::optional<std::uint64_t> take(std::size_t slot_bytes) noexcept;
  /// Frees the slot at `place`.
  void give_back(std::uint64_t place) noexcept;

  [[nodiscard]] std::uint64_t taken_bytes() const noexcept { return taken_bytes_.load(std::memory_order_relaxed); }
  /// Returns the size of the free slots in the chunks that are taken, and of empty ones that are kept.
  [[nodiscard]] std::uint64_t free_bytes() const noexcept;

 private:
  static constexpr std::size_t words = pager::block_bytes / unit_bytes / 64;

  struct Chunk {
    std::uint32_t slot_bytes = 0;
    std::uint32_t taken = 0;       // number of slots in use
    std::uint64_t full_words = 0;  // at least this many of the first words of `bits` are full
    Chunk* previous = nullptr;     // in the list of chunks with room, of spares, or of free chunks
    Chunk* next = nullptr;
    std::array<std::uint64_t, words> bits{};  // one bit per slot: 1 if it is in use

    [[nodiscard]] std::uint32_t slots() const noexcept { return pager::block_bytes / slot_bytes; }
  };
  struct List {
    Chunk* first = nullptr;
    Chunk* last = nullptr;
    void append(Chunk& chunk) noexcept;
    void remove(Chunk& chunk) noexcept;
  };

  [[nodiscard]] std::uint64_t place_of(const Chunk& chunk) const noexcept {
    return static_cast<std::uint64_t>(&chunk - chunks_) * pager::block_bytes;
  }
  [[nodiscard]] List& with_room(std::size_t slot_bytes) noexcept { return with_room_[slot_bytes / unit_bytes - 1]; }
  [[nodiscard]] std::uint64_t spares_max() const noexcept;
  bool add_chunk(std::uint32_t slot_bytes) noexcept;
  Chunk* chunk_of_store() noexcept;
  Chunk* superfluous_chunk() noexcept;
  bool clear(Chunk& chunk, std::uint64_t offset) noexcept;

  Store& store_;
  Mapping chunk_memory_;  // starts as zeros: nothing is taken
  Chunk* chunks_;
  // Relaxed: counts.
  std::atomic<std::uint64_t> taken_bytes_{0};
  std::atomic<std::uint64_t> chunks_of_store_{0};  // that are taken

  std::mutex mutex_;              // guards all members below and the chunks; not held while a chunk is given back
  std::uint64_t never_used_ = 0;  // chunks from this index on
  List free_;                     // given back to the store after use
  std::uint64_t in_use_ = 0;      // number of chunks that are not empty
  std::uint64_t spares_ = 0;
  List spare_;
  std::array<List, slot_bytes_max / unit_bytes> with_room_;  // by size of slot
};

}  // namespace tonari::far
