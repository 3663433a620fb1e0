#pragma once

#include "pager/page.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tonari::share {

using pager::page_bytes;

/// A set of pages of one block, one bit per page.
using Mask = std::uint64_t;
inline constexpr std::size_t pages_per_block = 64;

constexpr Mask bit(std::size_t page) noexcept { return Mask{1} << page; }
constexpr Mask bits(std::size_t first, std::size_t count) noexcept {
  return (count == pages_per_block ? ~Mask{0} : bit(count) - 1) << first;
}
constexpr bool has(Mask mask, std::size_t page) noexcept { return (mask >> page & 1) != 0; }

/// Calls visit(page) for each page of the mask.
template <class Visit>
void for_each_page(Mask mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<std::size_t>(std::countr_zero(mask)));
}
/// Calls visit(first, count) for each run of adjacent pages.
template <class Visit>
void for_each_run(Mask mask, Visit visit) {
  while (mask != 0) {
    const auto first = static_cast<std::size_t>(std::countr_zero(mask));
    const auto count = static_cast<std::size_t>(std::countr_one(mask >> first));
    visit(first, count);
    mask &= ~bits(first, count);
  }
}
/// Returns how many adjacent pages from `page` on are in `mask`, at most `count_max`.
constexpr std::size_t run_from(Mask mask, std::size_t page, std::size_t count_max) noexcept {
  const auto count = static_cast<std::size_t>(std::countr_one(mask >> page));
  return count < count_max ? count : count_max;
}

/// The access that causes a fault, or that a mapping allows.
enum class Touch : std::uint8_t { read, write };

/// The state of a page at this rank.
///
///   at a rank that is not the page's home:
///
///            fault                reply               write fault              release
///     absent -----> fetching --------------> clean ----------------> dirty ----------------> clean
///        ^             ^  reply to a write     |                       |
///        |             |  fault: dirty         | acquire, stale        | acquire, stale: its changes go home first
///        |             +---- renewal ----------+-----------------------+
///        |                   (migratory pages) |                       |
///        +-------------------------------------+------- suspended <----+
///                                                  (until the changes are stored at home)
///
///   at its home:
///
///     absent --fault--> untracked --a copy is given--> clean --write fault--> dirty --all copies told--> untracked
///
/// A page with named writes (ArrayOptions::writes_are_named) is untracked instead of clean or dirty, at every rank.
enum class PageState : std::uint8_t {
  absent,     ///< Not mapped. A touch faults: the home maps the page, another rank fetches it.
  fetching,   ///< Requested from its home, or about to be. Faults wait for the reply.
  suspended,  ///< Must not be fetched yet. Faults wait for end_suspension().
  clean,      ///< Mapped read-only. The first write faults.
  dirty,      ///< Written since the last release, which has to be told to other ranks. Mapped writable.
  untracked,  ///< Mapped writable; no rank has to be told of a write, or the program names what it writes.
};

/// The states of the pages of one block, as masks: most operations treat a run of pages at once.
///
/// Each mask is changed only by the named transitions below. They keep the table and leave the mapping itself to the
/// caller, which changes both under the block's lock.
class PageStates {
 public:
  /// Returns one page's state. Costs a few instructions; paths that treat many pages use the masks.
  [[nodiscard]] PageState of(std::size_t page) const noexcept {
    if (has(fetching_, page)) return PageState::fetching;
    if (has(suspended_, page)) return PageState::suspended;
    if (!has(mapped_, page)) return PageState::absent;
    if (has(dirty_, page)) return PageState::dirty;
    return has(writable_, page) ? PageState::untracked : PageState::clean;
  }

  // Pages by state, and the bits that states are made of.

  /// This rank is their home.
  [[nodiscard]] Mask home() const noexcept { return home_; }
  /// The array's file has memory for them, so their contents can be written through the runtime's mapping.
  [[nodiscard]] Mask in_file() const noexcept { return in_file_; }
  /// The program reads them without a fault.
  [[nodiscard]] Mask mapped() const noexcept { return mapped_; }
  /// The program writes them without a fault.
  [[nodiscard]] Mask writable() const noexcept { return writable_; }
  /// The program reads them without a fault, its first write faults. Includes pages that are being renewed.
  [[nodiscard]] Mask read_only() const noexcept { return mapped_ & ~writable_; }
  /// The next release has to tell of them. Writable, but for a page whose write close_unwritten() saw at the last look.
  [[nodiscard]] Mask dirty() const noexcept { return dirty_; }
  /// Writable and not dirty.
  [[nodiscard]] Mask untracked() const noexcept { return writable_ & ~dirty_; }
  [[nodiscard]] Mask fetching() const noexcept { return fetching_; }
  /// Not home here, not mapped, and free to be fetched.
  [[nodiscard]] Mask fetchable() const noexcept { return ~(home_ | mapped_ | fetching_ | suspended_); }
  /// This rank has a copy, or will have one when the reply arrives.
  [[nodiscard]] Mask copies() const noexcept { return (mapped_ | fetching_) & ~home_; }

  // Orthogonal to the state.

