#pragma once

#include "pager/kernel.hpp"
#include "pager/passed_faults.hpp"
#include "pager/recent_faults.hpp"
#include "pager/region_tables.hpp"
#include "pager/tally.hpp"

#include <cstddef>
#include <cstdint>

namespace tonari::pager {

/// Serves a fault in the thread that met it, in its signal handler, and wakes no other thread if possible.
///
///   touch of an absent page --> hold the block
///       | it is held: wait until it is free, and touch the page again
///       | the page can be placed here: place it, let go of the block
///       +- otherwise: pass the held block on to the pager, wait until it is free, and touch the page again
///
/// A page can be placed here if its bytes are mapped in this address space, or are zeros, and if its block has other
/// pages here. All else is for the pager: it must know which blocks are in use, recognises streams, sees to the limit,
/// and reports errors.
///
/// `System` makes the system calls: copy(to, from, bytes) places pages and returns its `Progress`; zero(to) places one
/// page and returns an `Answer`. wait(word, seen) and wake(word) work on a futex. now_ns(), thread() and yield() do
/// what their names say.
///
/// Threads: any. All signals must be blocked: a handler that touched the same block would wait for ever.
/// Costs:   one system call, a checksum for each page that comes, and two readings of the clock; no lock, no
///          allocation.
template <class System>
class OwnFaults {
 public:
  /// `stored` is where Space::reference_to() counts from.
  OwnFaults(System system, const std::byte* stored, Tally& tally, PassedFaults& passed) noexcept
      : system_(system), stored_(stored), tally_(tally), passed_(passed) {}

  /// Returns once the access to `at` can be repeated. Returns false if the page is lost: a repeated access would raise
  /// the same signal again.
  bool serve(const RegionTables& tables, Address at, RecentFaults& recent) noexcept {
    const std::uint64_t start = system_.now_ns();
    Block& block = tables.block_at(at);
    if (!block.try_hold_or_want(start)) {
      Counters::add(tally_.counters.faults_met_held);
      wait_until_free(block);
      return true;
    }
    if (block.lost.has(at % block_bytes / page_bytes)) {
      let_go(block);
      return false;
    }
    const bool is_in_stream = recent.lead_to(at / page_bytes, block.here);
    recent.add(at / page_bytes);
    if (is_in_stream || !place(tables, at)) {
      (void)block.try_hold_or_want(start);  // counts this thread
      passed_.add({at, system_.thread()}, [&] { system_.yield(); });
      ring();
      wait_until_free(block);
      return true;
    }
    const std::uint64_t end = system_.now_ns();
    let_go(block);
    Counters::add(tally_.counters.faults);
    Counters::add(tally_.counters.faults_by_threads);
    Counters::add(tally_.counters.fault_ns, end - start);
    tally_.counters.waited(end - start);
    if (tally_.resident() > tally_.marks().high && tally_.wish_for_room()) ring();
    return true;
  }

  /// Does the same as serve() for a page that this thread has not touched: it may be here already.
  bool bring(const RegionTables& tables, Address at, RecentFaults& recent) noexcept {
    Block& block = tables.block_at(at);
    if (block.try_hold()) {
      const bool is_here = block.here.has(at % block_bytes / page_bytes);
      let_go(block);
      if (is_here) return true;
    }
    return serve(tables, at, recent);
  }

  /// Returns true if the page of `at` has come. The caller holds the block.
  bool place(const RegionTables& tables, Address at) noexcept {
    Block& block = tables.block_at(at);
    const std::size_t page = at % block_bytes / page_bytes;
    if (block.here.is_empty() || (block.here | block.beside | block.lost).has(page)) return false;
    const std::size_t resident = tally_.resident();
    const std::size_t limit = tally_.marks().limit;
    if (resident >= limit) return false;
    const Address to = at / page_bytes * page_bytes;
    const bool is_of_zeros = tables.checksum_at(to).is_of_zeros();
    PageSet came = PageSet::of(page, 1);
    if (is_of_zeros) {
      if (system_.zero(to) != Answer::ok) return false;
    } else {
      if (!is_stored(tables, to)) return false;
      const PageSet run = with_next(tables, to, std::min(limit - resident, run_max));
      came = copy(block, run, to - page * page_bytes);
      // The kernel copies nothing to a range of several mappings.
      if (came.is_empty() && run.count() > 1) came = copy(block, PageSet::of(page, 1), to - page * page_bytes);
      count_fetched(block, came);
    }

    block.here |= came;
    tally_.add_resident(came.count());
    tally_.add_touched((came - block.touched).count());
    block.touched |= came;
    block.assumed -= came;
    return came.has(page);
  }

