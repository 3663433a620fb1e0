#include "pager/page_mover.hpp"

#include "pager/copying.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

namespace tonari::pager {

std::size_t buffers_for(std::size_t limit_bytes) noexcept {
  return std::clamp<std::size_t>(limit_bytes / block_bytes / 4, 8, 64);
}

PageMover::PageMover(Space& space, std::size_t limit_bytes, std::function<void(const Failure&)> on_failure)
    : space_(space),
      on_failure_(std::move(on_failure)),
      tally_(space.tally()),
      pool_(1, space.buffers()) {  // buffer 0 is the fault thread's
  set_limit(limit_bytes);
}

void PageMover::set_limit(std::size_t limit_bytes) noexcept {
  const std::size_t buffers = std::min(space_.buffers(), buffers_for(limit_bytes));
  tally_.set_limit(limit_bytes / page_bytes);
  second_chances_max_.store(std::max<std::size_t>(buffers / 4, 1), std::memory_order_relaxed);
  ahead_max_.store(buffers / 8 * 5, std::memory_order_relaxed);
}

bool PageMover::make_room(std::size_t pages, std::size_t mark, WorkerContext& context) noexcept {
  constexpr int refusals_max = 16;
  // A mover may wait for an agent that waits for the fault thread: see SharedPages.
  const int waits_max = context.reserve != no_buffer && has_snapshot_.load(std::memory_order_relaxed) ? 20 : 20'000;
  int refusals = 0;
  for (int waits = 0; resident() + pages > mark && refusals < refusals_max && waits < waits_max;) {
    drop_prefaulted_buffer();
    if (resident() + pages <= mark) break;
    if (is_forgotten() && drop_oldest(Pool::Kind::ahead)) continue;
    if (take_one_out(context) || drop_oldest(Pool::Kind::taken_out) || drop_oldest(Pool::Kind::ahead)) continue;
    // Other threads are working on everything that could leave, and will soon be done.
    if (carrying_.load(std::memory_order_relaxed) > 0) {
      ++waits;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    } else {
      ++refusals;
    }
  }
  return resident() + pages <= mark;
}

// Pre-faulted buffers take memory, too. Leaves one for the next block that is read, if blocks may be read whole.
void PageMover::drop_prefaulted_buffer() noexcept {
  std::optional<Buffer> buffer;
  {
    const std::lock_guard guard(mutex_);
    if (pool_.prefaulted() > (tally_.has_room_for_blocks() ? 1 : 0)) buffer = pool_.take_prefaulted();
  }
  if (!buffer) return;
  space_.empty(*buffer);
  tally_.remove_resident(block_pages);
  const std::lock_guard guard(mutex_);
  pool_.give_back(*buffer, false);
}

// Returns true if the oldest block that was read ahead is too old: its stream has stopped or turned.
bool PageMover::is_forgotten() noexcept {
  const std::lock_guard guard(mutex_);
  return pool_.age(Pool::Kind::ahead) > 4 * ahead_max_.load(std::memory_order_relaxed);
}

// Keeps the block's pages beside. Drops older blocks that are beside if there are too many.
bool PageMover::take_one_out(WorkerContext& context) noexcept {
  const Carrying carrying(carrying_);
  PolicyEntry* victim = nullptr;
  bool passed = false;
  std::size_t too_many = 0;
  {
    const std::lock_guard guard(mutex_);
    victim = policy_.take_victim();
    const std::size_t kept_max = second_chances_max_.load(std::memory_order_relaxed);
    const std::size_t kept = pool_.kept(Pool::Kind::taken_out);
    if (kept >= kept_max) too_many = kept - kept_max + 1;  // more than 1 after the limit was lowered
    if (victim != nullptr) {
      // read now, because the next taker overwrites it
      passed = victim->came_from == PolicyEntry::Queue::passed;
      if (victim->region->leaves.load(std::memory_order_relaxed)) return true;  // the region's removal forgets it
      victim->region->users.fetch_add(1, std::memory_order_relaxed);
    }
  }
  for (; too_many > 0; --too_many) drop_oldest(Pool::Kind::taken_out);
  if (victim == nullptr) return false;

  Region& region = *victim->region;
  bool done = false;
  if (region.block(victim->block).try_hold()) {
    const BlockLock hold = adopt(region, victim->block);
    done = take_out(region, victim->block, passed ? Beside::drop : Beside::keep, context);
  } else {
    const std::lock_guard guard(mutex_);
    policy_.could_not_go(*victim);
  }
  region.users.fetch_sub(1, std::memory_order_release);
  return done;
}

bool PageMover::take_out(Region& region, std::size_t index, Beside beside, WorkerContext& context) noexcept {
  Block& block = region.block(index);
  const Passage passage(leaving_);
  if (!passage.is_inside()) {
    const std::lock_guard guard(mutex_);
    if (!block.here.is_empty()) policy_.could_not_go(block.entry);
    return false;
  }
  const bool may_be_dropped = block.lost.is_empty() && !block.hidden && space_.drops_in_place() &&
                              !region.has_unknown_pages.load(std::memory_order_relaxed);
  if (may_be_dropped && !block.here.is_whole()) {
    if (const auto dropped = drop_out(region, index, context)) return *dropped;
  }
  const Buffer buffer = block.lost.is_empty() ? buffer_to_take_out(region, index, context) : no_buffer;
  PageSet taken;
  if (buffer != no_buffer) {
    // The fault thread cannot wait for an agent that may wait for the fault thread.
    const auto shared = context.reserve == no_buffer ? SharedPages::copied : SharedPages::stay;
    taken = space_.take_out(region.address_of(index), block.here, buffer, context.sums, shared);
    Counters::add(counters().pages_kept, (block.here - taken).count());
    block.here -= taken;
    block.buffer = buffer;
    const PageSet unsaved = settle(region, index, taken, buffer, context);
    if (!unsaved.is_empty()) {
      const PageSet kept = space_.move_in(region.address_of(index), unsaved, buffer);
      Counters::add(counters().pages_kept, kept.count());
      block.here |= kept;
      taken -= kept;  // all pages, unless the range has been unmapped: there is room where they came from
    }
    block.beside = taken;
  }

  if (!taken.is_empty()) {
    Counters::add(counters().blocks_taken_out);
    if (context.reserve != no_buffer) Counters::add(counters().blocks_taken_out_by_faults);
  }
  // While many pages of a small memory are kept beside, all other blocks would have to leave.
  const bool is_small = taken.count() <= marks().limit / 4;
  const bool keep = !taken.is_empty() && is_small && buffer != context.reserve && beside == Beside::keep;
  if (buffer != no_buffer && !keep) drop_beside(region, index, &context);
  const std::lock_guard guard(mutex_);
  if (keep) pool_.keep(buffer, block.entry, Pool::Kind::taken_out);
  if (!block.here.is_empty()) policy_.could_not_go(block.entry);
  return !taken.is_empty();
}

// Lets scattered pages go without moving them. To move them costs one interrupt of all processors that run the program
// for each run of pages; to protect and to drop a whole block costs two. Returns nullopt if they could not be
// protected.
std::optional<bool> PageMover::drop_out(Region& region, std::size_t index, WorkerContext& context) noexcept {
  Block& block = region.block(index);
  if (block.buffer != no_buffer) drop_beside(region, index, nullptr);
  const Address at = region.address_of(index);
  const PageSet before = block.here;
  const PageSet protected_pages = space_.protect(at, before, context.sums);
  if (protected_pages.is_empty()) return std::nullopt;
  const PageSet unsaved = settle(region, index, protected_pages, no_buffer, context);
  const PageSet gone = space_.drop_protected(at, before, protected_pages - unsaved);
  block.here -= gone;
  tally_.remove_resident(gone.count());
  Counters::add(counters().pages_kept, block.here.count());
  if (!gone.is_empty()) {
    Counters::add(counters().blocks_taken_out);
    if (context.reserve != no_buffer) Counters::add(counters().blocks_taken_out_by_faults);
  }
  const std::lock_guard guard(mutex_);
  block.here.is_empty() ? policy_.went(block.entry) : policy_.could_not_go(block.entry);
  return !gone.is_empty();
}

// Drops pages of the same block that are still beside: the source has them.
Buffer PageMover::buffer_to_take_out(Region& region, std::size_t index, WorkerContext& context) noexcept {
  if (region.block(index).buffer != no_buffer) drop_beside(region, index, nullptr);
  for (int tries = 0; tries < 2; ++tries) {
    std::optional<Buffer> buffer;
    bool prefaulted = false;
    {
      const std::lock_guard guard(mutex_);
      buffer = pool_.take_empty();
      if (!buffer && (buffer = pool_.take_prefaulted())) prefaulted = true;
    }
    if (prefaulted) tally_.remove_resident(block_pages);  // take_out() empties it
    if (buffer) return *buffer;
    if (!drop_oldest(Pool::Kind::taken_out)) break;
  }
  return context.reserve;
}

// Returns the pages that the source has not got and could not store. The pages are in `buffer`; with no_buffer they are
// in place, and protected.
PageSet PageMover::settle(Region& region, std::size_t index, const PageSet& pages, Buffer buffer,
                          WorkerContext& context) noexcept {
  const auto known = [&](std::size_t page) -> Checksum& { return region.checksums(index, page, 1).front(); };
  Block& block = region.block(index);
  PageSet zeros;
  PageSet changed;
  PageSet untouched;
  for (std::size_t page = pages.next(0); page < block_pages; page = pages.next(page + 1)) {
    const bool is_of_zeros = context.sums[page].is_of_zeros();
    if (is_of_zeros && block.assumed.has(page)) untouched |= PageSet::of(page, 1);
    if (context.sums[page] == known(page)) continue;
    (is_of_zeros ? zeros : changed) |= PageSet::of(page, 1);
  }
  block.assumed -= changed;
  set_touched(block, (block.touched | changed) - untouched);
  Counters::add(counters().pages_clean, (pages - zeros - changed).count());
  Counters::add(counters().pages_of_zeros, zeros.count());

  keep_for_children(region, index, zeros | changed);
  const auto settled = [&](std::size_t first, std::size_t count) {
    for (std::size_t page = first; page < first + count; ++page) known(page) = context.sums[page];
  };
  for_each_run(zeros, block_pages, [&](std::size_t first, std::size_t count) {
    const Status status = region.source().discard(region.place(index, first), count * page_bytes);
    if (status != Status::ok) fail(Failure::What::discard, status, region, index, first);
    settled(first, count);  // the pager does not fetch them any more
  });
  const PageSet unsaved = store(region, index, changed, buffer, context);
  for_each_run(changed - unsaved, block_pages, settled);
  refer_to_stored(region, index);
  return unsaved;
}

// Returns the pages that the source has not taken.
PageSet PageMover::store(Region& region, std::size_t index, const PageSet& pages, Buffer buffer,
                         WorkerContext& context) noexcept {
  if (pages.is_empty()) return {};
  Source& source = region.source();
  const PageSet valid = region.valid(index);
  const std::size_t first = valid.next(0);
  const std::size_t bytes = valid.count() * page_bytes;
  std::span<std::byte> into = source.room(region.place(index, first), bytes);
  const std::byte* from = buffer == no_buffer ? nullptr : space_.view(buffer);
  if (from != nullptr && into.empty()) {
    from += first * page_bytes;
  } else {
    if (into.empty()) into = context.scratch.first(bytes);
    const bool done = buffer == no_buffer ? space_.read_in_place(region.address_of(index), pages, first, into.data())
                                          : space_.read(buffer, pages, first, into.data());
    if (!done) return {};  // the process has ended
    from = into.data();
    // After a page was hashed in place, the program may have given it back to the kernel before it was copied.
    if (buffer == no_buffer) sum_pages(from, pages, context.sums, first);
  }

  PageSet unsaved;
  for_each_run(pages, block_pages, [&](std::size_t page, std::size_t count) {
    const std::span<const std::byte> run{from + (page - first) * page_bytes, count * page_bytes};
    const Status status = source.store(region.place(index, page), run);
    if (status == Status::ok) return Counters::add(counters().pages_out, count);
    fail(Failure::What::store, status, region, index, page);
    unsaved |= PageSet::of(page, count);
  });
  return unsaved;
}

// Records where threads of the address space find the block's bytes at the source.
void PageMover::refer_to_stored(Region& region, std::size_t index) noexcept {
  const PageSet valid = region.valid(index);
  const std::size_t first = valid.next(0);
  const auto bytes = region.source().look(region.place(index, first), valid.count() * page_bytes);
  const std::uint64_t reference = space_.reference_to(bytes);
  region.block(index).stored_at = reference == 0 ? 0 : reference - first * page_bytes;
}

void PageMover::set_newest(const std::shared_ptr<Snapshot>& snapshot) noexcept {
  const std::lock_guard guard(newest_mutex_);
  if (const auto before = newest_.lock()) Snapshot::connect(before, snapshot);
  newest_ = snapshot;
  has_snapshot_.store(true, std::memory_order_relaxed);
}

void PageMover::keep_for_children(Region& region, std::size_t index, const PageSet& pages) noexcept {
  if (!has_snapshot_.load(std::memory_order_relaxed)) return;
  std::shared_ptr<Snapshot> newest;
  {
    const std::lock_guard guard(newest_mutex_);
    newest = newest_.lock();
  }
  if (newest != nullptr) newest->keep(region, index, pages);
}

bool PageMover::drop_oldest(Pool::Kind kind) noexcept {
  const Carrying carrying(carrying_);
  PolicyEntry* owner = nullptr;
  {
    const std::lock_guard guard(mutex_);
    const auto oldest = pool_.oldest(kind);
    if (!oldest) return false;
    owner = oldest->owner;
    if (owner->region->leaves.load(std::memory_order_relaxed)) return false;  // the region's removal drops it
    owner->region->users.fetch_add(1, std::memory_order_relaxed);
  }
  Region& region = *owner->region;
  const bool held = region.block(owner->block).try_hold();
  if (held) {
    const BlockLock hold = adopt(region, owner->block);
    if (region.block(owner->block).buffer != no_buffer) drop_beside(region, owner->block, nullptr);
  }
  region.users.fetch_sub(1, std::memory_order_release);
  return held;
}

// `context`: the worker whose reserve the buffer may be.
void PageMover::drop_beside(Region& region, std::size_t index, WorkerContext* context) noexcept {
  Block& block = region.block(index);
  const Buffer buffer = block.buffer;
  const bool is_reserve = context != nullptr && buffer == context->reserve;
  const bool prefaulted = block.beside.is_whole() && !is_reserve && tally_.has_room_for_blocks();
  bool in_vain = false;
  {
    const std::lock_guard guard(mutex_);
    in_vain = !is_reserve && pool_.is_ahead(buffer);
  }
  if (in_vain) Counters::add(counters().pages_in_vain, stored(region, index, block.beside).count());
  if (!prefaulted) {
    space_.empty(buffer);
    tally_.remove_resident(block.beside.count());
  }
  block.beside = {};
  block.buffer = no_buffer;
  const std::lock_guard guard(mutex_);
  if (!is_reserve) pool_.give_back(buffer, prefaulted);
  if (block.here.is_empty()) policy_.went(block.entry);
}

Status PageMover::discard(Region& region, std::size_t index, const PageSet& pages) noexcept {
  Block& block = region.block(index);
  Status result = Status::ok;
  if (block.buffer != no_buffer) drop_beside(region, index, nullptr);
  keep_for_children(region, index, pages);
  const PageSet mapped = (block.here | block.lost) & pages;
  for_each_run(pages, block_pages, [&](std::size_t first, std::size_t count) {
    if (!mapped.is_empty()) space_.drop(region.address_of(index) + first * page_bytes, count * page_bytes);
    const auto sums = region.checksums(index, first, count);
    if (std::ranges::all_of(sums, &Checksum::is_of_zeros)) return;
    std::ranges::fill(sums, Checksum{});
    const Status status = region.source().discard(region.place(index, first), count * page_bytes);
    if (status == Status::ok) return;
    fail(Failure::What::discard, status, region, index, first);
    result = status;
  });
  tally_.remove_resident((block.here & pages).count());
  block.here -= pages;
  block.lost -= pages;
  set_touched(block, block.touched - pages);
  block.fetched -= pages;  // their next bytes are new
  refer_to_stored(region, index);
  const std::lock_guard guard(mutex_);
  if (block.here.is_empty()) policy_.forget(block.entry);
  return result;
}

// A block that is beside could come back whole, which drops whatever else is mapped between its pages.
void PageMover::hide(Region& region, std::size_t index) noexcept {
  Block& block = region.block(index);
  if (block.buffer != no_buffer) drop_beside(region, index, nullptr);
  block.hidden = true;
}

void PageMover::passed(Region& region, std::size_t index) noexcept {
  const std::lock_guard guard(mutex_);
  policy_.passed(region.block(index).entry);
}

void PageMover::forget(Region& region) noexcept {
  {
    const std::lock_guard guard(mutex_);
    region.leaves.store(true, std::memory_order_relaxed);
  }
  // Acquire: sees all that the region's users did. They are few, and no new ones come.
  while (region.users.load(std::memory_order_acquire) != 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  const Carrying carrying(carrying_);
  for (std::size_t index = region.next_known(0); index < region.blocks(); index = region.next_known(index + 1)) {
    Block& block = region.block(index);
    if (block.buffer != no_buffer) drop_beside(region, index, nullptr);
    tally_.remove_resident(block.here.count());
    set_touched(block, {});
    const std::lock_guard guard(mutex_);
    policy_.forget(block.entry);
  }
}

void PageMover::fail(Failure::What what, Status status, Region& region, std::size_t index, std::size_t page) noexcept {
  Counters::add(counters().failures);
  if (on_failure_) on_failure_({what, status, region.start(), region.place(index, page) / page_bytes});
}

}  // namespace tonari::pager