  /// Fetching, but an acquire or a multicast came after the request: the reply may be too old and is not used.
  [[nodiscard]] Mask overtaken() const noexcept { return overtaken_; }
  /// Another rank has changed them: a copy must not be read after the next acquire.
  [[nodiscard]] Mask stale() const noexcept { return stale_; }
  /// This rank wrote them and is about to multicast them: releases and acquires leave them alone.
  [[nodiscard]] Mask in_multicast() const noexcept { return in_multicast_; }
  /// Fetching, while the stale copy stays mapped read-only until the reply replaces it.
  [[nodiscard]] Mask renewing() const noexcept { return renewing_; }
  /// At home, dirty before any write: the first write does not fault, and the twin tells later whether there was one.
  [[nodiscard]] Mask presumed_dirty() const noexcept { return presumed_dirty_; }
  /// This rank has written them since another rank changed them.
  [[nodiscard]] Mask written_this_turn() const noexcept { return written_this_turn_; }
  /// This rank wrote them in its turn before.
  [[nodiscard]] Mask written_last_turn() const noexcept { return written_last_turn_; }
  /// Written by this rank in both of its last turns: migratory.
  [[nodiscard]] Mask migratory() const noexcept { return written_this_turn_ & written_last_turn_; }

  // Transitions.

  /// This rank becomes the home of `pages`, or ceases to be.
  void become_home(Mask pages) noexcept { home_ |= pages; }
  void give_up_home(Mask pages) noexcept { home_ &= ~pages; }

  /// absent -> fetching. The reply will be newer than the write notices so far.
  void start_fetch(Mask pages) noexcept {
    fetching_ |= pages;
    stale_ &= ~pages;
  }
  /// clean -> fetching; the copy stays mapped.
  void start_renewal(Mask pages) noexcept {
    fetching_ |= pages;
    renewing_ |= pages;
  }
  /// The write notices so far no longer matter: a newer copy is on its way, or this rank has become the home.
  void forget_notices(Mask pages) noexcept { stale_ &= ~pages; }
  /// Marks the `pages` that are being fetched: their replies must not be used.
  void overtake(Mask pages) noexcept { overtaken_ |= pages & fetching_; }
  /// fetching -> absent, or -> clean if the page was being renewed. Returns the pages that were being renewed.
  Mask end_fetch(Mask pages) noexcept {
    fetching_ &= ~pages;
    overtaken_ &= ~pages;
    return std::exchange(renewing_, renewing_ & ~pages) & pages;
  }

  /// absent -> suspended, until end_suspension().
  void suspend(Mask pages) noexcept { suspended_ |= pages; }
  void end_suspension(Mask pages) noexcept { suspended_ &= ~pages; }

  /// The array's file has memory for `pages` now.
  void has_memory(Mask pages) noexcept { in_file_ |= pages; }
  /// absent -> clean, or for writing -> untracked. A tracked page is marked dirty besides, before the program can
  /// write.
  void map(Mask pages, Touch allowed) noexcept {
    in_file_ |= pages;
    mapped_ |= pages;
    if (allowed == Touch::write) writable_ |= pages;
  }
  /// clean -> absent.
  void unmap(Mask pages) noexcept {
    mapped_ &= ~pages;
    writable_ &= ~pages;
  }
  /// The first write no longer faults, or does again.
  void allow_writes(Mask pages) noexcept { writable_ |= pages; }
  void catch_writes(Mask pages) noexcept { writable_ &= ~pages; }

  /// clean or untracked -> dirty.
  void mark_dirty(Mask pages) noexcept {
    dirty_ |= pages;
    presumed_dirty_ &= ~pages;
  }
  /// Like mark_dirty(), for pages at home that were not written yet and have a twin.
  void presume_dirty(Mask pages) noexcept {
    dirty_ |= pages;
    presumed_dirty_ |= pages;
  }
  /// They stay dirty, whether written or not.
  void confirm_dirty(Mask pages) noexcept { presumed_dirty_ &= ~pages; }
  /// dirty -> untracked, or clean where writes are caught: no rank has to be told any more.
  void mark_told(Mask pages) noexcept { dirty_ &= ~pages; }

  /// Another rank's change has been told, or stored here at the home.
  void mark_stale(Mask pages) noexcept { stale_ |= pages; }
  /// Takes out all stale pages, at an acquire. Leaves out pages in a multicast, whose contents all ranks are about to
  /// get.
  Mask take_stale() noexcept { return std::exchange(stale_, 0) & ~in_multicast_; }

  /// This rank is about to multicast `pages`, until end_multicast().
  void start_multicast(Mask pages) noexcept { in_multicast_ |= pages; }
  /// Returns the `pages` that were in the multicast and are still dirty, because it failed.
  Mask end_multicast(Mask pages) noexcept {
    return std::exchange(in_multicast_, in_multicast_ & ~pages) & pages & dirty_;
  }

  /// A release has found that this rank wrote `pages`.
  void note_written(Mask pages) noexcept { written_this_turn_ |= pages; }
  /// A new copy has come: this rank has not written it.
  void start_turn(Mask pages) noexcept { written_this_turn_ &= ~pages; }
  /// Another rank has changed `pages`. Returns the migratory ones: this rank is expected to write them again.
  Mask end_turn(Mask pages) noexcept {
    const Mask expected = pages & migratory();
    written_last_turn_ = (written_last_turn_ & ~pages) | (written_this_turn_ & pages);
    written_this_turn_ &= ~pages;
    return expected;
  }

 private:
  Mask home_ = 0;
  Mask in_file_ = 0;
  Mask mapped_ = 0;
  Mask writable_ = 0;
  Mask dirty_ = 0;
  Mask fetching_ = 0;
  Mask overtaken_ = 0;
  Mask suspended_ = 0;
  Mask stale_ = 0;
  Mask in_multicast_ = 0;
  Mask written_this_turn_ = 0;
  Mask written_last_turn_ = 0;
  Mask renewing_ = 0;
  Mask presumed_dirty_ = 0;
};

}  // namespace tonari::share