 private:
  static constexpr std::size_t run_min = 3;   // with fewer, pages that came at random would look like a stream
  static constexpr std::size_t run_max = 16;  // longer ones are for the pager

  /// Returns the page at `to`, and pages behind it if the pages before it are here: as many as there are, but at most
  /// `pages_max` in all. So the pages that streams have left tell where they go on, however many they are. The same
  /// backwards.
  PageSet with_next(const RegionTables& tables, Address to, std::size_t pages_max) const noexcept {
    const Block& block = tables.block_at(to);
    const PageSet present = block.here | block.beside | block.lost;
    const std::size_t page = to % block_bytes / page_bytes;
    const auto is_here = [&](std::size_t at, Address) { return block.here.has(at); };
    const auto can_come = [&](std::size_t at, Address address) {
      return !present.has(at) && tables.contains(address) && !tables.checksum_at(address).is_of_zeros() &&
             is_stored(tables, address);
    };
    const auto count = [&](std::size_t step, std::size_t most, auto&& belongs) {
      std::size_t pages = 0;  // the page's number wraps around at 0
      for (std::size_t at = page + step; at < block_pages && pages < most; at += step, ++pages) {
        if (!belongs(at, to - page * page_bytes + at * page_bytes)) break;
      }
      return pages;
    };
    for (const std::size_t step : {std::size_t{1}, ~std::size_t{0}}) {
      const std::size_t before = count(-step, pages_max - 1, is_here);
      if (before < run_min) continue;
      const std::size_t behind = count(step, before, can_come);
      return PageSet::of(step == 1 ? page : page - behind, behind + 1);
    }
    return PageSet::of(page, 1);
  }

  /// Copies adjacent pages of a block, and returns the pages that came. `base` is the block's address.
  PageSet copy(const Block& block, const PageSet& pages, Address base) noexcept {
    const std::size_t first = pages.next(0);
    const std::byte* const from = stored_ + (block.stored_at - 1 + first * page_bytes);
    const Progress done = system_.copy(base + first * page_bytes, from, pages.count() * page_bytes);
    return PageSet::of(first, done.bytes / page_bytes);
  }

  // A page that was never fetched has no checksum yet, and a wrong one is an error.
  bool is_stored(const RegionTables& tables, Address page) const noexcept {
    const std::uint64_t at = tables.block_at(page).stored_at;
    return at != 0 && checksum_of(stored_ + (at - 1 + page % block_bytes)) == tables.checksum_at(page);
  }

  void count_fetched(Block& block, const PageSet& pages) noexcept {
    const std::uint32_t count = tally_.count();
    if (block.fetched_in != count) block.fetched = {};
    block.fetched_in = count;
    Counters::add(tally_.counters.pages_in, pages.count());
    const std::size_t again = (block.fetched & pages).count();
    if (again != 0) Counters::add(tally_.counters.pages_in_again, again);
    block.fetched |= pages;
  }

  void ring() noexcept {
    passed_.doorbell.fetch_add(1, std::memory_order_release);  // a pager that sees it also sees the fault or the wish
    system_.wake(passed_.doorbell);
  }

  // This thread is counted. If another holder has taken the block over meanwhile, and others wait for that one, it may
  // wait with them.
  void wait_until_free(const Block& block) noexcept {
    for (;;) {
      const std::uint32_t seen = block.waiting_value();
      if (!Block::wakes_at_the_end(seen)) return;
      system_.wait(block.waiting_word(), seen);
    }
  }

  void let_go(Block& block) noexcept {
    const DroppedFaults dropped = block.let_go();
    if (dropped.is_empty()) return;
    system_.wake(block.waiting_word());
    Counters::add(tally_.counters.wait_ns, dropped.waited_ns(system_.now_ns()));
  }

  System system_;
  const std::byte* stored_;
  Tally& tally_;
  PassedFaults& passed_;
};

}  // namespace tonari::pager
