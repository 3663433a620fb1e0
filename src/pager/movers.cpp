#include "base/clock.hpp"
#include "pager/pager.hpp"

#include <algorithm>
#include <chrono>

// The movers read ahead for streams, and make room before it is needed.
namespace tonari::pager {

void Pager::move_pages(WorkerContext& context) noexcept {
  using std::chrono_literals::operator""ms;
  bool making_room = false;
  for (;;) {
    // Above the limit, a mover retries after 100 ms: pages that could not leave may be able to later, and a lowered
    // limit must be reached even if nobody asks for room.
    const auto patience = page_mover_.resident() > page_mover_.marks().limit ? 100ms : Requests::forever;
    const auto [request, stopped] = requests_.next(making_room ? 0ms : patience);
    if (request) {
      const RegionUse use(*request->region);
      perform(*request, context);
    } else if (stopped) {
      return;
    }
    // Makes room from the high mark down to the low one, one step between requests.
    const Marks marks = page_mover_.marks();
    const std::size_t resident = page_mover_.resident();
    making_room = resident > (making_room ? marks.low : marks.high);
    if (making_room) {
      making_room = page_mover_.make_room(0, std::max(resident - 1, marks.low), context);
    } else {
      page_mover_.tally().made_room();
    }
  }
}

void Pager::perform(const Request& request, WorkerContext& context) noexcept {
  Region& region = *request.region;
  Block& block = region.block(request.block);
  if (request.what == Request::What::block) {
    bring_block(request, context);
    const std::uint64_t now = monotonic_ns();
    count_wait(request.is_counted, now - request.read_ns);
    pace_.got_page(request.thread, now);
    return;
  }
  if (region.leaves.load(std::memory_order_relaxed) || !block.try_hold()) return;
  const BlockLock hold = page_mover_.adopt(region, request.block);
  if (request.what == Request::What::block_ahead) {
    if (!block.beside.is_empty()) return;
    if (may_come_whole(region, request.block)) {
      (void)page_mover_.read_block(region, request.block, PageMover::Wanted::soon, context);
    } else if (rest_may_come(region, request.block)) {
      (void)page_mover_.bring_rest(region, request.block, PageMover::Wanted::soon, context);
    }
  } else if (!block.touched.is_empty() && !(block.here | block.beside | block.lost).has(request.page)) {
    page_mover_.bring_in(region, request.block, PageSet::of(request.page, 1), request.page, PageMover::Wanted::soon,
                         context);
  }
}

// A thread waits for the page. The block is already held for this request.
void Pager::bring_block(const Request& request, WorkerContext& context) noexcept {
  Region& region = *request.region;
  const BlockLock hold = page_mover_.adopt(region, request.block);
  if (region.leaves.load(std::memory_order_relaxed)) return;  // removal wakes the waiting thread
  if (may_come_whole(region, request.block)) {
    (void)page_mover_.read_block(region, request.block, PageMover::Wanted::now, context);
  } else if (rest_may_come(region, request.block) &&
             page_mover_.bring_rest(region, request.block, PageMover::Wanted::now, context)) {
    return;
  }
  const PageSet slice = PageSet::of(request.page / slice_pages * slice_pages, slice_pages);
  bring(region, request.block, request.page, slice, context);
}

}  // namespace tonari::pager
