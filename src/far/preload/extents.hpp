#pragma once

#include "preload/address.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tonari::far {

using pager::block_bytes;
using preload::Address;
using preload::page_bytes;
using preload::to_whole_pages;

/// A part of the address space, in whole pages.
struct Range {
  Address start = 0;
  std::size_t bytes = 0;

  [[nodiscard]] constexpr Address end() const noexcept { return start + bytes; }
  [[nodiscard]] constexpr bool is_empty() const noexcept { return bytes == 0; }
  /// Returns the common part; empty if there is none.
  [[nodiscard]] constexpr Range cut_to(Range other) const noexcept {
    const Address first = std::max(start, other.start);
    const Address last = std::min(end(), other.end());
    return {first, last > first ? last - first : 0};
  }
  friend constexpr bool operator==(Range, Range) noexcept = default;
};

/// Records which ranges of the arena are in use. Pure logic: it never touches the arena's memory.
///
/// Extents are sorted by address, and neighbours are not merged: each extent ends where its allocation ended. A large
/// extent has reserved room after it, so that it can grow without being copied. Other allocations use that room last.
///
/// Owns:    nothing; the caller provides the table.
/// Threads: one at a time.
/// Costs:   finding is a binary search; inserting or erasing moves the table's later entries. Allocation searches from
///          the lowest address upward, because freed addresses already have page tables. It continues from the last
///          search if that one was for no more pages.
class Extents {
 public:
  struct Entry {
    std::uint32_t first;  // page of the arena
    std::uint32_t pages;
    std::uint32_t room;  // pages reserved after it: end + room <= first of the next
    std::uint32_t marks;
  };
  enum Mark : std::uint32_t {
    was_protected = 1,  ///< By mprotect, which must be undone before the next use.
    is_foreign = 2,     ///< Something else is mapped there: it cannot be used again.
    is_allocated = 4,   ///< By malloc, and to be freed by free. Otherwise it was mapped.
    is_reserved = 8,    ///< Address space that was never accessible since it was mapped: it has no contents.
  };
  static constexpr std::uint32_t not_paged = is_foreign | is_reserved;  ///< The keeper has no pages there.
  /// A range in use: a whole extent, or the part of it that was asked for. Empty: there is none.
  struct Extent : Range {
    std::uint32_t marks = 0;
  };

  constexpr Extents() noexcept = default;
  /// Nothing of `arena` is in use at first; it has at most 2^32 pages. The table's size limits the number of extents.
  Extents(Range arena, std::span<Entry> table) noexcept
      : start_(arena.start), pages_(arena.bytes / page_bytes), table_(table) {}

  /// Returns an address that is aligned to `alignment`, a power of two, and to a block if there are at least that many
  /// bytes. Returns 0 if there is no room. There is none for reservations once half of the arena is taken.
  Address allocate(std::size_t bytes, std::size_t alignment, std::uint32_t marks = 0) noexcept;
  /// Returns false if some of `range` is in use, or outside the arena, or if there is no room for a reservation.
  bool allocate_at(Range range, std::uint32_t marks = 0) noexcept;
  /// Makes the extent that ends at `end` longer. Returns false if there is no such extent, or no room.
  bool grow(Address end, std::size_t bytes) noexcept;
  /// Frees an extent or a part of one. Returns false if `range` is no part of one extent (two threads may have freed it
  /// at once), or if the table has no entry left for the second half of a split extent.
  bool free(Range range) noexcept;

  /// Returns the extent that contains `at`.
  [[nodiscard]] Extent find(Address at) const noexcept;
  /// Returns how many entries the table has left.
  [[nodiscard]] std::size_t entries_left() const noexcept { return table_.size() - count_; }
  /// Return the first part of `range` that is in use, and the first that is not.
  [[nodiscard]] Extent first_used(Range range) const noexcept;
  [[nodiscard]] Range first_free(Range range) const noexcept;

  /// Calls visit(extent) for each part of `range` that is in use, by address.
  template <class Visit>
  void for_each_used(Range range, Visit visit) const noexcept {
    while (!range.is_empty()) {
      const Extent extent = first_used(range);
      if (extent.is_empty()) return;
      visit(extent);
      range = {extent.end(), range.end() - extent.end()};
    }
  }
  /// Calls visit(part) for the parts of `range` between the extents that have the mark.
  template <class Visit>
  void for_each_without(Range range, Mark mark, Visit visit) const noexcept {
    Address start = range.start;
    const auto visit_until = [&](Address end) {
      if (end > start) visit(Range{start, end - start});
    };
    for_each_used(range, [&](const Extent& extent) {
      if ((extent.marks & mark) == 0) return;
      visit_until(extent.start);
      start = extent.end();
    });
    visit_until(range.end());
  }

