#pragma once

#include "base/lock.hpp"
#include "fabric/head.hpp"
#include "window/state/layout.hpp"

#include <tonari/job.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace tonari::window {

// How the ranks of a group agree on a window: each tells the first what it gives, and the first, once all have, makes
// the window and tells them where it is. Which of a group's windows is meant is a number that all count alike.
//
//   rank 2      rank 1      rank 0
//     |-- join -->|-- join -->|
//     |           |           | makes it
//     |<-------- made --------|
//
// On several hosts this happens on each, with its first member. Then each rank tells each of those on other hosts what
// it gives (told), the group's first also the number; and when it has the window (ready). Whoever could not take part
// says so instead, so that all learn it.
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
  std::uint32_t granule;  // where it is in the host's pool; 0: it could not be made
};
struct Told {
  std::uint64_t group;
  std::uint64_t bytes;
  std::uint32_t sequence;
  std::uint32_t number;  // of the window, as the group's first says it
  std::uint32_t locks;
  std::uint32_t notifications;
  std::uint32_t rights;  // of whom it is told to
  std::uint32_t flags;
};
struct Ready {
  std::uint64_t group;
  std::uint32_t sequence;
  std::uint32_t flags;
};
inline constexpr std::uint32_t join_in_program = 1;
inline constexpr std::uint32_t join_rights_differ = 2;
inline constexpr std::uint32_t join_refused = 4;  // this rank got the call wrong

/// The same for all ranks, and as good as never that of another group.
std::uint64_t number_of(const Group& group) noexcept;

/// What has come of joins and answers to them.
///
/// Threads: any.
class Rendezvous {
 public:
  /// The number of this rank's next window with the group. Forgets what came for earlier ones.
  std::uint32_t next(std::uint64_t group);
  void receive(const fabric::Head& head);

  /// Which heads are meant.
  struct Key {
    std::uint64_t group;
    std::uint32_t sequence;
    fabric::Kind kind;  // window_join, window_made, window_told or window_ready

    friend auto operator<=>(const Key&, const Key&) = default;
  };
  /// True when one has come from each of these ranks. What others send, or send again, is nobody's.
  [[nodiscard]] bool has_all(const Key& key, std::span<const int> ranks) const noexcept;
  /// True when one of these ranks has said join_refused. Of window_ready.
  [[nodiscard]] bool is_refused(const Key& key, std::span<const int> ranks) const noexcept;
  /// Those that have come from these ranks.
  [[nodiscard]] std::vector<fabric::Head> take(const Key& key, std::span<const int> ranks);

 private:
  using BySource = std::map<std::uint32_t, fabric::Head>;

  mutable SpinLock lock_;  // of the next two
  std::map<std::uint64_t, std::uint32_t> sequences_;
  std::map<Key, BySource> heads_;
};

}  // namespace tonari::window
