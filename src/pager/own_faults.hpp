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
/// `System` makes the system calls: copy(to, from) and zero(to) place one page and return an `Answer`. wait(word, seen)
/// and wake(word) work on a futex. now_ns(), thread() and yield() do what their names say.
///
/// Threads: any. All signals must be blocked: a handler that touched the same block would wait for ever.
/// Costs:   one system call, a checksum and two readings of the clock; no lock, no allocation.
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
    const PageSet wanted = PageSet::of(page, 1);
    if (block.here.is_empty() || (block.here | block.beside | block.lost).has(page)) return false;
    if (tally_.resident() >= tally_.marks().limit) return false;
    const Address to = at / page_bytes * page_bytes;
    const Checksum& known = tables.checksum_at(to);
    const bool is_of_zeros = known.is_of_zeros();
    if (is_of_zeros ? system_.zero(to) != Answer::ok : !copy(block, page, known, to)) return false;

    block.here |= wanted;
    tally_.add_resident(1);
    if (!block.touched.has(page)) tally_.add_touched(1);
    block.touched |= wanted;
    block.assumed -= wanted;
    if (!is_of_zeros) count_fetched(block, wanted);
    return true;
  }

 private:
  bool copy(const Block& block, std::size_t page, const Checksum& known, Address to) noexcept {
    if (block.stored_at == 0) return false;
    const std::byte* const from = stored_ + (block.stored_at - 1 + page * page_bytes);
    // A page that was never fetched has no checksum yet, and a wrong one is an error.
    return checksum_of(from) == known && system_.copy(to, from) == Answer::ok;
  }

  void count_fetched(Block& block, const PageSet& wanted) noexcept {
    const std::uint32_t count = tally_.count();
    if (block.fetched_in != count) block.fetched = {};
    block.fetched_in = count;
    Counters::add(tally_.counters.pages_in);
    if (!(block.fetched & wanted).is_empty()) Counters::add(tally_.counters.pages_in_again);
    block.fetched |= wanted;
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
