#pragma once

#include "base/file_descriptor.hpp"
#include "pager/expected.hpp"
#include "pager/page.hpp"
#include "pager/page_mover.hpp"
#include "pager/regions.hpp"
#include "pager/requests.hpp"
#include "pager/source.hpp"
#include "pager/space.hpp"
#include "pager/statistics.hpp"
#include "pager/streams.hpp"

#include <tonari/status.hpp>

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace tonari::pager {

struct Options {
  static constexpr std::size_t limit_bytes_min = 1 << 20;

  std::size_t limit_bytes;   ///< Of regions that may be in memory, buffers included.
  unsigned movers = 1;       ///< Threads that read ahead and make room.
  bool whole_blocks = true;  ///< Read streams by huge pages, where the limit has room for them.
  /// Told of each failure of a source, by a thread of the pager: neither blocks nor touches paged memory.
  std::function<void(const Failure&)> on_failure{};
};

/// Lets a program use more memory than there is room for: the pages of its regions come when they are touched, and go
/// to their source when there are too many.
///
/// One thread answers faults; it never waits for the movers, nor they for it. If there is no room, it makes some. If
/// none can be made (the source takes no more, pages are pinned), it goes over the limit and counts that.
///
/// Owns:    its threads. Not the memory of the regions.
/// Threads: any may call anything, but not for one region while it is being removed.
/// Fork:    a child has neither the regions nor the pager: see Space. What the child does with this object is nothing.
/// Errors:  construction and add() throw SetupError.
class Pager {
 public:
  /// `space` outlives it.
  Pager(Space& space, const Options& options);
  Pager(Pager&&) = delete;
  ~Pager();  // removes all regions

  /// From now on these pages come from `source`, which outlives the region. Whole pages of private anonymous memory, of
  /// which none is there yet; a region that begins at a multiple of 2 MiB can have the most huge pages.
  void add(Address start, std::size_t bytes, Source& source, Contents contents = Contents::zeros);
  /// The region is the caller's again, to be unmapped: pages that are here stay, all others are zeros. Who waits for
  /// one goes on.
  Status remove(Address start) noexcept;
  /// The bytes of these pages are zeros from now on: what madvise(MADV_DONTNEED) is to other memory. Waits for those
  /// who work on them. Answers ok; invalid: not whole pages; bounds: not all of one region; what the source answers.
  Status discard(Address start, std::size_t bytes) noexcept;

  /// Less than limit_bytes_min counts as that. What is above the limit goes in the background; without movers, a block
  /// or two with each fault. A pager whose limit may rise needs a space with buffers for the highest.
  void set_limit(std::size_t bytes) noexcept;

  // What the program says of a range: hints.cpp. Ranges that are not of one region are cut, or ignored.

  /// It is used soon: what there is room for is brought.
  void will_need(Address start, std::size_t bytes) noexcept;
  /// It is not used soon: its whole blocks go first, unless they have been wanted again and again.
  void done_with(Address start, std::size_t bytes) noexcept;
  enum class Pattern : std::uint8_t { usual, random };
  /// random: single pages are brought, and streams not looked for. usual: that is forgotten.
  void expect(Address start, std::size_t bytes, Pattern pattern) noexcept;

  [[nodiscard]] Statistics statistics() const noexcept;

 private:
  void serve_faults(WorkerContext& context) noexcept;
  void serve(const Fault& fault, WorkerContext& context) noexcept;
  void answer(const Fault& fault, Region& region, Hold& hold, WorkerContext& context) noexcept;
  void bring(Region& region, std::size_t block, std::size_t page, const PageSet& wanted,
             WorkerContext& context) noexcept;
  void follow(const Advice& advice) noexcept;
  [[nodiscard]] bool may_come_whole(Region& region, std::size_t block) const noexcept;
  [[nodiscard]] bool rest_may_come(Region& region, std::size_t block) const noexcept;

  void move_pages(WorkerContext& context) noexcept;
  void perform(const Request& request, WorkerContext& context) noexcept;
  void bring_block(const Request& request, WorkerContext& context) noexcept;

  template <class Body>
  void start(const char* name, Body body);
  void stop() noexcept;

  Space& space_;
  bool whole_blocks_;
  pid_t process_;  // whose threads they are
  Regions regions_;
  PageMover page_mover_;
  Requests requests_;
  Streams streams_;  // the fault thread's
  ExpectedRandom random_;
  FileDescriptor stop_doorbell_;
  std::vector<std::unique_ptr<WorkerContext>> contexts_;
  std::vector<std::jthread> threads_;
};

}  // namespace tonari::pager
