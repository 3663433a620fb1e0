#pragma once

#include "base/mapping.hpp"
#include "pager/page.hpp"
#include "pager/region.hpp"
#include "pager/source.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace tonari::pager {

class PageMover;

/// The pages of all regions of a pager as they were at one moment. It is for a forked child: the kernel gives it the
/// pages that were present at the fork, and it finds the absent ones here.
///
///   at the moment        since then                          read() returns
///   present              whatever happened                   zeros: it can be absent in the child only if the parent
///                                                            had given it back to the kernel unseen
///   absent               its bytes at the source unchanged   the source's bytes
///   absent               replaced or discarded               the bytes that were kept just before
///
/// Only the newest snapshot of a pager keeps bytes. An older one continues in the next newer one, so a page is kept
/// once, however many children there are.
///
///   page not kept here --> newer --> newest --> source
///
/// Owns:    what it keeps. The pager outlives it, and no region may be removed while it exists.
/// Threads: any.
class Snapshot {
 public:
  /// Makes the source that keeps bytes; called when the first page is kept. It has a place for each page of the
  /// regions, and as many between the regions that each begins in a block of its own. May throw SetupError.
  using MakeKept = std::function<std::unique_ptr<Source>()>;

  Snapshot(PageMover& mover, const std::vector<Region*>& regions, MakeKept make_kept);
  Snapshot(Snapshot&&) = delete;
  ~Snapshot();

  /// Records which pages are present now. Returns false if a block is held just now: call it again, until it returns
  /// true. From the first call to the fork no page may leave.
  [[nodiscard]] bool record_present() noexcept;

  enum class Found : std::uint8_t {
    zeros,
    bytes,  ///< `into` is filled.
    lost,   ///< A source failed. `into` is undefined.
    busy,   ///< The page's block is held just now: try again later. The process may have been stopped.
  };
  /// Returns the contents of the page at `at` as they were at the moment.
  Found read(Address at, std::span<std::byte, page_bytes> into) noexcept;
  /// Returns true if a region contains the page at `at`.
  [[nodiscard]] bool has(Address at) const noexcept { return part_at(at) != nullptr; }

  /// Called by the holder of a block before it changes what the source has for `pages`.
  void keep(Region& region, std::size_t block, const PageSet& pages) noexcept;
  /// Makes `newer` the next newer one of `older`, before it keeps anything. From then on it also keeps pages that were
  /// present at its own moment, and absent at that of an older one. If `older` is of no use to anyone but a still older
  /// one, and has kept nothing, that one continues in `newer` directly.
  static void connect(const std::shared_ptr<Snapshot>& older, const std::shared_ptr<Snapshot>& newer) noexcept;

 private:
  // A region's tables. They begin as zeros, and take memory only where they are written.
  struct Part {
    Region* region;
    std::uint64_t first;  // the place of the region's first page in `kept_`
    Mapping memory;
    std::span<PageSet> present;     // by block
    std::span<PageSet> kept;        // by block
    std::span<Checksum> checksums;  // of kept pages
  };

  [[nodiscard]] const Part* part_at(Address at) const noexcept;
  [[nodiscard]] const Part* part_of(const Region& region) const noexcept;
  [[nodiscard]] std::shared_ptr<Snapshot> newer() const noexcept;
  void set_newer(const std::shared_ptr<Snapshot>& newer) noexcept;
  void keep_run(const Part& part, std::size_t block, std::size_t page, std::size_t count) noexcept;
  Found read_kept(const Part& part, std::size_t block, std::size_t page, std::span<std::byte> into) noexcept;
  static Found read_source(Region& region, std::size_t block, std::size_t page, std::span<std::byte> into) noexcept;
  Source* kept_source() noexcept;

  PageMover& mover_;
  std::vector<Part> parts_;
  MakeKept make_kept_;
  bool has_older_ = false;  // set before it keeps anything
  // where record_present() continues
  std::size_t next_part_ = 0;
  std::size_t next_block_ = 0;

  // relaxed: a thread that keeps or reads pages of a block holds it; others only want to know if it is worth connecting
  std::atomic<bool> has_kept_{false};
  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<Snapshot> newer_;
  std::weak_ptr<Snapshot> older_;
  bool cannot_keep_ = false;
  std::unique_ptr<Source> kept_;
  Mapping room_;  // for bytes that are not mapped at the source
};

}  // namespace tonari::pager
