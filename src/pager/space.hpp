#pragma once

#include "pager/checksum.hpp"
#include "pager/page.hpp"
#include "pager/userfaultfd.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace tonari::pager {

/// A piece of memory of a block's size, in the same address space as the regions, so that pages can be moved between
/// the two. Numbered from 0.
enum class Buffer : std::uint32_t {};
inline constexpr Buffer no_buffer{~0U};

/// The address space whose pages are placed and taken out: this process's own, or another process's, where an agent
/// works. faults() offers the operations that userfaultfd does from outside; the other calls work only from inside.
///
/// Pages keep their position: page i of a block is moved to page i of a buffer.
///
/// Threads: any; one at a time for each block and each buffer.
class Space {
 public:
  using Sums = std::span<Checksum, block_pages>;

  explicit Space(Userfaultfd faults = {}) : faults_(std::move(faults)) {}
  Space(Space&&) = delete;
  virtual ~Space() = default;

  [[nodiscard]] Userfaultfd& faults() noexcept { return faults_; }
  [[nodiscard]] virtual std::size_t buffers() const noexcept = 0;

  /// Prepares a range for watch(): decides how a forked child inherits it.
  virtual void prepare(Address start, std::size_t bytes) = 0;
  /// Gives the program's pages in the range back to the kernel.
  virtual void drop(Address start, std::size_t bytes) noexcept = 0;

  /// Moves pages of `block` to a buffer, which loses its old contents. Returns the pages that are in the buffer now,
  /// with their checksums. Pages that are pinned, shared, or just being written for the first time stay in the block.
  /// Pages that existed nowhere become zeros in the buffer.
  virtual PageSet take_out(Address block, const PageSet& pages, Buffer buffer, Sums sums) noexcept = 0;
  /// Moves pages from a buffer to a block where they are absent; a whole block moves as a huge page if it is one.
  /// Returns the pages that have come.
  virtual PageSet move_in(Address block, const PageSet& pages, Buffer buffer) noexcept = 0;

  /// Gives a buffer all of its pages, as a huge page if possible. Returns false if there is no memory.
  virtual bool prefault(Buffer buffer) noexcept = 0;
  /// Gives all pages of a buffer back to the kernel.
  virtual void empty(Buffer buffer) noexcept = 0;
  /// Returns where a buffer is in this process, or nullptr if it is in another process and must be copied.
  virtual std::byte* view(Buffer buffer) noexcept = 0;
  /// Returns memory of a block's size for a worker, from 0 to workers_max - 1. Buffers can be copied from and to it.
  virtual std::span<std::byte, block_bytes> scratch(std::size_t worker) noexcept = 0;
  /// Fills a pre-faulted buffer: copies `pages` from the block at `from` and returns their checksums; all other pages
  /// become zeros. `from` is scratch memory, the buffer's view, or memory that a source returned by look(). Returns
  /// false if the process has ended.
  virtual bool fill(Buffer buffer, const std::byte* from, const PageSet& pages, Sums sums) noexcept = 0;
  /// Copies whole pages from a place in a buffer to scratch memory, or to memory that a source returned by room().
  /// Returns false if the process has ended.
  virtual bool read(Buffer buffer, std::size_t place, std::span<std::byte> into) noexcept = 0;

 private:
  Userfaultfd faults_;
};

}  // namespace tonari::pager
