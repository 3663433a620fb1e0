#pragma once

#include "base/clock.hpp"
#include "base/gate.hpp"
#include "pager/policy.hpp"
#include "pager/pool.hpp"
#include "pager/region.hpp"
#include "pager/snapshot.hpp"
#include "pager/space.hpp"
#include "pager/statistics.hpp"
#include "pager/streams.hpp"
#include "pager/tally.hpp"

#include <tonari/status.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

namespace tonari::pager {

/// A failure of a source.
struct Failure {
  enum class What : std::uint8_t {
    fetch,        ///< The source returned `status`. A touch of the page raises SIGBUS.
    wrong_bytes,  ///< The source returned other bytes than were stored. A touch of the page raises SIGBUS.
    store,        ///< The source returned `status`; the page stays in memory.
    discard,      ///< The source returned `status`; the page still reads as zeros.
  };
  What what;
  Status status;
  Address region;      // start of the region
  std::uint64_t page;  // number of the page in the region, from 0
};

/// A thread's buffers and checksums, made before the thread starts.
struct WorkerContext {
  explicit WorkerContext(std::span<std::byte, block_bytes> room) noexcept : scratch(room) {}

  std::span<std::byte, block_bytes> scratch;
  std::array<Checksum, block_pages> sums{};  // of the block that is being moved
  Buffer reserve = no_buffer;                // only the fault thread's: lets it always take something out
};

/// Holds a block that its thread has already held, and lets go of it at the end of its scope.
class BlockLock {
 public:
  BlockLock(Space& space, Counters& counters, Region& region, std::size_t block) noexcept
      : space_(space), counters_(counters), region_(region), block_(block) {
    region.know(block);
  }
  BlockLock(BlockLock&&) = delete;
  /// Leaves the block held: another thread adopts it.
  void pass_on() noexcept { passed_on_ = true; }
  [[nodiscard]] bool has_passed_on() const noexcept { return passed_on_; }
  ~BlockLock() {
    if (passed_on_) return;
    const DroppedFaults dropped = region_.block(block_).let_go();
    if (dropped.is_empty()) return;
    space_.wake_waiting(region_.address_of(block_), region_.block(block_).waiting_word());
    Counters::add(counters_.wait_ns, dropped.waited_ns(monotonic_ns()));
  }

 private:
  Space& space_;
  Counters& counters_;
  Region& region_;
  std::size_t block_;
  bool passed_on_ = false;
};

/// Returns how many buffers a space should have for a pager with that limit; more are not used. Buffers take memory
/// only while they are used, and that memory counts towards the limit.
std::size_t buffers_for(std::size_t limit_bytes) noexcept;

/// Moves pages: in, from their source; out, and to their source if they were changed; and back from the buffer beside.
///
/// A page counts as changed if its checksum differs from the source's after it was taken out, when nobody can write it
/// any more. So no write can be missed, however many threads write.
///
/// Threads: any, each with a context of its own. Calls that take a block require that the caller holds it. No lock is
///          held while pages move or a source works.
/// Costs:   no allocation. Touches no paged memory, only buffers.
class PageMover {
 public:
  PageMover(Space& space, std::size_t limit_bytes, std::function<void(const Failure&)> on_failure);

  /// Moves nothing by itself: make_room() enforces the limit.
  void set_limit(std::size_t limit_bytes) noexcept;

  [[nodiscard]] Tally& tally() noexcept { return tally_; }
  [[nodiscard]] const Tally& tally() const noexcept { return tally_; }
  [[nodiscard]] Counters& counters() noexcept { return tally_.counters; }
  [[nodiscard]] Marks marks() const noexcept { return tally_.marks(); }
  [[nodiscard]] std::size_t resident() const noexcept { return tally_.resident(); }

  /// Takes over a block that the caller holds already.
  [[nodiscard]] BlockLock adopt(Region& region, std::size_t block) noexcept {
    return {space_, counters(), region, block};
  }

  // In: page_mover_in.cpp. The caller holds the block.

  enum class Wanted : std::uint8_t {
    soon,  ///< Predicted.
    now,   ///< A thread waits for it.
  };
  /// Copies in the pages of `pages` that are away. On failure `page` is lost, and the others stay away.
  void bring_in(Region& region, std::size_t block, const PageSet& pages, std::size_t page, Wanted wanted,
                WorkerContext& context) noexcept;
  /// Moves in `page`, which is beside, together with the pages of `wanted`; with all pages if they are a huge page.
  void bring_back(Region& region, std::size_t block, const PageSet& wanted, std::size_t page,
                  WorkerContext& context) noexcept;
  /// Reads a block with no page here into a buffer: all of its pages are beside then. Returns false if there is no
  /// room, or if the source failed.
  bool read_block(Region& region, std::size_t block, Wanted wanted, WorkerContext& context) noexcept;
  /// Brings in all pages that are away, of a block without pages beside. Returns false as read_block() does.
  bool bring_rest(Region& region, std::size_t block, Wanted wanted, WorkerContext& context) noexcept;
  /// Counts pages as here that came before the region was added. Pages that have come or gone since are left as they
  /// are.
  void know_present(Region& region, std::size_t block, const PageSet& pages) noexcept;

  // Out: page_mover_out.cpp

