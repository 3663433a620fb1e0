#pragma once

#include "pager/policy.hpp"
#include "pager/pool.hpp"
#include "pager/region.hpp"
#include "pager/space.hpp"
#include "pager/statistics.hpp"
#include "pager/streams.hpp"

#include <tonari/status.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>

namespace tonari::pager {

/// What went wrong with a source.
struct Failure {
  enum class What : std::uint8_t {
    fetch,        ///< The source answered `status`. Who touches the page gets SIGBUS.
    wrong_bytes,  ///< It gave bytes that are not those it was given. Likewise.
    store,        ///< It answered `status`; the page is kept.
    discard,      ///< It answered `status`; the page reads as zeros all the same.
  };
  What what;
  Status status;
  Address region;      // where it starts
  std::uint64_t page;  // in it, from 0
};

/// How many pages may be in memory, and what follows from that.
struct Marks {
  static constexpr Marks of(std::size_t limit) noexcept {
    const std::size_t margin = std::clamp<std::size_t>(limit / 16, 16, 4 * block_pages);
    return {limit, limit - margin, limit - 2 * margin};
  }

  std::size_t limit;  // never more, if it can be helped
  std::size_t high;   // from here on room is made in the background
  std::size_t low;    // until here

  /// Room enough for some streams by whole blocks.
  [[nodiscard]] bool have_room_for_blocks() const noexcept { return limit >= 16 * block_pages; }
};

/// What a thread of the pager has for itself, made before it starts.
struct WorkerContext {
  std::span<std::byte, block_bytes> scratch;
  std::array<Checksum, block_pages> sums{};  // of the block that is just carried
  Buffer reserve = no_buffer;                // the fault thread's: so that it can always take something out
};

/// Holds a block, and lets go of it.
class Hold {
 public:
  enum class Adopt : std::uint8_t { adopt };
  Hold(Space& space, Region& region, std::size_t block, Adopt /*held already*/) noexcept
      : space_(space), region_(region), block_(block) {
    region.know(block);
  }
  Hold(Hold&&) = delete;
  /// Somebody else adopts it.
  void pass_on() noexcept { passed_on_ = true; }
  ~Hold() {
    if (!passed_on_ && region_.block(block_).let_go()) space_.faults().wake(region_.address_of(block_), block_bytes);
  }

 private:
  Space& space_;
  Region& region_;
  std::size_t block_;
  bool passed_on_ = false;
};

/// How many buffers a space should have for a pager of that limit, and how many are used where there are more. They
/// take memory only while they are used, and what they take counts.
std::size_t buffers_for(std::size_t limit_bytes) noexcept;

/// Carries pages: in, from their source; out, and to their source if they were changed; back, if they are still beside.
///
/// A page was changed if, once it has been taken out and nobody can write it any more, its checksum is not that of the
/// source's copy. That needs no marks that a write could slip past, whoever writes, and however many threads.
///
/// Threads: any with a context of its own. Those that take a block do so as its holder; no lock is held while pages
/// move
///          or a source works.
/// Costs:   no allocation. Touches no paged memory, but buffers only.
class PageMover {
 public:
  PageMover(Space& space, std::size_t limit_bytes, std::function<void(const Failure&)> on_failure);

  /// Nothing goes by itself: make_room() has it held.
  void set_limit(std::size_t limit_bytes) noexcept;