  /// Splits the extent at `at` into two. Returns false if the table is full.
  bool split(Address at) noexcept;
  /// Splits the extents at both ends of `range`.
  bool separate(Range range) noexcept { return split(range.start) && split(range.end()); }
  /// Marks every extent that overlaps `range`.
  void mark(Range range, std::uint32_t marks) noexcept { change_marks(range, 0, marks); }
  /// Removes marks from every extent that overlaps `range`.
  void unmark(Range range, std::uint32_t marks) noexcept { change_marks(range, marks, 0); }

 private:
  struct Place {
    std::size_t index;  // where the new entry would be inserted
    std::uint64_t first;
    bool is_found;
  };
  static std::uint64_t end_of(const Entry& entry) noexcept { return std::uint64_t{entry.first} + entry.pages; }
  [[nodiscard]] std::uint64_t page_of(Address at) const noexcept { return (at - start_) / page_bytes; }
  [[nodiscard]] Extent extent_of(const Entry& entry) const noexcept {
    return {{start_ + entry.first * page_bytes, entry.pages * page_bytes}, entry.marks};
  }
  // Returns the number of entries that begin at or before `page`.
  [[nodiscard]] std::size_t upto(std::uint64_t page) const noexcept {
    const auto used = table_.first(count_);
    const auto found = std::ranges::upper_bound(used, page, {}, &Entry::first);
    return static_cast<std::size_t>(found - used.begin());
  }
  [[nodiscard]] std::uint64_t gap_end(std::size_t index) const noexcept {
    return index == count_ ? pages_ : table_[index].first;
  }
  void change_marks(Range range, std::uint32_t without, std::uint32_t with) noexcept;
  [[nodiscard]] bool may_take(std::uint64_t pages, std::uint32_t marks) const noexcept;
  [[nodiscard]] std::uint64_t room_for(std::uint64_t pages, std::uint32_t marks) const noexcept;
  [[nodiscard]] Place search(std::uint64_t pages, std::size_t alignment, bool keep_rooms) noexcept;
  void insert(std::size_t index, Entry entry) noexcept;
  void erase(std::size_t index) noexcept;
  void set_room(Entry& entry, std::uint64_t pages) noexcept;

  Address start_ = 0;
  std::uint64_t pages_ = 0;
  std::uint64_t taken_ = 0;  // pages in use or reserved as room
  std::span<Entry> table_;
  std::size_t count_ = 0;
  // The last search: no gap before entry `index` has this many pages with this alignment, beside the reserved rooms.
  struct {
    std::uint64_t pages = 0;
    std::size_t alignment = 0;
    std::size_t index = 0;
  } tried_;
};

inline Address Extents::allocate(std::size_t bytes, std::size_t alignment, std::uint32_t marks) noexcept {
  if (bytes == 0 || bytes > pages_ * page_bytes || count_ == table_.size()) return 0;
  const std::uint64_t pages = to_whole_pages(bytes) / page_bytes;
  if (!may_take(pages, marks)) return 0;
  alignment = std::max(alignment, bytes >= block_bytes ? block_bytes : page_bytes);

  std::uint64_t room = room_for(pages, marks);
  Place place = search(pages + room, alignment, true);
  if (!place.is_found) {
    room = 0;
    place = search(pages, alignment, false);
  }
  if (!place.is_found) return 0;
  insert(place.index, {static_cast<std::uint32_t>(place.first), static_cast<std::uint32_t>(pages), 0, marks});
  set_room(table_[place.index], room);
  return start_ + place.first * page_bytes;
}

inline bool Extents::allocate_at(Range range, std::uint32_t marks) noexcept {
  if (range.is_empty() || range.start < start_ || count_ == table_.size()) return false;
  const std::uint64_t first = page_of(range.start);
  const std::uint64_t pages = range.bytes / page_bytes;
  const std::size_t index = upto(first);
  if (index != 0 && end_of(table_[index - 1]) > first) return false;
  const std::uint64_t end = gap_end(index);
  if (first >= end || pages > end - first || !may_take(pages, marks)) return false;
  insert(index, {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(pages), 0, marks});
  return true;
}

inline bool Extents::grow(Address end, std::size_t bytes) noexcept {
  const std::uint64_t page = page_of(end);
  const std::size_t index = upto(page - 1);
  if (index == 0 || end_of(table_[index - 1]) != page) return false;
  Entry& entry = table_[index - 1];
  const std::uint64_t gap = gap_end(index) - page;
  if (bytes > gap * page_bytes) return false;
  const std::uint64_t pages = to_whole_pages(bytes) / page_bytes;

  set_room(entry, 0);
  entry.pages += static_cast<std::uint32_t>(pages);
  taken_ += pages;
  set_room(entry, std::min(gap - pages, room_for(entry.pages, entry.marks)));
  return true;
}

inline bool Extents::free(Range range) noexcept {
  const std::uint64_t first = page_of(range.start);
  const std::uint64_t end = page_of(range.end());
  const std::size_t index = upto(first) - 1;
  if (range.is_empty() || find(range.start).end() < range.end()) return false;
  Entry& entry = table_[index];
  if (end < end_of(entry)) {
    if (!split(range.end())) return false;
  } else {
    set_room(entry, 0);
  }
  if (first == entry.first) {
    erase(index);
    return true;
  }
  taken_ -= end - first;
  entry.pages = static_cast<std::uint32_t>(first - entry.first);
  tried_.index = std::min(tried_.index, index);
  return true;
}

