#include "far/tiered_store.hpp"

#include "far/blocks.hpp"

#include <algorithm>

namespace tonari::far {

using pager::block_bytes;
using pager::block_pages;
using pager::page_bytes;
using pager::PageSet;

namespace {

// Most blocks that one call moves, so that no store waits long.
constexpr int moved_blocks_max = 4;
// Most blocks in turn that stay in memory because they were fetched: finding the coldest block must not take long.
constexpr int passed_over_max = 64;
// Room that is kept free for pages on their way out.
constexpr std::uint64_t headroom_bytes_max = 64ULL << 20;

PageSet pages_of_block(std::uint64_t place, std::uint64_t bytes) noexcept {
  return PageSet::of(place % block_bytes / page_bytes, bytes / page_bytes);
}

}  // namespace

TieredStore::TieredStore(const Servers& servers, PackedStore& packed, FileStore& file, std::uint64_t bytes)
    : servers_(servers),
      packed_(packed),
      file_(file),
      block_memory_(Mapping::of_sparse_zeros((bytes + block_bytes - 1) / block_bytes * sizeof(Block),
                                             "the table of far memory's blocks")),
      blocks_(reinterpret_cast<Block*>(block_memory_.bytes().data())),
      moved_memory_(Mapping::of_zeros(block_bytes, "the block that moves to far memory's file")) {}

Status TieredStore::fetch(std::uint64_t place, std::span<std::byte> into) noexcept {
  return for_each_block(place, into.size(), [&](std::uint64_t at, std::uint64_t bytes) {
    return fetch_from_block(at, into.subspan(at - place, bytes));
  });
}

Status TieredStore::fetch_from_block(std::uint64_t place, std::span<std::byte> into) noexcept {
  const std::lock_guard guard(lock_of(place / block_bytes));
  Block& block = blocks_[place / block_bytes];
  Status status = Status::ok;
  for (std::size_t done = 0; done < into.size() && status == Status::ok;) {
    const std::size_t page = (place + done) % block_bytes / page_bytes;
    const bool is_filed = block.filed.has(page);
    const std::size_t end = is_filed ? block.filed.next_without(page) : block.filed.next(page);
    const std::span<std::byte> run = into.subspan(done, std::min((end - page) * page_bytes, into.size() - done));
    if (is_filed) {
      status = file_.fetch(place + done, run);
      from_file_.fetch_add(run.size(), std::memory_order_relaxed);
    } else {
      status = packed_.fetch(place + done, run);
      block.fetched.store(true, std::memory_order_relaxed);
    }
    done += run.size();
  }
  return status;
}

Status TieredStore::store(std::uint64_t place, std::span<const std::byte> from) noexcept {
  if (const Status status = move_early(); status != Status::ok) return status;
  return for_each_block(place, from.size(), [&](std::uint64_t at, std::uint64_t bytes) {
    return store_in_block(at, from.subspan(at - place, bytes));
  });
}

// The servers may be full although has_room() returns true: free slots of one size are no use for pages of another.
Status TieredStore::store_in_block(std::uint64_t place, std::span<const std::byte> from) noexcept {
  Status status = store_packed(place, from);
  if (status != Status::no_memory) return status;
  if (status = move_now(); status != Status::ok) return status;
  status = store_packed(place, from);
  return status == Status::no_memory ? store_in_file(place, from) : status;
}

Status TieredStore::store_packed(std::uint64_t place, std::span<const std::byte> from) noexcept {
  const std::uint64_t number = place / block_bytes;
  const std::lock_guard guard(lock_of(number));
  if (const Status status = packed_.store(place, from); status != Status::ok) return status;
  Block& block = blocks_[number];
  const PageSet pages = pages_of_block(place, from.size());
  if (!(block.filed & pages).is_empty()) {
    (void)file_.discard(place, from.size());  // always returns ok
    block.filed -= pages;
  }
  if (block.packed.is_empty()) queue(number);
  block.packed |= pages;
  return Status::ok;
}

Status TieredStore::store_in_file(std::uint64_t place, std::span<const std::byte> from) noexcept {
  const std::lock_guard guard(lock_of(place / block_bytes));
  return write_file(place, from);
}

// Call it with the lock of the block.
Status TieredStore::write_file(std::uint64_t place, std::span<const std::byte> from) noexcept {
  const Status status = file_.store(place, from);
  disk_is_full_.store(status == Status::no_memory, std::memory_order_relaxed);
  if (status != Status::ok) return status;
  to_file_.fetch_add(from.size(), std::memory_order_relaxed);
  (void)packed_.discard(place, from.size());  // always returns ok
  Block& block = blocks_[place / block_bytes];
  block.packed -= pages_of_block(place, from.size());
  block.filed |= pages_of_block(place, from.size());
  return Status::ok;
}

Status TieredStore::discard(std::uint64_t place, std::uint64_t bytes) noexcept {
  return for_each_block(place, bytes, [&](std::uint64_t at, std::uint64_t part) {
    const std::lock_guard guard(lock_of(at / block_bytes));
    Block& block = blocks_[at / block_bytes];
    const PageSet pages = pages_of_block(at, part);
    Status status = Status::ok;
    if (!(block.packed & pages).is_empty()) status = packed_.discard(at, part);
    if (status == Status::ok && !(block.filed & pages).is_empty()) status = file_.discard(at, part);
    block.packed -= pages;
    block.filed -= pages;
    return status;
  });
}

// Counts the free slots of this store's chunks and the chunks that nobody uses.
bool TieredStore::has_room() const noexcept {
  const std::uint64_t capacity = servers_.capacity_bytes();
  const std::uint64_t used = servers_.used_bytes();
  const std::uint64_t room = packed_.free_bytes() + (used < capacity ? capacity - used : 0);
  return room >= std::min(capacity / 16, headroom_bytes_max);
}

// Keeps some room at the servers, so that few stores find none. Does not wait for another thread that moves blocks. A
// full disk is no failure as long as the servers have room.
Status TieredStore::move_early() noexcept {
  if (has_room() || disk_is_full_.load(std::memory_order_relaxed)) return Status::ok;
  const std::unique_lock guard(move_mutex_, std::try_to_lock);
  if (!guard) return Status::ok;
  for (int moved = 0; moved < moved_blocks_max && !has_room(); ++moved) {
    const auto status = move_coldest();
    if (!status || *status == Status::no_memory) break;
    if (*status != Status::ok) return *status;
  }
  return Status::ok;
}

// Moves at least one block, if possible. If the disk has no room for one, it may have reserved room for another.
Status TieredStore::move_now() noexcept {
  const std::lock_guard guard(move_mutex_);
  bool has_moved = false;
  for (int tries = 0; tries < moved_blocks_max && !(has_moved && has_room()); ++tries) {
    const auto status = move_coldest();
    if (!status) break;
    if (*status != Status::ok && *status != Status::no_memory) return *status;
    has_moved = has_moved || *status == Status::ok;
  }
  return Status::ok;
}

// Returns nullopt if no block has compressed pages. Call it with move_mutex_.
std::optional<Status> TieredStore::move_coldest() noexcept {
  while (const auto number = take_coldest()) {
    const std::lock_guard guard(lock_of(*number));
    if (blocks_[*number].packed.is_empty()) continue;  // its pages were discarded
    const Status status = move(*number);
    if (!blocks_[*number].packed.is_empty()) queue(*number);
    return status;
  }
  return std::nullopt;
}

// Call it with move_mutex_ and the lock of the block. If it fails, the pages that have not moved are still compressed.
Status TieredStore::move(std::uint64_t block) noexcept {
  Status status = Status::ok;
  const PageSet pages = blocks_[block].packed;
  for_each_run(pages, block_pages, [&](std::size_t first, std::size_t count) {
    if (status != Status::ok) return;
    const std::uint64_t place = block * block_bytes + first * page_bytes;
    const std::span<std::byte> run = moved_memory_.bytes().first(count * page_bytes);
    status = packed_.fetch(place, run);
    if (status == Status::ok) status = write_file(place, run);
  });
  return status;
}

// A block that was fetched meanwhile goes to the end of the queue instead.
std::optional<std::uint64_t> TieredStore::take_coldest() noexcept {
  const std::lock_guard guard(queue_mutex_);
  for (int passed_over = 0; first_ != 0; ++passed_over) {
    const std::uint64_t number = first_ - 1;
    Block& block = blocks_[number];
    first_ = block.next;
    if (first_ == 0) last_ = 0;
    if (!block.fetched.exchange(false, std::memory_order_relaxed) || passed_over == passed_over_max) {
      block.queued = false;
      return number;
    }
    append(number);
  }
  return std::nullopt;
}

void TieredStore::queue(std::uint64_t block) noexcept {
  const std::lock_guard guard(queue_mutex_);
  if (blocks_[block].queued) return;
  blocks_[block].queued = true;
  blocks_[block].fetched.store(false, std::memory_order_relaxed);
  append(block);
}

void TieredStore::append(std::uint64_t block) noexcept {
  blocks_[block].next = 0;
  (last_ != 0 ? blocks_[last_ - 1].next : first_) = block + 1;
  last_ = block + 1;
}

}  // namespace tonari::far
