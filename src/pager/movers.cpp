#include "pager/pager.hpp"

#include <algorithm>
#include <chrono>

// The movers: they read ahead for streams, and make room before it is needed.
namespace tonari::pager {

void Pager::move_pages(Desk& desk) noexcept {
  using std::chrono_literals::operator""ms;
  bool making_room = false;
  for (;;) {
    // What could not go may be able to later, and nobody may ask again: a limit that was lowered is to hold.
    const auto patience = porter_.resident() > porter_.marks().limit ? 100ms : Requests::forever;
    const auto [request, stopped] = requests_.next(making_room ? 0ms : patience);
    if (request) {
      const RegionUse use(*request->region);
      if (!use->leaves.load(std::memory_order_relaxed)) perform(*request, desk);
    } else if (stopped) {
      return;
    }
    // From the high mark down to the low one, a step between any two requests.
    const Marks marks = porter_.marks();
    const std::size_t resident = porter_.resident();
    making_room = resident > (making_room ? marks.low : marks.high);
    if (making_room) making_room = porter_.make_room(0, std::max(resident - 1, marks.low), desk);
  }
}

void Pager::perform(const Request& request, Desk& desk) noexcept {
  Region& region = *request.region;
  Block& block = region.block(request.block);
  if (request.what == Request::What::block) {
    bring_block(request, desk);
    return;
  }
  if (!block.try_hold()) return;
  const Hold hold(space_, region, request.block, Hold::Adopt::adopt);
  if (request.what == Request::What::block_ahead) {
    if (block.beside.is_empty() && may_come_whole(region, request.block)) {
      (void)porter_.read_block(region, request.block, Porter::Wanted::soon, desk);
    }
  } else if (!(block.here | block.beside | block.lost).has(request.page)) {
    porter_.bring_in(region, request.block, PageSet::of(request.page, 1), request.page, desk);
  }
}

// A thread waits. If somebody holds the block it is woken by them, and asks again.
void Pager::bring_block(const Request& request, Desk& desk) noexcept {
  Region& region = *request.region;
  Block& block = region.block(request.block);
  if (!block.try_hold_or_want()) return;
  const Hold hold(space_, region, request.block, Hold::Adopt::adopt);
  if ((block.here | block.lost).has(request.page)) {
    space_.faults().wake(region.address_of(request.block), block_bytes);
    return;
  }
  if (block.beside.is_empty() && may_come_whole(region, request.block)) {
    (void)porter_.read_block(region, request.block, Porter::Wanted::now, desk);
  }
  bring(region, request.block, request.page, Advice::Chunk::slice, desk);
}

}  // namespace tonari::pager