inline Extents::Extent Extents::find(Address at) const noexcept {
  const std::uint64_t page = page_of(at);
  const std::size_t index = upto(page);
  if (index == 0 || end_of(table_[index - 1]) <= page) return {};
  return extent_of(table_[index - 1]);
}

inline Extents::Extent Extents::first_used(Range range) const noexcept {
  Extent extent = find(range.start);
  if (extent.is_empty()) {
    const std::size_t index = upto(page_of(range.start));
    if (index == count_) return {};
    extent = extent_of(table_[index]);
  }
  static_cast<Range&>(extent) = extent.cut_to(range);
  return extent;
}

inline Range Extents::first_free(Range range) const noexcept {
  while (!range.is_empty()) {
    const Extent used = first_used(range);
    if (used.is_empty()) return range;
    if (used.start > range.start) return {range.start, used.start - range.start};
    range = {used.end(), range.bytes - used.bytes};
  }
  return {};
}

inline bool Extents::split(Address at) noexcept {
  const Extent extent = find(at);
  if (extent.is_empty() || extent.start == at) return true;
  if (count_ == table_.size()) return false;
  const std::uint64_t page = page_of(at);
  const std::size_t index = upto(page);
  Entry& low = table_[index - 1];
  const Entry high{static_cast<std::uint32_t>(page), static_cast<std::uint32_t>(end_of(low) - page), low.room,
                   low.marks};
  set_room(low, 0);
  low.pages -= high.pages;
  taken_ -= high.pages;
  insert(index, {high.first, high.pages, 0, high.marks});
  set_room(table_[index], high.room);
  return true;
}

inline void Extents::change_marks(Range range, std::uint32_t without, std::uint32_t with) noexcept {
  for (Extent each = first_used(range); !each.is_empty(); each = first_used(range)) {
    std::uint32_t& marks = table_[upto(page_of(each.start)) - 1].marks;
    marks = (marks & ~without) | with;
    range = {each.end(), range.end() - each.end()};
  }
}

// Half of the arena is kept free of reservations, most of which are never used.
inline bool Extents::may_take(std::uint64_t pages, std::uint32_t marks) const noexcept {
  return (marks & is_reserved) == 0 || taken_ + pages <= pages_ / 2;
}

// Reserves as much room again after an extent of at least a block, as long as half of the arena stays free.
// Reservations do not grow.
inline std::uint64_t Extents::room_for(std::uint64_t pages, std::uint32_t marks) const noexcept {
  const bool may_grow = pages >= pager::block_pages && (marks & is_reserved) == 0;
  return may_grow && taken_ + 2 * pages <= pages_ / 2 ? pages : 0;
}

inline Extents::Place Extents::search(std::uint64_t pages, std::size_t alignment, bool keep_rooms) noexcept {
  const std::uint64_t step = alignment / page_bytes;
  const std::uint64_t base = start_ / page_bytes;
  const bool goes_on = keep_rooms && pages >= tried_.pages && alignment >= tried_.alignment;
  std::size_t index = goes_on ? tried_.index : 0;
  Place place{count_, 0, false};
  for (; index <= count_ && !place.is_found; ++index) {
    const Entry before = index == 0 ? Entry{} : table_[index - 1];
    const std::uint64_t gap = end_of(before) + (keep_rooms ? before.room : 0);
    const std::uint64_t first = ((base + gap + step - 1) & ~(step - 1)) - base;
    if (first + pages <= gap_end(index)) place = {index, first, true};
  }
  if (keep_rooms) tried_ = {pages, alignment, place.index};
  return place;
}

inline void Extents::insert(std::size_t index, Entry entry) noexcept {
  if (index != 0) {
    Entry& before = table_[index - 1];
    set_room(before, std::min<std::uint64_t>(before.room, entry.first - end_of(before)));
  }
  std::memmove(table_.data() + index + 1, table_.data() + index, (count_ - index) * sizeof(Entry));
  table_[index] = entry;
  ++count_;
  taken_ += entry.pages;
  if (index < tried_.index) ++tried_.index;
}

inline void Extents::erase(std::size_t index) noexcept {
  set_room(table_[index], 0);
  taken_ -= table_[index].pages;
  --count_;
  std::memmove(table_.data() + index, table_.data() + index + 1, (count_ - index) * sizeof(Entry));
  tried_.index = std::min(tried_.index, index);
}

inline void Extents::set_room(Entry& entry, std::uint64_t pages) noexcept {
  if (pages < entry.room) tried_.index = std::min(tried_.index, static_cast<std::size_t>(&entry - table_.data()));
  taken_ = taken_ - entry.room + pages;
  entry.room = static_cast<std::uint32_t>(pages);
}

}  // namespace tonari::far