  /// Takes blocks out until there is room for `pages` below `mark`. Returns false if that is not possible now.
  bool make_room(std::size_t pages, std::size_t mark, WorkerContext& context) noexcept;
  /// Makes these pages zeros. The caller holds the block.
  Status discard(Region& region, std::size_t block, const PageSet& pages) noexcept;
  /// From now on, the block's pages are not read or dropped in place, and never brought by the whole block.
  void hide(Region& region, std::size_t block) noexcept;
  /// Records that a stream has gone on from this block.
  void passed(Region& region, std::size_t block) noexcept;
  /// Waits until nobody uses a region that Regions finds no more, and forgets all its blocks; its pages that are here
  /// stay. Afterwards the region may be destroyed.
  void forget(Region& region) noexcept;

  // Snapshots for forked children.

  /// While this gate is closed and empty, no page leaves the program. Faults are served, above the limit if necessary.
  [[nodiscard]] Gate& leaving() noexcept { return leaving_; }
  /// From now on this snapshot keeps the bytes that change at the source, until there is a newer one. Call it while no
  /// page can leave.
  void set_newest(const std::shared_ptr<Snapshot>& snapshot) noexcept;
  /// Called once all threads that move pages have ended.
  void rest() noexcept { at_rest_.store(true, std::memory_order_release); }
  [[nodiscard]] bool is_at_rest() const noexcept { return at_rest_.load(std::memory_order_acquire); }

 private:
  bool place(Region& region, std::size_t block, std::size_t first, std::size_t count, WorkerContext& context) noexcept;
  bool place_bytes(Region& region, std::size_t block, std::size_t first, std::size_t count,
                   WorkerContext& context) noexcept;
  void count_fetched(Block& block, const PageSet& pages) noexcept;
  bool is_as_stored(Region& region, std::size_t block, std::size_t page, const Checksum& found) noexcept;
  void touch(Region& region, std::size_t block, const PageSet& came, const PageSet& wanted) noexcept;
  void set_touched(Block& block, const PageSet& touched) noexcept;
  [[nodiscard]] PageSet stored(Region& region, std::size_t block, const PageSet& pages) noexcept;
  void lose(Region& region, std::size_t block, std::size_t page) noexcept;
  const std::byte* stored_bytes(Region& region, std::size_t block, const PageSet& stored, Buffer buffer,
                                WorkerContext& context) noexcept;
  bool fill(Region& region, std::size_t block, const PageSet& pages, Buffer buffer, WorkerContext& context) noexcept;
  PageSet copy_back(Region& region, std::size_t block, std::size_t page, WorkerContext& context) noexcept;
  Buffer prefaulted_buffer(Wanted wanted, WorkerContext& context) noexcept;

  void drop_prefaulted_buffer() noexcept;
  [[nodiscard]] bool is_forgotten() noexcept;
  bool take_one_out(WorkerContext& context) noexcept;
  enum class Beside : std::uint8_t { keep, drop };
  bool take_out(Region& region, std::size_t block, Beside beside, WorkerContext& context) noexcept;
  std::optional<bool> drop_out(Region& region, std::size_t block, WorkerContext& context) noexcept;
  Buffer buffer_to_take_out(Region& region, std::size_t block, WorkerContext& context) noexcept;
  PageSet settle(Region& region, std::size_t block, const PageSet& pages, Buffer buffer,
                 WorkerContext& context) noexcept;
  PageSet store(Region& region, std::size_t block, const PageSet& pages, Buffer buffer,
                WorkerContext& context) noexcept;
  void refer_to_stored(Region& region, std::size_t block) noexcept;
  void keep_for_children(Region& region, std::size_t block, const PageSet& pages) noexcept;
  bool drop_oldest(Pool::Kind kind) noexcept;
  void drop_beside(Region& region, std::size_t block, WorkerContext* context) noexcept;
  void fail(Failure::What what, Status status, Region& region, std::size_t block, std::size_t page) noexcept;

  /// Counts this thread as one that is taking something out.
  class Carrying {
   public:
    explicit Carrying(std::atomic<int>& count) noexcept : count_(count) {
      count_.fetch_add(1, std::memory_order_relaxed);
    }
    Carrying(Carrying&&) = delete;
    ~Carrying() { count_.fetch_sub(1, std::memory_order_relaxed); }

   private:
    std::atomic<int>& count_;
  };

  Space& space_;
  std::function<void(const Failure&)> on_failure_;
  Tally& tally_;
  // Relaxed: as the limit in Tally.
  std::atomic<std::size_t> second_chances_max_;  // most blocks kept beside after they were taken out
  std::atomic<std::size_t> ahead_max_;           // most blocks kept beside after they were read ahead

  Gate leaving_;
  std::atomic<bool> at_rest_{false};  // acquire and release: a thread that sees it also sees all that threads did
  // Relaxed: it is set while the gate is closed, which orders it before whatever leaves afterwards.
  std::atomic<bool> has_snapshot_{false};
  std::mutex newest_mutex_;
  std::weak_ptr<Snapshot> newest_;  // under `newest_mutex_`

  std::atomic<int> carrying_{0};  // relaxed: only a hint whether to wait for others

  std::mutex mutex_;  // guards policy_ and pool_, for a few loads and stores; never held while a page moves
  Policy policy_;
  Pool pool_;
};

}  // namespace tonari::pager
