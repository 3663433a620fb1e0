#pragma once

#include "share/heap/free_runs.hpp"
#include "share/heap/heap_pages.hpp"
#include "share/heap/size_classes.hpp"

#include <tonari/job.hpp>
#include <tonari/shared_heap.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace tonari::share {

/// One rank's side of a shared heap. Free blocks are listed in the rank's own memory, not in the heap: allocating and
/// freeing touch no shared page, except in builds with assertions (freed_memory.hpp).
///
///   small, of one size class   freed by this rank -> fresh blocks of its last chunk -> another chunk (64 KiB)
///   larger, whole pages        freed by this rank -> pages of its part -> pages of others' parts
///
/// Threads: any; construction and destruction are collective.
class Heap {
 public:
  Heap(Job& job, std::uint64_t bytes, const HeapOptions& options);

  [[nodiscard]] static bool has_alignment(std::size_t alignment) noexcept;
  /// Returns null if there is no room, or if the alignment is not supported.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) noexcept;
  void free(std::byte* block, std::size_t bytes, std::size_t alignment) noexcept;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return pages_.bytes(); }
  /// Returns the reason why allocate() returned null.
  [[nodiscard]] std::string what_is_full(std::size_t bytes, std::size_t alignment);

 private:
  /// This rank's free blocks of one size class.
  struct alignas(64) Shelf {
    std::mutex mutex{};  // protects the rest; held while a chunk is taken, perhaps from another rank
    std::vector<std::byte*> freed{};
    std::byte* fresh = nullptr;  // the unused rest of the last chunk, up to fresh_end
    std::byte* fresh_end = nullptr;
  };

  [[nodiscard]] std::byte* take_small(std::size_t size_class) noexcept;
  [[nodiscard]] bool refill(Shelf& shelf, std::size_t block_bytes) noexcept;
  [[nodiscard]] std::byte* take_pages(std::uint64_t pages) noexcept;
  [[nodiscard]] bool contains(const std::byte* block, std::size_t bytes) const noexcept;
  void keep(std::byte* block, std::size_t bytes, std::size_t alignment);
  void check_block(const std::byte* block, std::size_t bytes, std::size_t alignment);

  /// Pages with blocks of one size class, for ever.
  struct Chunk {
    const std::byte* end;
    std::size_t block_bytes;
  };
  HeapPages pages_;
  const std::uint64_t pages_a_chunk_;
  std::array<Shelf, size_classes> shelves_{};
  std::mutex runs_mutex_;  // protects the next member
  FreeRuns runs_;
  std::mutex chunks_mutex_;  // protects chunks_
  std::map<const std::byte*, Chunk>
      chunks_{};  // chunks that this rank has taken, by start; only in builds with assertions
};

}  // namespace tonari::share
