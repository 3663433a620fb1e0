#include "pager/pager.hpp"

#include <algorithm>

// Hints from the program about its accesses. The contents of its memory never depend on them.
namespace tonari::pager {

void Pager::will_need(Address start, std::size_t bytes) noexcept {
  const auto region = regions_.find(start);
  if (!region) return;
  const Address end = std::min(start + bytes, (*region)->end());
  for (Address at = start / page_bytes * page_bytes; at < end;) {
    const std::size_t block = (*region)->block_at(at);
    const Address base = (*region)->address_of(block);
    const bool whole =
        at == base && end - at >= block_bytes && page_mover_.tally().has_room_for_blocks();  // the mover checks again
    const auto what = whole ? Request::What::block_ahead : Request::What::page_ahead;
    // The queue is full: the rest comes when it is touched.
    if (!requests_.add({what, &**region, block, (at - base) / page_bytes})) return;
    at += whole ? block_bytes : page_bytes;
  }
}

void Pager::done_with(Address start, std::size_t bytes) noexcept {
  const auto region = regions_.find(start);
  if (!region) return;
  const Address end = std::min(start + bytes, (*region)->end());
  for (Address at = (start + block_bytes - 1) / block_bytes * block_bytes; at + block_bytes <= end; at += block_bytes) {
    page_mover_.passed(**region, (*region)->block_at(at));
  }
}

void Pager::expect(Address start, std::size_t bytes, Pattern pattern) noexcept {
  const Address end = start + std::min<std::size_t>(bytes, ~start);
  pattern == Pattern::random ? random_.add(start, end) : random_.remove(start, end);
}

}  // namespace tonari::pager
