#pragma once

#include "fabric/board.hpp"
#include "fabric/bulk.hpp"
#include "fabric/ring.hpp"
#include "fabric/transfer.hpp"
#include "job/arena.hpp"

namespace tonari::fabric {

constexpr std::size_t page_up(std::size_t bytes) noexcept { return (bytes + 4095) / 4096 * 4096; }

/// The part of the arena that belongs to one rank:
///
///   +----------+-----------+-------------+--------+------------------------------+
///   | bulk     | transfers | reply ring  | boards | request ring (ring_slots)    |
///   +----------+-----------+-------------+--------+------------------------------+
class Segment {
 public:
  explicit Segment(std::span<std::byte> bytes) noexcept : base_(bytes.data()) {}

  [[nodiscard]] BulkMemory& bulk() const noexcept { return *reinterpret_cast<BulkMemory*>(base_); }
  [[nodiscard]] TransferMemory* transfers() const noexcept {
    return reinterpret_cast<TransferMemory*>(base_ + transfers_at);
  }
  [[nodiscard]] RingMemory& replies() const noexcept { return *reinterpret_cast<RingMemory*>(base_ + replies_at); }
  [[nodiscard]] BoardMemory* boards() const noexcept { return reinterpret_cast<BoardMemory*>(base_ + boards_at); }
  [[nodiscard]] RingMemory& requests() const noexcept { return *reinterpret_cast<RingMemory*>(base_ + requests_at); }

 private:
  static constexpr std::size_t transfers_at = page_up(bulk_memory_bytes);
  static constexpr std::size_t replies_at = page_up(transfers_at + tickets_max * sizeof(TransferMemory));
  static constexpr std::size_t boards_at = page_up(replies_at + ring_control_bytes + reply_slots * head_bytes);
  static constexpr std::size_t requests_at = page_up(boards_at + boards_max * sizeof(BoardMemory));
  static_assert(requests_at + ring_control_bytes <= job::segment_fixed_bytes);

  std::byte* base_;
};

}  // namespace tonari::fabric
