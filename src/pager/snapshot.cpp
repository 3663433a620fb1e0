#include "pager/snapshot.hpp"

#include "pager/page_mover.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

namespace tonari::pager {

namespace {

// Marks a kept page whose bytes could not be kept.
constexpr Checksum lost_checksum = unknown_checksum;

}  // namespace

Snapshot::Snapshot(PageMover& mover, const std::vector<Region*>& regions, MakeKept make_kept)
    : mover_(mover), make_kept_(std::move(make_kept)) {
  std::uint64_t end = 0;
  for (Region* region : regions) {
    const std::size_t sets = region->blocks() * sizeof(PageSet);
    const std::size_t pages = region->bytes() / page_bytes;
    Part& part = parts_.emplace_back(
        Part{.region = region,
             .first = end + region->start() % block_bytes,
             .memory = Mapping::of_sparse_zeros(2 * sets + pages * sizeof(Checksum), "the tables of a snapshot"),
             .present = {},
             .kept = {},
             .checksums = {}});
    std::byte* const tables = part.memory.bytes().data();
    part.present = {reinterpret_cast<PageSet*>(tables), region->blocks()};
    part.kept = {reinterpret_cast<PageSet*>(tables + sets), region->blocks()};
    part.checksums = {reinterpret_cast<Checksum*>(tables + 2 * sets), pages};
    end = (part.first + region->bytes() + block_bytes - 1) / block_bytes * block_bytes;
  }
}

bool Snapshot::record_present() noexcept {
  for (; next_part_ < parts_.size(); ++next_part_, next_block_ = 0) {
    const Part& part = parts_[next_part_];
    Region& region = *part.region;
    for (next_block_ = region.next_known(next_block_); next_block_ < region.blocks();
         next_block_ = region.next_known(next_block_ + 1)) {
      if (!region.block(next_block_).try_hold()) return false;
      const BlockLock hold = mover_.adopt(region, next_block_);
      part.present[next_block_] = region.block(next_block_).here;
    }
  }
  return true;
}

Snapshot::Found Snapshot::read(Address at, std::span<std::byte, page_bytes> into) noexcept {
  const Part* const part = part_at(at);
  if (part == nullptr) return Found::lost;
  Region& region = *part->region;
  const std::size_t block = region.block_at(at);
  const std::size_t page = (at - region.address_of(block)) / page_bytes;
  if (region.next_known(block) != block || part->present[block].has(page)) return Found::zeros;

  constexpr int tries_max = 100;
  for (int tries = 0; !region.block(block).try_hold(); ++tries) {
    // A thread of a process that has ended holds it for ever, and changes nothing any more.
    if (mover_.is_at_rest()) break;
    if (tries == tries_max) return Found::busy;
    std::this_thread::yield();
  }
  const BlockLock hold = mover_.adopt(region, block);
  if (part->kept[block].has(page)) return read_kept(*part, block, page, into);
  for (std::shared_ptr<Snapshot> each = newer(); each != nullptr; each = each->newer()) {
    const Part* const newer_part = each->part_of(region);
    if (newer_part != nullptr && newer_part->kept[block].has(page)) {
      return each->read_kept(*newer_part, block, page, into);
    }
  }
  return read_source(region, block, page, into);
}

Snapshot::Found Snapshot::read_kept(const Part& part, std::size_t block, std::size_t page,
                                    std::span<std::byte> into) noexcept {
  const std::uint64_t place = part.region->place(block, page);
  const Checksum& checksum = part.checksums[place / page_bytes];
  if (checksum.is_of_zeros()) return Found::zeros;
  Source* const kept = kept_source();
  if (checksum == lost_checksum || kept == nullptr) return Found::lost;
  const bool done = kept->fetch(part.first + place, into) == Status::ok && checksum_of(into.data()) == checksum;
  return done ? Found::bytes : Found::lost;
}

Snapshot::Found Snapshot::read_source(Region& region, std::size_t block, std::size_t page,
                                      std::span<std::byte> into) noexcept {
  const Checksum& checksum = region.checksums(block, page, 1).front();
  if (checksum.is_of_zeros()) return Found::zeros;
  if (region.source().fetch(region.place(block, page), into) != Status::ok) return Found::lost;
  const bool is_right = checksum == unknown_checksum || checksum_of(into.data()) == checksum;
  return is_right ? Found::bytes : Found::lost;
}

void Snapshot::keep(Region& region, std::size_t block, const PageSet& pages) noexcept {
  const Part* const part = part_of(region);
  if (part == nullptr) return;
  const PageSet changing = pages - part->kept[block] - (has_older_ ? PageSet{} : part->present[block]);
  if (changing.is_empty()) return;
  has_kept_.store(true, std::memory_order_relaxed);
  PageSet with_bytes;
  for (std::size_t page = changing.next(0); page < block_pages; page = changing.next(page + 1)) {
    if (!region.checksums(block, page, 1).front().is_of_zeros()) with_bytes |= PageSet::of(page, 1);
  }
  for_each_run(with_bytes, slice_pages,
               [&](std::size_t page, std::size_t count) { keep_run(*part, block, page, count); });
  part->kept[block] |= changing;
}

void Snapshot::keep_run(const Part& part, std::size_t block, std::size_t page, std::size_t count) noexcept {
  Region& region = *part.region;
  const std::uint64_t place = region.place(block, page);
  const auto kept_sums = part.checksums.subspan(place / page_bytes, count);
  std::ranges::fill(kept_sums, lost_checksum);
  Source* const kept = kept_source();
  if (kept == nullptr) return;
  std::span<const std::byte> bytes = region.source().look(place, count * page_bytes);
  std::unique_lock guard(mutex_, std::defer_lock);
  if (bytes.empty()) {
    guard.lock();
    const std::span<std::byte> room = room_.bytes().first(count * page_bytes);
    if (region.source().fetch(place, room) != Status::ok) return;
    bytes = room;
  }
  if (kept->store(part.first + place, bytes) != Status::ok) return;
  const auto sums = region.checksums(block, page, count);
  for (std::size_t i = 0; i < count; ++i) {
    kept_sums[i] = sums[i] == unknown_checksum ? checksum_of(bytes.data() + i * page_bytes) : sums[i];
  }
}

// Returns nullptr if it could not be made.
Source* Snapshot::kept_source() noexcept {
  const std::lock_guard guard(mutex_);
  if (kept_ != nullptr || cannot_keep_) return kept_.get();
  try {
    room_ = Mapping::of_zeros(slice_pages * page_bytes, "memory to copy pages for a forked child");
    kept_ = make_kept_();
  } catch (const std::exception&) {
    cannot_keep_ = true;  // the pages are lost
  }
  return kept_.get();
}

// One by one: the destructors of a long chain would not fit into a stack. The pager may begin to use the newest one
// just now, so it is locked; nobody reads on from it any more.
Snapshot::~Snapshot() {
  while (newer_ != nullptr && newer_.use_count() == 1) {
    std::shared_ptr<Snapshot> next;
    {
      const std::lock_guard guard(newer_->mutex_);
      next = std::move(newer_->newer_);
    }
    newer_ = std::move(next);
  }
}

void Snapshot::connect(const std::shared_ptr<Snapshot>& older, const std::shared_ptr<Snapshot>& newer) noexcept {
  newer->has_older_ = true;
  older->set_newer(newer);
  newer->older_ = older;
  const std::shared_ptr<Snapshot> oldest = older->older_.lock();
  constexpr int needless_users = 2;  // the caller, and `oldest`
  if (oldest == nullptr || older->has_kept_.load(std::memory_order_relaxed) || older.use_count() > needless_users)
    return;
  oldest->set_newer(newer);
  newer->older_ = oldest;
}

void Snapshot::set_newer(const std::shared_ptr<Snapshot>& newer) noexcept {
  const std::lock_guard guard(mutex_);
  newer_ = newer;
}

std::shared_ptr<Snapshot> Snapshot::newer() const noexcept {
  const std::lock_guard guard(mutex_);
  return newer_;
}

const Snapshot::Part* Snapshot::part_at(Address at) const noexcept {
  const auto found = std::ranges::find_if(parts_, [at](const Part& each) { return each.region->contains(at); });
  return found == parts_.end() ? nullptr : &*found;
}

const Snapshot::Part* Snapshot::part_of(const Region& region) const noexcept {
  const auto found = std::ranges::find(parts_, &region, &Part::region);
  return found == parts_.end() ? nullptr : &*found;
}

}  // namespace tonari::pager
