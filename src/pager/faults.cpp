#include "base/clock.hpp"
#include "pager/pager.hpp"

#include <sched.h>

#include <algorithm>

// The fault thread serves at once the faults that it can, and leaves the read-ahead of streams to the movers.
namespace tonari::pager {

namespace {

// Faults often follow each other closely, and waking the thread on another processor takes 20 to 40 us on virtual
// machines. So the thread polls for a while before it sleeps, if that has been worth it lately.
class Lookout {
 public:
  void saw_fault(std::uint64_t now_ns) noexcept {
    patience_ = std::min(now_ns - last_ns_ < look_ns ? patience_ + 1 : patience_ / 2, patience_max);
    last_ns_ = now_ns;
  }
  [[nodiscard]] bool is_worth_it(std::uint64_t now_ns) const noexcept {
    return patience_ > patience_max / 2 && now_ns - last_ns_ < look_ns;
  }

 private:
  static constexpr std::uint64_t look_ns = 50'000;
  static constexpr unsigned patience_max = 16;
  std::uint64_t last_ns_ = 0;
  unsigned patience_ = 0;
};

// Returns the pages of its block that are to be brought for a fault at `page`.
PageSet wanted_pages(const Advice& advice, std::size_t page) noexcept {
  const std::size_t first = advice.first % block_pages;
  if (advice.every == 1) return PageSet::of(first, advice.pages);
  PageSet pages;
  const std::size_t end = first + advice.pages;
  for (std::size_t at = first + (page - first) % advice.every; at < end; at += advice.every) {
    pages |= PageSet::of(at, 1);
  }
  return pages;
}

}  // namespace

void Pager::serve_faults(WorkerContext& context) noexcept {
  Lookout lookout;
  for (;;) {
    const auto faults = space_.read_faults();
    // Reading the clock takes about 30 ns, so it is read once before a batch, and once after each fault.
    const std::uint64_t read_ns = monotonic_ns();
    std::uint64_t now_ns = read_ns;
    for (const Fault& fault : faults) now_ns = serve(fault, read_ns, now_ns, context);
    if (page_mover_.tally().take_wish()) requests_.ask_for_room();
    if (!faults.empty()) lookout.saw_fault(now_ns);
    if (lookout.is_worth_it(now_ns)) {
      ::sched_yield();
      continue;
    }
    if (!space_.wait_for_faults()) return;
  }
}

// The threads of a batch have waited since it was read at `read_ns`, whatever their order. Returns when it
// was done with the fault, or `start_ns` if it dropped it.
std::uint64_t Pager::serve(const Fault& fault, std::uint64_t read_ns, std::uint64_t start_ns,
                           WorkerContext& context) noexcept {
  const auto region = regions_.find(fault.address);
  if (!region) return start_ns;  // it is being removed, which wakes the waiting threads
  const std::size_t block = (*region)->block_at(fault.address);
  Counters& counters = page_mover_.counters();
  Counters::add(counters.short_run_ns, pace_.wants_page(fault.thread, read_ns));
  if (!fault.holds_block && !(*region)->block(block).try_hold_or_want(read_ns)) {
    Counters::add(counters.faults_met_held);
    if (space_.is_helper(fault.thread)) serve_helper(fault.address);
    return start_ns;  // the holder wakes the waiting threads
  }
  bool has_passed_on = false;
  {
    BlockLock hold = page_mover_.adopt(**region, block);
    answer(fault, read_ns, **region, hold, context);
    has_passed_on = hold.has_passed_on();
    if (page_mover_.resident() > page_mover_.marks().high) requests_.ask_for_room();
  }
  const std::uint64_t end_ns = monotonic_ns();
  Counters::add(counters.faults);
  Counters::add(counters.fault_ns, end_ns - start_ns);
  if (has_passed_on) return end_ns;
  count_wait(fault.holds_block, end_ns - read_ns);
  pace_.got_page(fault.thread, end_ns);
  return end_ns;
}

// The block's holder waits for this thread.
void Pager::serve_helper(Address at) noexcept {
  const Answer answer = space_.faults().zero(at, page_bytes);
  if (answer != Answer::ok && answer != Answer::there) space_.faults().wake(at, page_bytes);  // it faults again
}

// `is_counted`: the block's word counts the time that the thread waits.
void Pager::count_wait(bool is_counted, std::uint64_t ns) noexcept {
  Counters& counters = page_mover_.counters();
  is_counted ? counters.add_to_histogram(ns) : counters.waited(ns);
}

void Pager::answer(const Fault& fault, std::uint64_t read_ns, Region& region, BlockLock& hold,
                   WorkerContext& context) noexcept {
  const std::size_t index = region.block_at(fault.address);
  const std::size_t page = (fault.address - region.address_of(index)) / page_bytes;
  Block& block = region.block(index);
  if (block.lost.has(page)) {
    (void)space_.faults().poison(fault.address, page_bytes);
    return;
  }
  if (block.here.has(page)) {
    // Another fault has brought it meanwhile. Or the program has given it back to the kernel unseen, and gets zeros as
    // it would elsewhere. The kernel decides which of the two it is.
    Counters::add(page_mover_.counters().faults_late);
    const Answer answer = space_.faults().zero(fault.address, page_bytes);
    if (answer != Answer::ok && answer != Answer::there) space_.faults().wake(fault.address, page_bytes);
    // Its protection may have been left behind, if something else was mapped nearby.
    if (answer == Answer::there && space_.drops_in_place()) {
      (void)space_.faults().protect(fault.address, page_bytes, Userfaultfd::Writes::go_on);
    }
    return;
  }

  if (random_.has(fault.address)) return bring(region, index, page, PageSet::of(page, 1), context);
  const bool by_block = may_come_whole(region, index) || rest_may_come(region, index);
  const Advice advice = streams_.fault(fault.address / page_bytes, fault.thread, by_block);
  learn_from(advice);
  if (advice.by_block && block.beside.is_empty() &&
      requests_.add({Request::What::block, &region, index, page, read_ns, fault.thread, fault.holds_block})) {
    hold.pass_on();  // a mover may have adopted it already
  } else {
    bring(region, index, page, wanted_pages(advice, page), context);
  }
  follow(advice);
}

void Pager::learn_from(const Advice& advice) noexcept {
  mix_.see_faults_by_threads(page_mover_.counters().faults_by_threads.load(std::memory_order_relaxed));
  if (advice.by_block) {
    mix_.add_stream(block_pages);
  } else if (advice.pages > 1) {
    mix_.add_stream(advice.pages / advice.every);
  } else {
    mix_.add_scattered();
  }
  page_mover_.tally().set_scattered(mix_.is_scattered());
}

bool Pager::may_come_whole(Region& region, std::size_t index) const noexcept {
  const Block& block = region.block(index);
  return page_mover_.tally().has_room_for_blocks() && !block.hidden && block.here.is_empty() &&
         !region.has_unknown_pages.load(std::memory_order_relaxed) && block.lost.is_empty() &&
         (block.beside.is_empty() || block.beside.is_whole()) && region.valid(index).is_whole();
}

// True if many pages are away: single slices would take longer than the whole rest through a buffer.
bool Pager::rest_may_come(Region& region, std::size_t index) const noexcept {
  constexpr std::size_t away_min = 128;
  const Block& block = region.block(index);
  return page_mover_.tally().has_room_for_blocks() && !block.hidden && block.beside.is_empty() &&
         !region.has_unknown_pages.load(std::memory_order_relaxed) && block.lost.is_empty() && !block.here.is_empty() &&
         block.here.count() <= block_pages - away_min && region.valid(index).is_whole();
}

// The caller holds the block.
void Pager::bring(Region& region, std::size_t index, std::size_t page, const PageSet& wanted,
                  WorkerContext& context) noexcept {
  if (region.block(index).beside.has(page)) {
    page_mover_.bring_back(region, index, wanted, page, context);
  } else {
    page_mover_.bring_in(region, index, wanted, page, PageMover::Wanted::now, context);
  }
}

void Pager::follow(const Advice& advice) noexcept {
  if (advice.passed) {
    const Address address = *advice.passed * page_bytes;
    if (const auto region = regions_.find(address)) page_mover_.passed(**region, (*region)->block_at(address));
  }
  std::uint64_t page = advice.ahead;
  for (unsigned i = 0; i < advice.count; ++i, page += static_cast<std::uint64_t>(advice.step)) {
    const Address address = page * page_bytes;
    const auto region = regions_.find(address);
    if (!region) return;
    const std::size_t block = (*region)->block_at(address);
    const auto what = advice.by_block ? Request::What::block_ahead : Request::What::page_ahead;
    const Address base = (*region)->address_of(block);
    if (!requests_.add({what, &**region, block, (address - base) / page_bytes})) return;
  }
}

}  // namespace tonari::pager
