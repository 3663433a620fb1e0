#pragma once

#include "fabric/bulk.hpp"
#include "fabric/head.hpp"
#include "share/kind.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

// The payloads of the heads of guarded data. A head names its variable in `context`.
namespace tonari::share {

/// A rank in a head.
using ShortRank = std::uint16_t;

enum class GuardAct : std::uint32_t { read, write, drop };

/// Payload of guard_want and guard_deed.
struct GuardWant {
  std::uint64_t have;    // version of the asker's bytes; 0: none
  std::uint64_t number;  // counts the asker's requests
  std::uint32_t rank;    // the asker
  GuardAct act;
};

/// The `tag` of a guard_given: which parts come with it.
struct GivenTag {
  enum What : std::uint32_t { copy, ownership, data };
  What what = copy;
  bool asked_for = false;
  bool has_data = false;
  bool in_place = false;  // the data were put into the copy already
  std::uint32_t listed = 0;

  [[nodiscard]] std::uint32_t packed() const noexcept {
    return what | (asked_for ? 4u : 0u) | (has_data ? 8u : 0u) | (in_place ? 16u : 0u) | listed << 8;
  }
  static GivenTag unpacked(std::uint32_t tag) noexcept {
    return {static_cast<What>(tag & 3), (tag & 4) != 0, (tag & 8) != 0, (tag & 16) != 0, tag >> 8};
  }
};

/// Payload of guard_given: the data, if they are short. Otherwise, without data or with data in place, a list of ranks
/// that the receiver gives the same.
struct GuardGiven {
  static constexpr std::size_t data_bytes_max = 32;
  static constexpr std::size_t listed_max = data_bytes_max / sizeof(ShortRank);
  std::uint64_t version;
  std::uint32_t epoch;
  ShortRank source;  // the rank that has the data
  std::uint16_t reserved;
  std::array<std::byte, data_bytes_max> rest;
};
/// Payload of guard_given_tail.
struct GuardPiece {
  static constexpr std::size_t bytes_max = fabric::bulk_tail_bytes_max;
  static constexpr std::size_t listed_max = 7;
  std::uint64_t tail_bytes;
  std::uint64_t tail_place;
  std::uint64_t version;
  std::uint32_t epoch;
  std::uint32_t number;  // the piece's number; a piece has bytes_max bytes
  ShortRank source;
  std::array<ShortRank, listed_max> listed;  // only in the last piece
};
/// Payload of guard_waits: the rank that died. And of guard_has: the number of the fulfilled request.
struct GuardWord {
  std::uint64_t value;
};
/// Payload of guard_stop.
struct GuardStop {
  static constexpr std::size_t listed_max = 20;
  std::uint32_t epoch;
  std::uint16_t is_updated_later;
  std::uint16_t count;
  std::array<ShortRank, listed_max> listed;  // ranks that the receiver tells
};
/// Payload of guard_inherit. The head's `tag` has the number of ranks.
struct GuardList {
  static constexpr std::size_t listed_max = 24;
  std::array<ShortRank, listed_max> listed;
};
static_assert(sizeof(GuardGiven) == fabric::inline_bytes_max && sizeof(GuardPiece) == fabric::inline_bytes_max);
static_assert(sizeof(GuardStop) == fabric::inline_bytes_max && sizeof(GuardList) == fabric::inline_bytes_max);
static_assert(fabric::begins_with_tail(offsetof(GuardPiece, tail_bytes), offsetof(GuardPiece, tail_place)));

/// Number of groups into which the ranks to be told are divided: telling n ranks takes log2(n) steps.
inline constexpr std::size_t branches_usual = 2;

/// Visits `ranks` in groups. The first rank of a group tells the others, at most `listed_max`. Makes `branches` groups,
/// or more if these would be too large.
template <class Visit>
void in_groups(std::span<const ShortRank> ranks, std::size_t branches, std::size_t listed_max, Visit visit) {
  const std::size_t least = std::min(ranks.size(), branches);
  std::size_t groups = std::max(least, (ranks.size() + listed_max) / (listed_max + 1));
  for (; groups != 0; --groups) {
    const std::size_t count = (ranks.size() + groups - 1) / groups;
    visit(ranks.front(), ranks.subspan(1, count - 1));
    ranks = ranks.subspan(count);
  }
}

}  // namespace tonari::share
