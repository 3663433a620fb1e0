#pragma once

#include "base/file_descriptor.hpp"
#include "base/mapping.hpp"
#include "far/peak_count.hpp"
#include "pager/page.hpp"
#include "pager/source.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tonari::far {

/// Returns the free bytes of the file system of `directory`. Throws SetupError unless this user can create a file
/// there.
std::uint64_t room_for_file(const std::string& directory);

/// Holds the pages of a program that are not in its memory, in a file without a name: the kernel removes it when the
/// process ends in whatever way. The page at `place` is at that offset. So the file is as long as the arena, but takes
/// disk space only for blocks of 2 MiB of which a page is stored. The page cache is not used, if the file system
/// permits that (O_DIRECT).
///
/// Owns:    the file.
/// Threads: as pager::Source; the other calls any.
/// Costs:   one system call and one transfer for each call. The first page of a block also reserves the block's space
///          on the disk, so that a full disk is noticed before bytes are overwritten.
class FileStore final : public pager::Source {
 public:
  /// Creates the file. `bytes`: size of the arena. Throws SetupError.
  FileStore(const std::string& directory, std::uint64_t bytes);
  /// Uses an open file; `directory` is only shown to the user.
  FileStore(FileDescriptor file, std::string directory, std::uint64_t bytes);

  Status fetch(std::uint64_t place, std::span<std::byte> into) noexcept override;
  Status store(std::uint64_t place, std::span<const std::byte> from) noexcept override;
  Status discard(std::uint64_t place, std::uint64_t bytes) noexcept override;

  /// Returns the disk space that the file takes: whole blocks; or pages, if the file system cannot reserve space.
  [[nodiscard]] std::uint64_t used_bytes() const noexcept {
    return reserves() ? blocks_.now() * pager::block_bytes : data_bytes();
  }
  [[nodiscard]] std::uint64_t used_peak_bytes() const noexcept {
    return reserves() ? blocks_.peak() * pager::block_bytes : data_peak_bytes();
  }
  /// Returns the size of the stored pages. It may be far below used_bytes() if the program's data are sparse.
  [[nodiscard]] std::uint64_t data_bytes() const noexcept { return pages_.now() * pager::page_bytes; }
  [[nodiscard]] std::uint64_t data_peak_bytes() const noexcept { return pages_.peak() * pager::page_bytes; }
  [[nodiscard]] bool has_failed() const noexcept { return error_.load(std::memory_order_relaxed) != 0; }
  /// Returns the text that explains the last failure, with a remedy.
  [[nodiscard]] std::string why_it_failed() const;

 private:
  /// The value of `error_` for a file that has become shorter.
  static constexpr int truncated = -1;

  [[nodiscard]] pager::PageSet& stored_at(std::uint64_t place) const noexcept {
    return stored_[place / pager::block_bytes];
  }
  [[nodiscard]] bool reserves() const noexcept { return reserves_.load(std::memory_order_relaxed); }
  void set_stored(pager::PageSet& stored, const pager::PageSet& now) noexcept;
  [[nodiscard]] std::string sparse_text() const;
  Status reserve(std::uint64_t place) noexcept;
  void release(std::uint64_t place) noexcept;
  /// Keeps the error for why_it_failed(). 0: no error.
  Status status_of(int error) noexcept;

  std::string directory_;
  FileDescriptor file_;
  Mapping stored_memory_;   // starts as zeros: nothing is stored
  pager::PageSet* stored_;  // by block; only for the thread that holds the block
  PeakCount blocks_;        // with stored pages
  PeakCount pages_;
  // Relaxed: only shown to the user.
  std::atomic<bool> reserves_{true};  // the file system can reserve space
  std::atomic<int> error_{0};
};

}  // namespace tonari::far
