#pragma once

#include "pager/checksum.hpp"
#include "pager/page.hpp"
#include "pager/userfaultfd.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace tonari::pager {

/// A piece of memory of a block's size, next to the regions and in the same address space: pages are moved between the
/// two. By number, from 0.
enum class Buffer : std::uint32_t {};
inline constexpr Buffer no_buffer{~0U};

/// The address space whose pages are placed and taken out: this process's, or another's by an agent there. What
/// userfaultfd does from outside is done by faults(); what it does from inside only is asked for here.
///
/// Pages keep their place: page i of a block is moved to page i of a buffer.
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

  /// Prepares a range for watch(): what a forked child is to have of it.
  virtual void prepare(Address start, std::size_t bytes) = 0;
  /// The program's pages in the range are given back to the kernel.
  virtual void drop(Address start, std::size_t bytes) noexcept = 0;

  /// Moves pages of `block` to a buffer, which loses what it had. Answers those that are in the buffer now, with their
  /// checksums: not those that are pinned, shared, or just being written for the first time. Any that were nowhere are
  /// zeros in the buffer.
  virtual PageSet take_out(Address block, const PageSet& pages, Buffer buffer, Sums sums) noexcept = 0;
  /// Moves pages from a buffer to where they are absent, all of a block as a huge page if they are one. Answers those
  /// that have come.
  virtual PageSet move_in(Address block, const PageSet& pages, Buffer buffer) noexcept = 0;

  /// Gives a buffer all of its pages, as a huge page if it can be had. False: no memory.
  virtual bool stock(Buffer buffer) noexcept = 0;
  /// Gives all its pages back to the kernel.
  virtual void empty(Buffer buffer) noexcept = 0;
  /// Where a buffer is in this process; null: it is in another's, and is copied.
  virtual std::byte* view(Buffer buffer) noexcept = 0;
  /// Memory of a block's size for a worker, from 0 to workers_max - 1, from where and to where buffers can be copied.
  virtual std::span<std::byte, block_bytes> scratch(std::size_t worker) noexcept = 0;
  /// Fills a buffer, all of whose pages are there: those of `pages` are as in the block at `from`, whose checksums are
  /// told; the others are zeros. `from` is a scratch, the buffer's view, or what a source lets look at. False: the
  /// process has ended.
  virtual bool fill(Buffer buffer, const std::byte* from, const PageSet& pages, Sums sums) noexcept = 0;
  /// Copies whole pages from a place in a buffer to a scratch, or to where a source has room. False: likewise.
  virtual bool read(Buffer buffer, std::size_t place, std::span<std::byte> into) noexcept = 0;

 private:
  Userfaultfd faults_;
};

}  // namespace tonari::pager
