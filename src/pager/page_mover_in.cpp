#include "pager/page_mover.hpp"

#include <algorithm>
#include <cstring>

namespace tonari::pager {

void PageMover::bring_in(Region& region, std::size_t index, const PageSet& asked, std::size_t page, Wanted wanted,
                         WorkerContext& context) noexcept {
  Block& block = region.block(index);
  const PageSet pages = asked & (region.valid(index) - block.here - block.beside - block.lost);
  // After the limit was lowered, a single fault does not wait until all surplus pages have left.
  const std::size_t limit = marks().limit;
  const std::size_t mark = std::max(limit, resident() - std::min(resident(), block_pages));
  if (!make_room(pages.count(), mark, context)) {
    // nothing else could leave: take out this block's other pages
    (void)take_out(region, index, Beside::drop, context);
    if (resident() + pages.count() > mark) Counters::add(counters().times_over_limit);
  }

  // before the page is visible to the program
  touch(region, index, pages, wanted == Wanted::now ? PageSet::of(page, 1) : PageSet{});
  bool done = true;
  for_each_run(pages, slice_pages, [&](std::size_t first, std::size_t count) {
    done = done && place(region, index, first, count, context);
  });
  // The failure may be a neighbour's: tries the page alone.
  if (!done && !block.here.has(page) && !place(region, index, page, 1, context)) lose(region, index, page);
  const std::lock_guard guard(mutex_);
  policy_.came(block.entry);
}

// A page that was placed where one was present already is `touched`, and may have left again.
void PageMover::know_present(Region& region, std::size_t index, const PageSet& pages) noexcept {
  Block& block = region.block(index);
  const PageSet came = pages & (region.valid(index) - block.here - block.beside - block.lost - block.touched);
  if (came.is_empty()) return;
  touch(region, index, came, came);
  block.here |= came;
  tally_.add_resident(came.count());
  const std::lock_guard guard(mutex_);
  policy_.came(block.entry);
}

// Pages of zeros are placed without a fetch.
bool PageMover::place(Region& region, std::size_t index, std::size_t first, std::size_t count,
                      WorkerContext& context) noexcept {
  const auto sums = region.checksums(index, first, count);
  for (std::size_t done = 0; done < count;) {
    const bool zeros = sums[done].is_of_zeros();
    std::size_t end = done + 1;
    while (end < count && sums[end].is_of_zeros() == zeros) ++end;
    if (zeros) {
      const Address at = region.address_of(index) + (first + done) * page_bytes;
      const Answer answer = space_.faults().zero(at, (end - done) * page_bytes);
      if (answer != Answer::ok && answer != Answer::there) {
        space_.faults().wake(at, (end - done) * page_bytes);  // threads that wait fault again
      } else {
        region.block(index).here |= PageSet::of(first + done, end - done);
        tally_.add_resident(end - done);
      }
    } else if (!place_bytes(region, index, first + done, end - done, context)) {
      return false;
    }
    done = end;
  }
  return true;
}

bool PageMover::place_bytes(Region& region, std::size_t index, std::size_t first, std::size_t count,
                            WorkerContext& context) noexcept {
  const std::uint64_t at_source = region.place(index, first);
  const std::size_t bytes = count * page_bytes;
  std::span<const std::byte> from = region.source().look(at_source, bytes);
  if (from.empty()) {
    const std::span<std::byte> into = context.scratch.first(bytes);
    const Status status = region.source().fetch(at_source, into);
    if (status != Status::ok) {
      fail(Failure::What::fetch, status, region, index, first);
      return false;
    }
    from = into;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_as_stored(region, index, first + i, checksum_of(from.data() + i * page_bytes))) return false;
  }

  const Address to = region.address_of(index) + first * page_bytes;
  const auto copy = [&](std::size_t done, std::size_t pages) {
    const Answer answer =
        space_.faults().copy(to + done * page_bytes, from.data() + done * page_bytes, pages * page_bytes);
    if (answer != Answer::ok && answer != Answer::there) return false;
    region.block(index).here |= PageSet::of(first + done, pages);
    tally_.add_resident(pages);
    count_fetched(region.block(index), PageSet::of(first + done, pages));
    return true;
  };
  if (copy(0, count)) return true;
  // The range is unmapped, or there is no memory just now: threads that wait find that out, or fault again. Copies page
  // by page, so that it is known which pages have come.
  for (std::size_t done = 0; done < count && copy(done, 1);) ++done;
  space_.faults().wake(to, bytes);
  return true;
}

