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

/// A shared heap, as one rank allocates from it. What is free is remembered in this rank's own memory, never in the
/// heap's: to allocate and to free touch no shared page, unless built with assertions (freed_memory.hpp).
///
///   small, of one size class   freed by this rank -> fresh blocks of its last chunk -> another chunk (64 KiB)
///   larger, whole pages        freed by this rank -> pages of its part -> pages of others' parts
///
/// Threads: any, but for construction and destruction, which are collective.
class Heap {
 public:
  Heap(Job& job, std::uint64_t bytes, const HeapOptions& options);

  [[nodiscard]] static bool has_alignment(std::size_t alignment) noexcept;
  /// Null: there is no room, or no such alignment.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) noexcept;
  void free(std::byte* block, std::size_t bytes, std::size_t alignment) noexcept;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return pages_.bytes(); }
  /// Why allocate() answered null.
  [[nodiscard]] std::string what_is_full(std::size_t bytes, std::size_t alignment);

 private:
  /// Blocks of one size class that this rank has.
  struct alignas(64) Shelf {
    std::mutex mutex{};  // of the others; held while a chunk is asked for, of another rank perhaps
    std::vector<std::byte*> freed{};
    std::byte* fresh = nullptr;  // up to fresh_end: of the last chunk
    std::byte* fresh_end = nullptr;
  };

  [[nodiscard]] std::byte* take_small(std::size_t size_class) noexcept;
  [[nodiscard]] bool refill(Shelf& shelf, std::size_t block_bytes) noexcept;
  [[nodiscard]] std::byte* take_pages(std::uint64_t pages) noexcept;
  [[nodiscard]] bool contains(const std::byte* block, std::size_t bytes) const noexcept;
  void keep(std::byte* block, std::size_t bytes, std::size_t alignment);
  void check_block(const std::byte* block, std::size_t bytes, std::size_t alignment);

  /// Pages with blocks of one size class, which they keep for ever.
  struct Chunk {
    const std::byte* end;
    std::size_t block_bytes;
  };
  HeapPages pages_;
  const std::uint64_t pages_a_chunk_;
  std::array<Shelf, size_classes> shelves_{};
  std::mutex runs_mutex_;  // of the next
  FreeRuns runs_;
  std::mutex chunks_mutex_;                     // of the next
  std::map<const std::byte*, Chunk> chunks_{};  // by their start: that this rank has taken; of builds with assertions
};

}  // namespace tonari::share
