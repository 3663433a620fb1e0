#pragma once

#include "fabric/head.hpp"

#include <cstdint>

namespace tonari::share {

using ShareKindNumber = fabric::KindNumber<fabric::Protocol::share>;

/// The heads of this layer.
enum class Kind : std::uint8_t {
  // Shared arrays (share/coherence/heads.hpp):
  /// To a page's home: asks for a copy.
  share_fetch = ShareKindNumber::plain(0),
  /// Reply: the tail is the pages.
  share_pages = ShareKindNumber::with_tail(1),
  /// Reply: another rank is the pages' home.
  share_moved = ShareKindNumber::plain(2),
  /// To a home: the tail is what this rank has changed.
  share_changes = ShareKindNumber::with_tail(3),
  /// Reply: the changes are stored, and no rank has copies.
  share_taken = ShareKindNumber::plain(4),
  /// Reply: the changes are stored; the tail names the ranks with copies.
  share_copies = ShareKindNumber::with_tail(5),
  /// To a rank that may have copies of pages: they have changed.
  share_notice = ShareKindNumber::plain(6),
  /// The same, for the runs of pages in the tail.
  share_notices = ShareKindNumber::with_tail(7),
  /// Reply to a notice or an update.
  share_noted = ShareKindNumber::plain(8),
  /// To a home: the tail names the ranks that have been told. No reply.
  share_told = ShareKindNumber::with_tail(9),
  /// To a rank that may have copies: the tail is what has changed.
  share_update = ShareKindNumber::with_tail(10),

  // Flags (share/sync/flag_home.hpp):
  /// To a flag's home: reply once the flag has at least this value.
  share_await = ShareKindNumber::plain(11),
  /// Reply: the flag has it.
  share_reached = ShareKindNumber::plain(12),
  /// To a flag's home: the flag was set, look which ranks are to be told. No reply.
  share_set = ShareKindNumber::plain(13),

  /// Reply to a fetch or to changes: the home has destroyed the array.
  share_gone = ShareKindNumber::plain(14),

  // Guarded data (share/guarded/heads.hpp):
  /// To a variable's home: this rank wants to read it, to write it, or to drop its copy.
  guard_want = ShareKindNumber::plain(16),
  /// From the home to the rank that is, or will be, the last owner asked for: serve the rank named here next.
  guard_deed = ShareKindNumber::plain(17),
  /// To the rank that asked: permission to read, or ownership; perhaps with the data.
  guard_given = ShareKindNumber::plain(18),
  /// The same; the tail is the data or a part of them.
  guard_given_tail = ShareKindNumber::with_tail(19),
  /// To the rank that has the data: put them into this rank's memory.
  guard_fetch = ShareKindNumber::plain(20),
  /// To a rank that sends many pieces: some have been stored.
  guard_more = ShareKindNumber::plain(21),
  /// To readers: the permission to read ends.
  guard_stop = ShareKindNumber::plain(22),
  /// From a reader: neither it nor a rank behind it in the tree reads any more.
  guard_stopped = ShareKindNumber::plain(23),
  /// To the next owner: the ranks that it has to update.
  guard_inherit = ShareKindNumber::plain(24),
  /// To the home: this rank is the owner now.
  guard_has = ShareKindNumber::plain(25),
  /// To the home, after a death: this rank still waits.
  guard_waits = ShareKindNumber::plain(26),
  /// To the home, and from it to all ranks: the newest data died with a rank.
  guard_lost = ShareKindNumber::plain(27),
  /// To the home: this rank has freed the variable.
  guard_freed = ShareKindNumber::plain(28),
  /// From the home: all ranks have freed it.
  guard_over = ShareKindNumber::plain(29),
};

}  // namespace tonari::share
