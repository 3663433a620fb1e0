#include "base/unchecked_reads.hpp"
#include "share/array/array.hpp"
#include "share/coherence/diffs.hpp"
#include "share/coherence/notice_tree.hpp"
#include "share/shared_memory.hpp"

#include <cstring>
#include <mutex>

// Requests to the home of pages, and notices to the ranks with copies.
namespace tonari::share {

using fabric::BulkPlace;
using fabric::Lane;
using Writes = pager::Userfaultfd::Writes;

namespace {

constexpr std::uint8_t releases_to_move = 2;  // consecutive ones, in which only one rank changed the page

}  // namespace

bool Array::serve(Kind kind, int peer, const Words& request, std::span<const std::byte> tail) noexcept {
  switch (kind) {
    case Kind::share_fetch: return serve_fetch(peer, request);
    case Kind::share_changes: return serve_changes(peer, request, tail);
    case Kind::share_notice:
      take_notice(request.first, request.extra);
      note(peer, request);
      return true;
    case Kind::share_notices:
      pass_on(kind, peer, request, tail,
              [&] { for_each_in<PageRun>(tail, [this](const PageRun& run) { take_notice(run.first, run.count); }); });
      return true;
    case Kind::share_update:
      pass_on(kind, peer, request, tail, [&] {
        auto rest = tail;
        for (Change change = Change::read(rest); change.bytes != 0; change = Change::read(rest)) {
          if (change.page < plan_.pages()) take_update(change);
          rest = rest.subspan(change.bytes);
        }
      });
      return true;
    case Kind::share_told:
      for_each_in<Entry>(tail, [&](Entry entry) {
        if (shared_memory_.size() > 64) entry.ranks &= ~rank_bit(peer);  // other ranks share the peer's bit: keep it
        if (entry.page < plan_.pages()) told(entry);
      });
      return true;
    default: return true;  // malformed: drop it
  }
}

void Array::note(int peer, const Words& request) noexcept {
  shared_memory_.send_queue().post(peer, head_of(Kind::share_noted, shared_memory_.rank(), reply_to(request)),
                                   Lane::reply);
}

// Passes the notice on to the ranks below in the tree before take() handles it: they wait longest.
template <class Take>
void Array::pass_on(Kind kind, int peer, const Words& request, std::span<const std::byte> tail, Take take) {
  NoticeTree::Relay* const relay = shared_memory_.notice_tree().pass_on(kind, peer, request, tail);
  take();
  if (relay == nullptr) return note(peer, request);
  relay->end_one();
}

bool Array::serve_fetch(int peer, const Words& request) noexcept {
  const std::uint64_t page = request.first;
  const std::size_t i = page % pages_per_block;
  Words reply = reply_to(request);
  const bool sane = page < plan_.pages() && request.count - 1 < Fetch::pages_max &&
                    i + request.count <= pages_per_block && request.count <= plan_.pages() - page;
  // Takes even the last bulk memory: the threads that would free other blocks may wait for this page.
  const auto room = sane ? shared_memory_.engine().bulk().allocate(request.count * page_bytes, peer, 0) : BulkPlace{};
  if (!room) return false;
  const int rank = shared_memory_.rank();
  std::size_t count = 0;
  if (sane) {
    PageBlock& block = this->block(page / pages_per_block);
    const std::lock_guard guard(block.lock);
    begin(block, page / pages_per_block);
    count = run_from(block.states.home(), i, request.count);
    reply.extra = block.homes[i];  // used if count is 0
    if (count != 0 && grant(block, i, peer)) {
      count = 1;
      reply.extra = 1;
      block.states.give_up_home(bit(i));
      block.homes[i] = static_cast<std::uint32_t>(peer);
      std::memset(shared_memory_.requests().at(*room), 0, page_bytes);
    } else if (count != 0) {
      reply.extra = 0;
      give(block, bits(i, count), page - i, peer);
      const UncheckedReads
          a_multicast_may_be_coming;  // and overwrites the copy at the peer before any thread there can read it
      std::memcpy(shared_memory_.requests().at(*room), data_of(page), count * page_bytes);
      for_each_page(bits(i, count) & block.states.presumed_dirty(), [&](std::size_t given) {
        expect_given(block, page - i + given, shared_memory_.requests().at(*room) + (given - i) * page_bytes);
      });
    }
  }
  if (count == 0) {
    if (sane) shared_memory_.requests().give_back(*room);
    shared_memory_.send_queue().post(peer, head_of(Kind::share_moved, rank, reply), Lane::reply);
    return true;
  }
  reply.tail_bytes = count * page_bytes;
  reply.tail_place = room->value;
  shared_memory_.send_queue().post(peer, head_of(Kind::share_pages, rank, reply), Lane::reply);
  return true;
}

// Returns true if the peer becomes the page's home, because it is the first to use it.
bool Array::grant(PageBlock& block, std::size_t page, int peer) const noexcept {
  return plan_.by_first_touch() && peer != shared_memory_.rank() && !has(block.states.in_file(), page);
}

// Records that the peer gets copies of `pages`. From now on the first write of each interval is caught; earlier writes
// are in the copies.
void Array::give(PageBlock& block, Mask pages, std::uint64_t first, int peer) noexcept {
  if (!named_) {
    expect_writes(block, pages & block.states.untracked() & block.states.migratory(), first);
    const Mask untracked = pages & block.states.untracked();
    protect(untracked, first, Writes::wait);
    block.states.catch_writes(untracked);
  }
  block.states.has_memory(pages);
  for_each_page(pages, [&](std::size_t page) {
    block.copyset[page] |= rank_bit(peer);
    if (!has(block.states.dirty(), page)) block.up_to_date[page] |= rank_bit(peer);
    ++block.copies_given[page];
  });
}

bool Array::serve_changes(int peer, const Words& request, std::span<const std::byte> changes) noexcept {
  if (request.count == 0 || request.count > entries_max) return true;  // malformed: drop it
  const auto room = shared_memory_.engine().bulk().allocate(request.count * sizeof(Entry), peer, 0);
  if (!room) return false;
  std::byte* const entries = shared_memory_.requests().at(*room);
  std::size_t said = 0;
  for (std::uint32_t n = 0; n < request.count; ++n) {
    const Change change = Change::read(changes);
    if (change.bytes == 0 || change.page >= plan_.pages()) break;  // malformed: drop the rest
    changes = changes.subspan(change.bytes);
    const Entry entry = take_change(change, peer);
    if (entry.said == Said::copies && entry.ranks == 0) continue;
    std::memcpy(entries + said++ * sizeof entry, &entry, sizeof entry);
  }
  Words reply = reply_to(request);
  Kind kind = Kind::share_taken;
  if (said == 0) {
    shared_memory_.requests().give_back(*room);
  } else {
    kind = Kind::share_copies;
    reply.tail_bytes = said * sizeof(Entry);
    reply.tail_place = room->value;
  }
  shared_memory_.send_queue().post(peer, head_of(kind, shared_memory_.rank(), reply), Lane::reply);
  return true;
}

Entry Array::take_change(const Change& change, int peer) noexcept {
  const std::size_t i = change.page % pages_per_block;
  PageBlock& block = this->block(change.page / pages_per_block);
  const std::lock_guard guard(block.lock);
  begin(block, change.page / pages_per_block);
  if (!has(block.states.home(), i)) return {change.page, block.homes[i], 0, Said::moved};
  change.apply(data_of(change.page));
  if (has(block.states.presumed_dirty(), i)) change.apply(twin_of(change.page));
  block.states.has_memory(bit(i));
  block.up_to_date[i] &= rank_bit(peer);
  if (has(block.states.written_this_turn() | block.states.written_last_turn(), i)) {  // this rank's turn has ended
    block.states.mark_stale(bit(i));
    stale_.add(change.page / pages_per_block);
    shared_memory_.has_stale();
  }
  // In jobs of more than 64 ranks the peer's bit stays: another rank that shares the bit may have a copy.
  const Ranks others = shared_memory_.size() <= 64 ? block.copyset[i] & ~rank_bit(peer) : block.copyset[i];
  Entry entry{change.page, others, block.copies_given[i], Said::copies};
  if (may_move(block, i, peer)) {
    entry.said = Said::yours;
    if (has(block.states.mapped(), i)) entry.ranks |= rank_bit(shared_memory_.rank());
    block.states.give_up_home(bit(i));
    block.homes[i] = static_cast<std::uint32_t>(peer);
    block.releases_in_row[i] = 0;
    if (has(block.states.writable(), i)) {
      protect(bit(i), change.page - i, Writes::wait);
      block.states.catch_writes(bit(i));
    }
  }
  return entry;
}

// Returns true if the page's home moves to the peer: it alone writes the page, and its copy has all that was written
// here. Counts the peer's release.
bool Array::may_move(PageBlock& block, std::size_t page, int peer) const noexcept {
  const auto writer = static_cast<std::uint32_t>(peer) + 1;
  std::uint8_t& in_row = block.releases_in_row[page];
  in_row = block.last_writer[page] == writer ? static_cast<std::uint8_t>(in_row + 1) : 1;
  block.last_writer[page] = writer;
  return homes_move_ && in_row >= releases_to_move && !has(block.states.dirty(), page) &&
         (block.up_to_date[page] & rank_bit(peer)) != 0;
}

void Array::take_notice(std::uint64_t first, std::uint64_t count) noexcept {
  if (first > plan_.pages() || count > plan_.pages() - first) return;  // malformed: drop it
  bool some = false;
  for (std::uint64_t page = first; page < first + count;) {
    const std::size_t i = page % pages_per_block;
    const std::size_t here = std::min<std::uint64_t>(first + count - page, pages_per_block - i);
    PageBlock& block = this->block(page / pages_per_block);
    {
      const std::lock_guard guard(block.lock);
      const Mask pages = bits(i, here) & block.states.copies();
      block.states.mark_stale(pages);
      if (pages != 0) {
        stale_.add(page / pages_per_block);
        some = true;
      }
    }
    page += here;
  }
  if (some) shared_memory_.has_stale();
}

// Stores only the changed bytes: bytes beside them may hold writes of this rank that were not released yet.
void Array::take_update(const Change& change) noexcept {
  const std::size_t i = change.page % pages_per_block;
  {
    PageBlock& block = this->block(change.page / pages_per_block);
    const std::lock_guard guard(block.lock);
    if (!has(block.states.copies(), i)) return;
    if (!has(block.states.fetching(), i)) {
      change.apply(data_of(change.page));
      if (has(block.states.dirty(), i)) change.apply(twin_of(change.page));
      return;
    }
    block.states.mark_stale(bit(i));  // the reply may be older than the change
    stale_.add(change.page / pages_per_block);
  }
  shared_memory_.has_stale();
}

void Array::told(const Entry& entry) noexcept {
  const std::size_t i = entry.page % pages_per_block;
  PageBlock& block = this->block(entry.page / pages_per_block);
  const std::lock_guard guard(block.lock);
  if (!has(block.states.home(), i)) return;
  if (block.copies_given[i] == entry.copies_given) {
    block.copyset[i] &= ~entry.ranks;
    if (block.copyset[i] == 0) block.states.mark_told(bit(i));  // every rank with an old copy knows
  }
  if (!has(block.states.dirty(), i)) return;
  dirty_.add(entry.page / pages_per_block);  // for the next release
  shared_memory_.has_dirty();
}

}  // namespace tonari::share
