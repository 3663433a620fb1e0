#pragma once

#include "base/file_descriptor.hpp"
#include "pager/checksum.hpp"
#include "pager/page.hpp"
#include "pager/tally.hpp"
#include "pager/userfaultfd.hpp"

#include <atomic>
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

  /// Throws SetupError.
  explicit Space(Userfaultfd faults = {});
  Space(Space&&) = delete;
  virtual ~Space() = default;

  [[nodiscard]] Userfaultfd& faults() noexcept { return faults_; }
  [[nodiscard]] const Userfaultfd& faults() const noexcept { return faults_; }

  // Faults. Either the kernel reports them, or the threads that meet them serve them, and pass on what they cannot
  // serve: then they also need the tables and the tally (OwnFaults).

  /// Returns the faults that the pager must serve now, up to a batch; empty if there are none. Only for one thread.
  virtual std::span<const Fault> read_faults() noexcept { return faults_.read(); }
  /// Waits until there may be faults. Returns false after stop_waiting().
  virtual bool wait_for_faults() noexcept;
  virtual void stop_waiting() noexcept;
  /// Wakes the threads that wait for the block at `start`; `word` is Block::waiting_word().
  virtual void wake_waiting(Address start, const std::atomic<std::uint32_t>& word) noexcept;
  /// Returns zeroed memory for the tables of the region at `start`, which the address space maps, too. Empty: only the
  /// pager uses them. Throws SetupError.
  virtual std::span<std::byte> tables(Address start, std::size_t bytes, std::size_t table_bytes);
  virtual Tally& tally() noexcept { return tally_; }
  /// Returns a number by which threads of the address space find bytes that a source returned by look(), or 0.
  virtual std::uint64_t reference_to(std::span<const std::byte> bytes) noexcept;
  /// Returns true once the address space has ended: none of its threads will let go of a block.
  [[nodiscard]] virtual bool has_ended() const noexcept { return false; }

  // Pages.

  [[nodiscard]] virtual std::size_t buffers() const noexcept = 0;

  /// Prepares a range for watch(): decides how a forked child inherits it.
  virtual void prepare(Address start, std::size_t bytes) = 0;
  /// Gives the program's pages in the range back to the kernel.
  virtual void drop(Address start, std::size_t bytes) noexcept = 0;

  /// Moves pages of `block` to a buffer, which loses its old contents. Returns the pages that are in the buffer now,
  /// with their checksums. Pages that are pinned or just being written for the first time stay in the block. Pages that
  /// existed nowhere become zeros in the buffer.
  virtual PageSet take_out(Address block, const PageSet& pages, Buffer buffer, Sums sums,
                           SharedPages shared) noexcept = 0;
  /// Returns true if the thread works for the pager in the address space. Its faults must be served at once, although
  /// the page's block is held: the program has given the page back to the kernel unseen.
  [[nodiscard]] virtual bool is_helper(std::uint32_t /*thread*/) const noexcept { return false; }
  /// Moves pages from a buffer to a block where they are absent; a whole block moves as a huge page if it is one.
  /// Returns the pages that have come. Wakes the threads that wait for them; if some have not come, all that wait for
  /// pages of the block.
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
  /// Copies pages of a buffer to scratch memory, or to memory that a source returned by room(): page i to
  /// `to` + (i - first) * page_bytes. Returns false if the process has ended.
  virtual bool read(Buffer buffer, const PageSet& pages, std::size_t first, std::byte* to) noexcept = 0;

  // Pages that leave without being moved. If a device has pinned such a page, what it writes there would be lost.

  /// Returns true if the calls below work.
  [[nodiscard]] virtual bool drops_in_place() const noexcept { return false; }
  /// Lets writes to these pages of `block` wait. Returns the pages that are protected now, with their checksums.
  virtual PageSet protect(Address block, const PageSet& pages, Sums sums) noexcept;
  /// Copies protected pages of `block` as read() copies pages of a buffer.
  virtual bool read_in_place(Address block, const PageSet& pages, std::size_t first, std::byte* to) noexcept;
  /// Gives the pages of `going` back to the kernel, and lets writes to all other pages of `pages` go on. Returns the
  /// pages that are gone.
  virtual PageSet drop_protected(Address block, const PageSet& pages, const PageSet& going) noexcept;

 private:
  Userfaultfd faults_;
  FileDescriptor stop_doorbell_;
  Tally tally_;
};

}  // namespace tonari::pager