  [[nodiscard]] Counters& counters() noexcept { return counters_; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  [[nodiscard]] Marks marks() const noexcept { return Marks::of(limit_.load(std::memory_order_relaxed)); }
  [[nodiscard]] std::size_t resident() const noexcept { return resident_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t touched() const noexcept { return touched_.load(std::memory_order_relaxed); }

  // In: porter_in.cpp. All by the block's holder.

  /// Copies in those of `wanted` that are away. If that fails `page` is lost, the others are left away.
  void bring_in(Region& region, std::size_t block, const PageSet& wanted, std::size_t page,
                WorkerContext& context) noexcept;
  /// Moves in `page`, which is beside, and with it what is in `wanted`, or all if they are a huge page.
  void bring_back(Region& region, std::size_t block, const PageSet& wanted, std::size_t page,
                  WorkerContext& context) noexcept;
  enum class Wanted : std::uint8_t { soon, now };
  /// Reads a block of which nothing is here: all of it is beside then. False: there is no room, or the source failed.
  bool read_block(Region& region, std::size_t block, Wanted wanted, WorkerContext& context) noexcept;
  /// Brings all that is away of a block of which nothing is beside. False: likewise.
  bool bring_rest(Region& region, std::size_t block, Wanted wanted, WorkerContext& context) noexcept;

  // Out: porter_out.cpp

  /// Takes blocks out until so many pages have room below `mark`. False: it cannot be done now.
  bool make_room(std::size_t pages, std::size_t mark, WorkerContext& context) noexcept;
  /// The bytes of these pages are zeros from now on. By the block's holder.
  Status discard(Region& region, std::size_t block, const PageSet& pages) noexcept;
  /// A stream has gone on from this block.
  void passed(Region& region, std::size_t block) noexcept;
  /// Nothing is known of the region's blocks any more; its pages that are here stay. When nobody works on it.
  void forget(Region& region) noexcept;

 private:
  bool place(Region& region, std::size_t block, std::size_t first, std::size_t count, WorkerContext& context) noexcept;
  bool place_bytes(Region& region, std::size_t block, std::size_t first, std::size_t count,
                   WorkerContext& context) noexcept;
  bool is_as_stored(Region& region, std::size_t block, std::size_t page, const Checksum& found) noexcept;
  void touch(Block& block, bool touched) noexcept;
  void lose(Region& region, std::size_t block, std::size_t page) noexcept;
  const std::byte* stored_bytes(Region& region, std::size_t block, const PageSet& stored, Buffer buffer,
                                WorkerContext& context) noexcept;
  bool fill(Region& region, std::size_t block, const PageSet& pages, Buffer buffer, WorkerContext& context) noexcept;
  PageSet copy_back(Region& region, std::size_t block, std::size_t page, WorkerContext& context) noexcept;
  Buffer prefaulted_buffer(Wanted wanted, WorkerContext& context) noexcept;

  void relieve_of_stock() noexcept;
  [[nodiscard]] bool is_forgotten() noexcept;
  bool take_one_out(WorkerContext& context) noexcept;
  enum class Beside : std::uint8_t { keep, drop };
  bool take_out(Region& region, std::size_t block, Beside beside, WorkerContext& context) noexcept;
  Buffer buffer_to_take_out(Region& region, std::size_t block, WorkerContext& context) noexcept;
  PageSet settle(Region& region, std::size_t block, const PageSet& pages, Buffer buffer,
                 WorkerContext& context) noexcept;
  Status store(Region& region, std::size_t block, std::size_t first, std::size_t count, Buffer buffer,
               WorkerContext& context) noexcept;
  bool drop_oldest(Pool::Kind kind) noexcept;
  void drop_beside(Region& region, std::size_t block, WorkerContext* context) noexcept;
  void fail(Failure::What what, Status status, Region& region, std::size_t block, std::size_t page) noexcept;

  /// Counts as a thread that takes something out.
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
  // Relaxed: each is right by itself, and one that is seen late is met late.
  std::atomic<std::size_t> limit_;               // in pages
  std::atomic<std::size_t> second_chances_max_;  // blocks taken out that are kept beside
  std::atomic<std::size_t> ahead_max_;
  Counters counters_;
  std::atomic<std::size_t> touched_{0};   // relaxed: blocks; only told
  std::atomic<std::size_t> resident_{0};  // relaxed: pages; a limit that is met a page early or late is met

  std::atomic<int> carrying_{0};  // relaxed: only for a guess whether to wait for others

  std::mutex mutex_;  // of the next two, for some loads and stores: never while a page moves
  Policy policy_;
  Pool pool_;
};

}  // namespace tonari::pager
