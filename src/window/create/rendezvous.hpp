#pragma once

#include "base/lock.hpp"
#include "fabric/head.hpp"
#include "window/remote/heads.hpp"
#include "window/state/layout.hpp"

#include <tonari/job.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace tonari::window {

// How the ranks of a group agree on a window. Each rank tells the first one what it gives (join). When all have joined,
// the first rank makes the window and tells them where it is (made). All ranks number the group's windows alike, so
// that they mean the same one.
//
//   rank 2      rank 1      rank 0
//     |-- join -->|-- join -->|
//     |           |           | makes it
//     |<-------- made --------|
//
// With several hosts this happens on each host, with its first member. Then each rank tells each member on other hosts
// what it gives (told); the group's first rank also tells the number. When it has the window, it tells that, too
// (ready). A rank that fails says so instead, so that all ranks learn it.
struct Join {
  std::uint64_t group;  // number_of(group)
  std::uint64_t bytes;
  std::uint32_t sequence;
  std::uint32_t locks;
  std::uint32_t notifications;
  std::uint32_t flags;
};
struct Made {
  std::uint64_t group;
  std::uint64_t bytes;
  std::uint32_t sequence;
  std::uint32_t granule;  // its first granule in the host's pool; 0: it could not be made
};
struct Told {
  std::uint64_t group;
  std::uint64_t bytes;
  std::uint32_t sequence;
  std::uint32_t number;  // of the window; the group's first rank decides it
  std::uint32_t locks;
  std::uint32_t notifications;
  std::uint32_t rights;  // of the rank that is told
  std::uint32_t flags;
};
struct Ready {
  std::uint64_t group;
  std::uint32_t sequence;
  std::uint32_t flags;
};
inline constexpr std::uint32_t join_in_program = 1;
inline constexpr std::uint32_t join_rights_differ = 2;
inline constexpr std::uint32_t join_refused = 4;  // this rank's arguments were wrong, or it failed

/// Returns the same hash on all ranks, almost surely different from other groups'.
std::uint64_t number_of(const Group& group) noexcept;

/// The heads about windows being made that have arrived.
///
/// Threads: any.
class Rendezvous {
 public:
  /// Returns the number of this rank's next window with the group. Forgets heads about earlier ones.
  std::uint32_t next(std::uint64_t group);
  void receive(const fabric::Head& head);

  /// Names the heads about one window of one kind.
  struct Key {
    std::uint64_t group;
    std::uint32_t sequence;
    Kind kind;  // window_join, window_made, window_told or window_ready

    friend auto operator<=>(const Key&, const Key&) = default;
  };
  /// Returns true when each of these ranks has sent one. Heads from other ranks, and repeated heads, are ignored.
  [[nodiscard]] bool has_all(const Key& key, std::span<const int> ranks) const noexcept;
  /// Returns true when one of these ranks has sent join_refused. For window_ready only.
  [[nodiscard]] bool is_refused(const Key& key, std::span<const int> ranks) const noexcept;
  /// Returns the heads of these ranks that have arrived.
  [[nodiscard]] std::vector<fabric::Head> take(const Key& key, std::span<const int> ranks);

 private:
  using BySource = std::map<std::uint32_t, fabric::Head>;

  mutable SpinLock lock_;  // guards sequences_ and heads_
  std::map<std::uint64_t, std::uint32_t> sequences_;
  std::map<Key, BySource> heads_;
};

}  // namespace tonari::window
