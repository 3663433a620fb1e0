#pragma once

#include "base/mapping.hpp"
#include "far/servers.hpp"
#include "pager/page.hpp"
#include "pager/source.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::far {

/// Where a program's data are while they are not with it: chunks that servers lend. One is taken when its first page is
/// stored, and given back when all of its pages are zeros again.
///
/// Owns:    what it keeps of chunks; the servers outlive it.
/// Threads: as pager::Source; lost_bytes() any.
/// Costs:   an access to a window for each call; what Servers takes for a chunk.
class Store final : public pager::Source {
 public:
  /// For an arena of so many bytes.
  Store(Servers& servers, std::uint64_t bytes);

  Status fetch(std::uint64_t place, std::span<std::byte> into) noexcept override;
  Status store(std::uint64_t place, std::span<const std::byte> from) noexcept override;
  Status discard(std::uint64_t place, std::uint64_t bytes) noexcept override;
  std::span<const std::byte> look(std::uint64_t place, std::uint64_t bytes) noexcept override;
  std::span<std::byte> room(std::uint64_t place, std::uint64_t bytes) noexcept override;

  // A plain place of bytes, for who decides by himself which chunks are taken: any bytes of such a chunk are written,
  // fetched and looked at, by any threads at once. He never calls store() or discard().

  /// The chunk at `place`. False: no server has room.
  bool take_chunk(std::uint64_t place) noexcept { return take(chunk_at(place)); }
  Status write(std::uint64_t place, std::span<const std::byte> from) noexcept;
  void give_back_chunk(std::uint64_t place) noexcept { give_back(chunk_at(place)); }
  [[nodiscard]] std::uint64_t chunks() const noexcept { return count_; }

  /// Of chunks that were only on servers which have died.
  [[nodiscard]] std::uint64_t lost_bytes() const noexcept;
  /// All of it, when nobody else uses it any more: for the next program.
  void give_all_back() noexcept;

 private:
  using Copy = Servers::Copy;

  struct alignas(64) Chunk {
    std::array<std::atomic<Copy>, Servers::replicas_max> copies{};  // changed by the block's holder
    pager::PageSet stored;                                          // the holder's: not zeros
    [[nodiscard]] bool is_taken() const noexcept { return copies.front().load(std::memory_order_relaxed) != 0; }
  };
  [[nodiscard]] Chunk& chunk_at(std::uint64_t place) const noexcept { return chunks_[place / pager::block_bytes]; }
  [[nodiscard]] std::span<std::byte> mapped(const Chunk& chunk, std::uint64_t place,
                                            std::uint64_t bytes) const noexcept;
  bool take(Chunk& chunk) noexcept;
  void give_back(Chunk& chunk) noexcept;
  [[nodiscard]] std::span<Chunk> ever_taken() const noexcept;

  Servers& servers_;
  Mapping chunk_memory_;  // of zeros, which say that nothing is stored
  Chunk* chunks_;
  std::uint64_t count_;
  std::atomic<std::uint64_t> end_{0};  // of the chunks that were ever taken; relaxed: who took one knows that he did
};

}  // namespace tonari::far
