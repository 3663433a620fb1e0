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

// Where a page is, in one word. Bits:
//   63                                        13 12           0
//   +-------------------------------------------+--------------+
//   | place in the store                        | bytes        |
//   +-------------------------------------------+--------------+
// bytes: page_bytes, and it is as it was; less, and it is an LZ4 block; 0, and there is none.
class Piece {
 public:
  constexpr Piece() noexcept = default;
  constexpr Piece(std::uint64_t place, std::size_t bytes) noexcept : word_(place << bytes_bits | bytes) {}

  [[nodiscard]] constexpr bool exists() const noexcept { return bytes() != 0; }
  [[nodiscard]] constexpr bool is_packed() const noexcept { return bytes() != pager::page_bytes; }
  [[nodiscard]] constexpr std::uint64_t place() const noexcept { return word_ >> bytes_bits; }
  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return word_ & ((1ULL << bytes_bits) - 1); }
  /// Of the slot that it lies in.
  [[nodiscard]] constexpr std::size_t slot_bytes() const noexcept {
    return (bytes() + Slots::unit_bytes - 1) / Slots::unit_bytes * Slots::unit_bytes;
  }
  /// It begins where the slot of `other` ends, and in the same chunk: both are one range of the store.
  [[nodiscard]] constexpr bool follows(Piece other) const noexcept {
    return place() == other.place() + other.slot_bytes() && place() % pager::block_bytes != 0;
  }

 private:
  static constexpr unsigned bytes_bits = 13;
  std::uint64_t word_ = 0;
};
static_assert(sizeof(Piece) == sizeof(std::uint64_t));
static_assert(Piece(~0ULL >> 13, pager::page_bytes).bytes() == pager::page_bytes);

/// The same as a Store, with the pages compressed: each by itself, into a slot of it. A page that changes gets another
/// slot, and leaves the old one when the new is written; so what cannot be stored leaves what there was.
///
/// Owns:    what it knows of pages; the store outlives it, and nobody else uses it.
/// Threads: as pager::Source.
/// Costs:   compressing 4 KiB some microseconds, the way back less (docs/modules/far.md); a short lock for each page
/// that is
///          stored or discarded.
class PackedStore final : public pager::Source {
 public:
  /// For an arena of so many bytes. Throws SetupError.
  PackedStore(Store& store, std::uint64_t bytes);

  Status fetch(std::uint64_t place, std::span<std::byte> into) noexcept override;
  Status store(std::uint64_t place, std::span<const std::byte> from) noexcept override;
  Status discard(std::uint64_t place, std::uint64_t bytes) noexcept override;

  [[nodiscard]] std::uint64_t kept_bytes() const noexcept;                                    ///< Of pages.
  [[nodiscard]] std::uint64_t packed_bytes() const noexcept { return slots_.taken_bytes(); }  ///< What they take.
  /// What all pages took that were ever stored.
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
  Mapping piece_memory_;  // of zeros: there are no pages
  Piece* pieces_;
  std::atomic<std::uint64_t> kept_pages_{0};  // relaxed, as the next: counts
  std::atomic<std::uint64_t> packed_bytes_out_{0};
};

}  // namespace tonari::far
