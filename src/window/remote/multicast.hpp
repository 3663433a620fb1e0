#pragma once

#include "window/remote/copies.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tonari::window {

// A multicast crosses the link to each host once. There, the first of its targets, the relay, writes to the other
// targets as far as the origin's rights allow; its own rights do not matter. It leaves a target out if writing needs
// that rank's help, and says so. The origin then pushes to that target itself.
//
//   rank 0          rank 4           rank 5     rank 6
//     |- to 4, 5, 6 ->|                |          |
//     |  and data     | writes its own, 5's and 6's part
//     |<- status, --- |
//     |   what is left|

/// Such targets, one per rank, begin the tail of a request; the data follow.
struct MulticastTarget {
  std::uint64_t offset;
  std::uint32_t rank;
  std::uint32_t reserved;
};
static_assert(sizeof(MulticastTarget) == 16);
inline constexpr std::size_t relayed_max = 64;  // bits of the word of a reply that names the targets left out
inline constexpr std::uint64_t all_left = ~std::uint64_t{0};

/// Pushes the same bytes to several ranks of another host; the pushes are under way together.
///
/// Threads: one, with no lock held; local memory must stay valid until end().
/// Costs:   one head each way per piece and host; no allocation.
class RemoteMulticast {
 public:
  RemoteMulticast(const job::Session& session, Origin& origin, std::uint32_t window) noexcept
      : origin_(origin), session_(session), window_(window), alone_(session, origin, window) {}
  RemoteMulticast(RemoteMulticast&&) = delete;
  ~RemoteMulticast() { (void)end(); }

  /// Starts to push to `targets` of one host: from 1 to relayed_max. `in_program`: as in RemotePlace.
  void push(std::span<const MulticastTarget> targets, std::span<const std::byte> from, bool in_program) noexcept;
  /// Waits for all pushes. Returns ok or the first failure.
  Status end() noexcept;

 private:
  static constexpr std::size_t pieces_max = 8;
  struct Piece {
    PendingAccess pending;
    std::array<MulticastTarget, relayed_max> targets;
    std::size_t count = 0;
    std::span<const std::byte> from;
    bool in_program = false;
  };

  Status ask(Piece& piece) noexcept;
  void end(Piece& piece) noexcept;
  void push_alone(const MulticastTarget& target, std::span<const std::byte> from, bool in_program) noexcept;
  void fail(Status status) noexcept {
    if (status_ == Status::ok) status_ = status;
  }

  Origin& origin_;
  const job::Session& session_;
  std::uint32_t window_;
  RemoteCopies<Push> alone_;  // to targets that the relay left out
  fabric::Pipeline<Piece, pieces_max> under_way_;
  Status status_ = Status::ok;
};

/// Called at the relay: serves a relayed push. Returns ok or the first failure. `left`: one bit per target that was
/// left out.
Status relay(WindowState& state, int peer, std::span<const std::byte> tail, std::uint32_t targets,
             std::uint64_t& left) noexcept;

}  // namespace tonari::window
