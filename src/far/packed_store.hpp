#pragma once

#include "base/mapping.hpp"
#include "far/slots.hpp"
#include "far/store.hpp"
#include "pager/page.hpp"
#include "pager/source.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::far {

// Where a page is stored, in one word. Bits:
//   63                                        13 12           0
//   +-------------------------------------------+--------------+
//   | place in the store                        | bytes        |
//   +-------------------------------------------+--------------+
// bytes: page_bytes: the page is stored as it is; less: it is an LZ4 block; 0: no page is stored.
class Piece {
 public:
  constexpr Piece() noexcept = default;
  constexpr Piece(std::uint64_t place, std::size_t bytes) noexcept : word_(place << bytes_bits | bytes) {}

  [[nodiscard]] constexpr bool exists() const noexcept { return bytes() != 0; }
  [[nodiscard]] constexpr bool is_packed() const noexcept { return bytes() != pager::page_bytes; }
  [[nodiscard]] constexpr std::uint64_t place() const noexcept { return word_ >> bytes_bits; }
  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return word_ & ((1ULL << bytes_bits) - 1); }
  /// Returns the size of its slot.
  [[nodiscard]] constexpr std::size_t slot_bytes() const noexcept {
    return (bytes() + Slots::unit_bytes - 1) / Slots::unit_bytes * Slots::unit_bytes;
  }
  /// Returns true if it begins where the slot of `other` ends, in the same chunk: both are then one range of the store.
  [[nodiscard]] constexpr bool follows(Piece other) const noexcept {
    return place() == other.place() + other.slot_bytes() && place() % pager::block_bytes != 0;
  }

 private:
  static constexpr unsigned bytes_bits = 13;
  std::uint64_t word_ = 0;
};
static_assert(sizeof(Piece) == sizeof(std::uint64_t));
static_assert(Piece(~0ULL >> 13, pager::page_bytes).bytes() == pager::page_bytes);

/// Like Store, but compresses each page on its own and puts it into a slot of the store. A changed page is written to a
/// new slot before its old slot is freed. So a failed store leaves the old contents.
///
/// Owns:    the table of stored pages; the store outlives it and is used by nobody else.
/// Threads: as pager::Source.
/// Costs:   some microseconds to compress 4 KiB, less to decompress (docs/modules/far.md); a short lock for each page
///          that is stored or discarded.
class PackedStore final : public pager::Source {
 public:
  /// `bytes`: size of the arena. Throws SetupError.
  PackedStore(Store& store, std::uint64_t bytes);

  Status fetch(std::uint64_t place, std::span<std::byte> into) noexcept override;
  Status store(std::uint64_t place, std::span<const std::byte> from) noexcept override;
  Status discard(std::uint64_t place, std::uint64_t bytes) noexcept override;

  /// size of the stored pages
  [[nodiscard]] std::uint64_t kept_bytes() const noexcept;
  /// the room that they take
  [[nodiscard]] std::uint64_t packed_bytes() const noexcept { return slots_.taken_bytes(); }
  /// the room in its chunks that no page takes
  [[nodiscard]] std::uint64_t free_bytes() const noexcept { return slots_.free_bytes(); }
  /// Returns the compressed size of all pages that were ever stored.
  [[nodiscard]] std::uint64_t packed_bytes_out() const noexcept {
    return packed_bytes_out_.load(std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] std::span<Piece> pieces_at(std::uint64_t place, std::uint64_t bytes) const noexcept {
    return {pieces_ + place / pager::page_bytes, bytes / pager::page_bytes};
  }
  Status replace(std::span<Piece> pieces, std::span<const std::byte> from) noexcept;
  Status write(std::span<Piece> fresh, std::span<const std::byte> from) noexcept;
  Status read(std::span<const Piece> row, std::byte* into) noexcept;
  void forget(std::span<Piece> pieces) noexcept;

  Store& store_;
  Slots slots_;
  Mapping piece_memory_;  // starts as zeros: no page is stored
  Piece* pieces_;
  std::atomic<std::uint64_t> kept_pages_{0};  // relaxed, as the next: a count
  std::atomic<std::uint64_t> packed_bytes_out_{0};
};

}  // namespace tonari::far