void PageMover::count_fetched(Block& block, const PageSet& pages) noexcept {
  const std::uint32_t count = tally_.count();
  if (block.fetched_in != count) block.fetched = {};
  block.fetched_in = count;
  Counters::add(counters().pages_in, pages.count());
  Counters::add(counters().pages_in_again, (pages & block.fetched).count());
  block.fetched |= pages;
}

bool PageMover::is_as_stored(Region& region, std::size_t index, std::size_t page, const Checksum& found) noexcept {
  Checksum& known = region.checksums(index, page, 1).front();
  if (known == unknown_checksum) known = found;
  if (known == found) return true;
  fail(Failure::What::wrong_bytes, Status::ok, region, index, page);
  return false;
}

// Counts pages that come as touched. A page that nobody has wanted and that has no data is only assumed to be.
void PageMover::touch(Region& region, std::size_t index, const PageSet& came, const PageSet& wanted) noexcept {
  Block& block = region.block(index);
  const PageSet certain = wanted | stored(region, index, came - wanted);
  block.assumed |= came - block.touched;
  block.assumed -= certain;
  set_touched(block, block.touched | came);
}

void PageMover::set_touched(Block& block, const PageSet& touched) noexcept {
  const std::size_t more = touched.count() - block.touched.count();  // may be less: the sum wraps around
  block.touched = touched;
  block.assumed &= touched;
  if (more != 0) tally_.add_touched(more);
}

// Returns the pages whose bytes the source has. All others are zeros.
PageSet PageMover::stored(Region& region, std::size_t index, const PageSet& pages) noexcept {
  PageSet found;
  for (std::size_t page = pages.next(0); page < block_pages; page = pages.next(page + 1)) {
    if (!region.checksums(index, page, 1).front().is_of_zeros()) found |= PageSet::of(page, 1);
  }
  return found;
}

void PageMover::lose(Region& region, std::size_t index, std::size_t page) noexcept {
  (void)space_.faults().poison(region.address_of(index) + page * page_bytes, page_bytes);
  region.block(index).lost |= PageSet::of(page, 1);
}

void PageMover::bring_back(Region& region, std::size_t index, const PageSet& wanted, std::size_t page,
                           WorkerContext& context) noexcept {
  Block& block = region.block(index);
  const bool whole = block.beside.is_whole() && block.here.is_empty();
  const PageSet pages = whole ? block.beside : block.beside & (wanted | PageSet::of(page, 1));
  PageSet came = space_.move_in(region.address_of(index), pages, block.buffer);
  if (!came.has(page)) came |= copy_back(region, index, page, context);
  if (came.is_empty()) return;  // unmapped, or pinned by a reader of the buffer
  // A block that was in use before comes with zeros in between, which are not in use.
  const PageSet wanted_now = PageSet::of(page, 1);
  const bool is_new = block.touched.is_empty();
  touch(region, index, is_new ? came : came & (stored(region, index, came) | wanted_now), wanted_now);
  block.here |= came;
  block.beside -= came;

  const std::lock_guard guard(mutex_);
  if (pool_.is_ahead(block.buffer)) {
    Counters::add(counters().read_ahead_hits);
    policy_.came(block.entry);
  } else {
    Counters::add(counters().second_chances, came.count());
    policy_.wanted_again(block.entry);
  }
  if (block.beside.is_empty()) {
    pool_.give_back(block.buffer, false);
    block.buffer = no_buffer;
  }
}

// Pages of a range that the program has protected cannot be moved, only copied. The buffer's page is dropped later.
PageSet PageMover::copy_back(Region& region, std::size_t index, std::size_t page, WorkerContext& context) noexcept {
  const std::span<std::byte> bytes = context.scratch.first(page_bytes);
  if (!space_.read(region.block(index).buffer, PageSet::of(page, 1), page, bytes.data())) return {};
  const Answer answer = space_.faults().copy(region.address_of(index) + page * page_bytes, bytes.data(), bytes.size());
  return answer == Answer::ok ? PageSet::of(page, 1) : PageSet{};
}

