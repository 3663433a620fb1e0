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

/// Places for pieces of pages in a store: each of its chunks has slots of one size. Of those that get empty a few are
/// kept, since who writes pages anew takes slots before it gives back as many.
///
/// Owns:    which chunks of the store are taken; the store outlives it.
/// Threads: any.
/// Costs:   a lock, and one more of the store when a chunk is taken or given back. take() looks at the first chunk that
///          has room, from its first word on that is not full.
class Slots {
 public:
  static constexpr std::size_t unit_bytes = 256;
  static constexpr std::size_t slot_bytes_max = pager::page_bytes;

  /// Of a store that nobody else uses. Throws SetupError.
  explicit Slots(Store& store);

  /// A place for so many bytes, a multiple of unit_bytes up to slot_bytes_max. Nothing: the servers are full.
  [[nodiscard]] std::optional<std::uint64_t> take(std::size_t slot_bytes) noexcept;
  /// What is written at `place` is of no use any more.
  void give_back(std::uint64_t place) noexcept;

  [[nodiscard]] std::uint64_t taken_bytes() const noexcept { return taken_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t words = pager::block_bytes / unit_bytes / 64;

  struct Chunk {
    std::uint32_t slot_bytes = 0;
    std::uint32_t taken = 0;       // slots
    std::uint64_t full_words = 0;  // so many of the first words of `bits` are full, if not more
    Chunk* previous = nullptr;     // in the list of those that have room, are spare, or free
    Chunk* next = nullptr;
    std::array<std::uint64_t, words> bits{};  // a slot each: taken

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
  Mapping chunk_memory_;  // of zeros: nothing is taken
  Chunk* chunks_;
  std::atomic<std::uint64_t> taken_bytes_{0};  // relaxed: a count

  std::mutex mutex_;              // of all that follows, and of what is in chunks; never while a chunk is given back
  std::uint64_t never_used_ = 0;  // chunks from here on
  List free_;                     // the store's, and used before
  std::uint64_t in_use_ = 0;      // chunks that are not empty
  std::uint64_t spares_ = 0;
  List spare_;
  std::array<List, slot_bytes_max / unit_bytes> with_room_;  // by size
};

}  // namespace tonari::far
