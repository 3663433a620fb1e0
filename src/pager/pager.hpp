#pragma once

#include "pager/expected.hpp"
#include "pager/fault_mix.hpp"
#include "pager/pace.hpp"
#include "pager/page.hpp"
#include "pager/page_mover.hpp"
#include "pager/regions.hpp"
#include "pager/requests.hpp"
#include "pager/snapshot.hpp"
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

  std::size_t limit_bytes;  ///< Most bytes of the regions in memory, buffers included.
  unsigned movers = 1;      ///< Threads that read ahead and make room.
  /// Called for each failure of a source, by a thread of the pager. It must neither block nor touch paged memory.
  std::function<void(const Failure&)> on_failure{};
};

/// Lets a program use more memory than there is room for. The pages of its regions come when they are touched, and
/// leave to their source when there are too many.
///
/// One thread serves faults. It never waits for a request to the movers, nor they for it. If there is no room, it makes
/// some itself; it waits only while other threads are moving out all blocks that could leave. If room is impossible
/// (the source is full, or pages are pinned), it exceeds the limit and counts that.
///
/// Owns:    its threads, but not the memory of the regions.
/// Threads: any thread may call anything, but no call may use a region while it is being removed.
/// Fork:    a child has neither the regions nor the pager (see Space), and must not use this object.
/// Errors:  construction and add() throw SetupError.
class Pager {
 public:
  /// `space` outlives it.
  Pager(Space& space, const Options& options);
  Pager(Pager&&) = delete;
  ~Pager();  // removes all regions

  /// From now on these pages come from `source`, which outlives the region. The range is whole pages of private
  /// anonymous memory, with no page present yet. A region that begins at a multiple of 2 MiB can have the most huge
  /// pages.
  void add(Address start, std::size_t bytes, Source& source, Contents contents = Contents::zeros);
  /// The same for memory that other threads may be using already: some of its pages may be present. These pages stay,
  /// and are not counted, until know_present(). All pages come and go in slices until know_all_present().
  void add_in_use(Address start, std::size_t bytes, Source& source);
  /// These pages were present when their region was added. From now on they may leave. Returns as discard() does.
  Status know_present(Address start, std::size_t bytes) noexcept;
  /// know_present() was called for all such pages of the region. Returns ok, or invalid if no region starts there.
  Status know_all_present(Address start) noexcept;
  /// Gives the region back to the caller, to be unmapped: pages that are here stay, all others read as zeros. Threads
  /// that wait for its pages go on. Returns ok, or invalid if no region starts there.
  Status remove(Address start) noexcept;
  /// Makes these pages zeros, as madvise(MADV_DONTNEED) does for other memory. Waits for threads that work on them.
  /// Returns ok; invalid if the range is not whole pages; bounds if it is not within one region; otherwise the source's
  /// status.
  Status discard(Address start, std::size_t bytes) noexcept;

  /// Call it before the program makes the range unreadable or maps something else there. The pages of its blocks are
  /// then not read or dropped in place any more, and no block comes whole. Returns as discard() does.
  Status hide(Address start, std::size_t bytes) noexcept;

  /// Sets the limit, at least limit_bytes_min. Surplus pages leave in the background; without movers, a block or two
  /// leave with each fault. If the limit may rise later, the space needs buffers for the highest limit.
  void set_limit(std::size_t bytes) noexcept;

  // Hints from the program about a range: hints.cpp. Ranges that are not within one region are cut or ignored.

  /// The range is used soon: reads as much of it as there is room for.
  void will_need(Address start, std::size_t bytes) noexcept;
  /// The range is not used soon: its whole blocks leave first, unless they were wanted again after they had left.
  void done_with(Address start, std::size_t bytes) noexcept;
  enum class Pattern : std::uint8_t { usual, random };
  /// random: brings single pages and looks for no streams. usual: cancels that.
  void expect(Address start, std::size_t bytes, Pattern pattern) noexcept;

  // For forked children.

  /// While this gate is closed and empty, no page leaves the program.
  [[nodiscard]] Gate& leaving() noexcept { return page_mover_.leaving(); }
  /// Returns a snapshot of all regions, none of which may be removed while it exists. Call it while no page can leave,
  /// and neither let one leave nor discard one before the fork. Throws SetupError.
  [[nodiscard]] std::shared_ptr<Snapshot> take_snapshot(Snapshot::MakeKept make_kept);

  /// Ends all threads of the pager: faults are not served any more. Snapshots can still be read.
  void stop() noexcept;

  [[nodiscard]] Statistics statistics() const noexcept;
  /// Makes `bytes_in_again` count only pages that come more than once from now on.
  void count_anew() noexcept { page_mover_.tally().count_anew(); }

 private:
  enum class Pages : std::uint8_t { absent, may_be_present };
  void add(Address start, std::size_t bytes, Source& source, Contents contents, Pages pages);
  void serve_faults(WorkerContext& context) noexcept;
  std::uint64_t serve(const Fault& fault, std::uint64_t read_ns, std::uint64_t start_ns,
                      WorkerContext& context) noexcept;
  void serve_helper(Address at) noexcept;
  void count_wait(bool is_counted, std::uint64_t ns) noexcept;
  void answer(const Fault& fault, std::uint64_t read_ns, Region& region, BlockLock& hold,
              WorkerContext& context) noexcept;
  void bring(Region& region, std::size_t block, std::size_t page, const PageSet& wanted,
             WorkerContext& context) noexcept;
  void learn_from(const Advice& advice) noexcept;
  void follow(const Advice& advice) noexcept;
  [[nodiscard]] bool may_come_whole(Region& region, std::size_t block) const noexcept;
  [[nodiscard]] bool rest_may_come(Region& region, std::size_t block) const noexcept;

  void move_pages(WorkerContext& context) noexcept;
  void perform(const Request& request, WorkerContext& context) noexcept;
  void bring_block(const Request& request, WorkerContext& context) noexcept;

  enum class Blocks : std::uint8_t { known, all };
  template <class Visit>
  Status hold_each(Address start, std::size_t bytes, Blocks blocks, Visit visit) noexcept;
  template <class Body>
  void start(const char* name, Body body);

  Space& space_;
  pid_t process_;  // the process that its threads belong to
  Regions regions_;
  PageMover page_mover_;
  Requests requests_;
  Streams streams_;  // only for the fault thread
  FaultMix mix_;     // the same
  ExpectedRandom random_;
  Pace pace_;
  std::vector<std::unique_ptr<WorkerContext>> contexts_;
  std::vector<std::jthread> threads_;
};

}  // namespace tonari::pager