bool PageMover::read_block(Region& region, std::size_t index, Wanted wanted, WorkerContext& context) noexcept {
  Block& block = region.block(index);
  const Buffer buffer = prefaulted_buffer(wanted, context);
  if (buffer == no_buffer) return false;
  if (!fill(region, index, PageSet::of(0, block_pages), buffer, context)) {
    const std::lock_guard guard(mutex_);
    pool_.give_back(buffer, true);
    return false;
  }
  block.beside = PageSet::of(0, block_pages);
  block.buffer = buffer;
  Counters::add(counters().blocks_read_ahead);
  const std::lock_guard guard(mutex_);
  pool_.keep(buffer, block.entry, Pool::Kind::ahead);
  return true;
}

bool PageMover::bring_rest(Region& region, std::size_t index, Wanted wanted, WorkerContext& context) noexcept {
  Block& block = region.block(index);
  const PageSet away = PageSet::of(0, block_pages) - block.here;
  const Buffer buffer = prefaulted_buffer(wanted, context);
  if (buffer == no_buffer) return false;
  const bool filled = fill(region, index, away, buffer, context);
  const PageSet came = filled ? space_.move_in(region.address_of(index), away, buffer) : PageSet{};
  touch(region, index, came, {});
  block.here |= came;
  space_.empty(buffer);
  tally_.remove_resident(block_pages - came.count());
  const std::lock_guard guard(mutex_);
  pool_.give_back(buffer, false);
  policy_.came(block.entry);
  return filled;
}

// Fills the buffer with `pages`, and with zeros elsewhere.
bool PageMover::fill(Region& region, std::size_t index, const PageSet& pages, Buffer buffer,
                     WorkerContext& context) noexcept {
  const PageSet fetched = stored(region, index, pages);
  const std::byte* const from = stored_bytes(region, index, fetched, buffer, context);
  if (from == nullptr || !space_.fill(buffer, from, fetched, context.sums)) return false;
  for (std::size_t page = fetched.next(0); page < block_pages; page = fetched.next(page + 1)) {
    if (!is_as_stored(region, index, page, context.sums[page])) return false;
  }
  count_fetched(region.block(index), fetched);
  return true;
}

// Returns a block that has the source's contents in the pages of `stored`, or nullptr if the source failed.
const std::byte* PageMover::stored_bytes(Region& region, std::size_t index, const PageSet& stored, Buffer buffer,
                                         WorkerContext& context) noexcept {
  Source& source = region.source();
  const std::span<const std::byte> seen = source.look(region.place(index, 0), block_bytes);
  if (!seen.empty()) return seen.data();
  std::byte* const view = space_.view(buffer);
  std::byte* const block = view != nullptr ? view : context.scratch.data();
  Status status = Status::ok;
  for_each_run(stored, block_pages, [&](std::size_t first, std::size_t count) {
    if (status != Status::ok) return;
    status = source.fetch(region.place(index, first), {block + first * page_bytes, count * page_bytes});
    if (status != Status::ok) fail(Failure::What::fetch, status, region, index, first);
  });
  return status == Status::ok ? block : nullptr;
}

// Returns a buffer that can be filled at once. In the steady state of streams, each block that is taken out leaves one.
Buffer PageMover::prefaulted_buffer(Wanted wanted, WorkerContext& context) noexcept {
  constexpr int tries_max = 8;
  for (int tries = 0; tries < tries_max; ++tries) {
    std::optional<Buffer> buffer;
    bool forgotten = false;
    {
      const std::lock_guard guard(mutex_);
      const std::size_t ahead_max = ahead_max_.load(std::memory_order_relaxed);
      if (wanted == Wanted::soon && pool_.kept(Pool::Kind::ahead) >= ahead_max) {
        forgotten = pool_.age(Pool::Kind::ahead) > 4 * ahead_max;  // its stream has stopped or turned
        if (!forgotten) return no_buffer;
      }
      if ((buffer = pool_.take_prefaulted())) return *buffer;
      if (resident() + block_pages <= marks().high) buffer = pool_.take_empty();
    }
    if (buffer) {
      if (space_.prefault(*buffer)) {
        tally_.add_resident(block_pages);
        return *buffer;
      }
      const std::lock_guard guard(mutex_);
      pool_.give_back(*buffer, false);
      return no_buffer;
    }
    if (forgotten && drop_oldest(Pool::Kind::ahead)) continue;
    if (take_one_out(context) || drop_oldest(Pool::Kind::taken_out)) continue;
    if (wanted == Wanted::soon || !drop_oldest(Pool::Kind::ahead)) return no_buffer;
  }
  return no_buffer;
}

}  // namespace tonari::pager
