#pragma once

#include "window/remote/copies.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tonari::window {

// A multicast crosses the link to each host once: there the first of its targets writes for the others what it may
// write to them, with the asker's rights and not its own. What it could do only with their help it leaves, and says so;
// then the asker asks them itself.
//
//   rank 0          rank 4           rank 5     rank 6
//     |- to 4, 5, 6 ->|                |          |
//     |  and data     | writes its own, 5's and 6's part
//     |<- status, --- |
//     |   what is left|

/// As the tail of a request begins, before what is copied: one of these for each target.
struct MulticastTarget {
  std::uint64_t offset;
  std::uint32_t rank;
  std::uint32_t reserved;
};
static_assert(sizeof(MulticastTarget) == 16);
inline constexpr std::size_t relayed_max = 64;  // so many bits has a reply's word for what is left
inline constexpr std::uint64_t all_left = ~std::uint64_t{0};

/// Pushes of the same bytes to several of another host, which are on their way together.
///
/// Threads: one, with nothing held; local memory is the caller's until end().
/// Costs:   a head there and one back for each piece and host; no allocation.
class RemoteMulticast {
 public:
  RemoteMulticast(const job::Session& session, Origin& client, std::uint32_t window) noexcept
      : client_(client), session_(session), window_(window), alone_(session, client, window) {}
  RemoteMulticast(RemoteMulticast&&) = delete;
  ~RemoteMulticast() { (void)end(); }

  /// Starts to push to `targets` of one host, one at least and relayed_max at most. `in_program`: as in
  /// RemoteCopies::Target.
  void push(std::span<const MulticastTarget> targets, std::span<const std::byte> from, bool in_program) noexcept;
  /// When all are done. Answers the first failure.
  Status end() noexcept;

 private:
  static constexpr std::size_t pieces_max = 8;
  struct Piece {
    PendingRequest asked;
    std::array<MulticastTarget, relayed_max> targets;
    std::size_t count = 0;  // 0: not under way
    std::span<const std::byte> from;
    bool in_program = false;
  };

  void ask(Piece& piece) noexcept;
  void end(Piece& piece) noexcept;
  void push_alone(const MulticastTarget& target, std::span<const std::byte> from, bool in_program) noexcept;
  void fail(Status status) noexcept {
    if (status_ == Status::ok) status_ = status;
  }

  Origin& client_;
  const job::Session& session_;
  std::uint32_t window_;
  RemoteCopies alone_;  // to those that nobody relays to
  std::array<Piece, pieces_max> pieces_;
  std::size_t turn_ = 0;
  Status status_ = Status::ok;
};

/// At the first of the targets: does what a relayed push asks for. Answers the first failure; in `left` what remains, a
/// bit for each target.
Status relay(WindowState& access, int peer, std::span<const std::byte> tail, std::uint32_t targets,
             std::uint64_t& left) noexcept;

}  // namespace tonari::window
