#pragma once

#include "fabric/pipeline.hpp"
#include "window/local/direction.hpp"
#include "window/remote/origin.hpp"

#include <tonari/window.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::window {

// Windows between hosts: what a rank knows about parts on other hosts, and how it copies from and to them by heads. The
// targets check and serve the requests (target.hpp).

/// Where a remote rank's part is accessed.
struct RemotePlace {
  int rank;
  std::uint64_t offset;
  bool in_program;  ///< Local memory is then checked, as within a host: bad memory gives a status.
};

/// Copies of one direction that are under way together, in pieces of at most one tail: short regions share a piece,
/// long ones take several. The target checks a whole piece before it writes any of it.
///
/// Threads: one, with no lock held; local memory must stay valid until end().
/// Costs:   one head each way per piece, with up to `pieces_max` pieces under way; no allocation.
template <Direction D>
class RemoteCopies {
  using Local = typename D::Local;

 public:
  RemoteCopies(const job::Session& session, Origin& origin, std::uint32_t window) noexcept
      : session_(session), origin_(origin), window_(window) {}
  RemoteCopies(RemoteCopies&&) = delete;
  ~RemoteCopies() { (void)end(); }

  /// Starts to copy the regions of `local` to or from the same places after the target's offset. Once a piece has
  /// failed, no further piece is started, unless `go_on`.
  void start(const RemotePlace& target, Local* local, std::span<const Region> regions, bool go_on = false) noexcept;
  /// Only for a push: starts to push at most remote_notified_bytes_max bytes, and has the push counted. `notification`:
  /// 1 + the counter.
  void start_notified(const RemotePlace& target, std::span<Local> from, std::uint32_t notification) noexcept;
  /// Waits for all pieces. Returns ok or the first failure.
  Status end() noexcept;

 private:
  static constexpr std::size_t pieces_max = 16;

  /// Iterates over regions in pieces; skips empty regions.
  struct Cursor {
    Local* local = nullptr;
    std::span<const Region> regions;
    std::uint64_t done = 0;  // of the first region

    void skip_empty() noexcept {
      while (!regions.empty() && done == regions.front().bytes) {
        regions = regions.subspan(1);
        done = 0;
      }
    }
    [[nodiscard]] std::uint64_t place() const noexcept { return regions.front().offset + done; }
    std::uint64_t take(std::uint64_t bytes_max) noexcept;
  };
  struct Piece {
    PendingAccess pending;
    bool in_program = false;
    Cursor start;
    std::size_t stretches = 0;
    std::uint64_t bytes = 0;
    Status not_sent = Status::ok;  // why the target was not asked
  };

  Piece& next_piece() noexcept;
  static Cursor plan(Piece& piece, Cursor cursor) noexcept;
  void ask(Piece& piece, const RemotePlace& target, std::uint32_t notification) noexcept;
  Status fill(const Piece& piece, std::byte* tail, std::uint64_t base) noexcept;
  void end(Piece& piece) noexcept;
  Status store_data(Piece& piece) noexcept;

  const job::Session& session_;
  Origin& origin_;
  std::uint32_t window_;
  fabric::Pipeline<Piece, pieces_max> under_way_;
  Status status_ = Status::ok;
};

inline constexpr std::size_t remote_notified_bytes_max = fabric::bulk_tail_bytes_max;

}  // namespace tonari::window
