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

/// Holds the pages of a program that are not in its memory, in chunks that servers lend. A chunk is taken when its
/// first page is stored, and given back when all of its pages are discarded.
///
/// Owns:    the chunks that it has taken; the servers outlive it.
/// Threads: as pager::Source; lost_bytes() any.
/// Costs:   one window access per call; taking a chunk also costs what Servers says.
class Store final : public pager::Source {
 public:
  /// `bytes`: size of the arena.
  Store(Servers& servers, std::uint64_t bytes);

  Status fetch(std::uint64_t place, std::span<std::byte> into) noexcept override;
  Status store(std::uint64_t place, std::span<const std::byte> from) noexcept override;
  Status discard(std::uint64_t place, std::uint64_t bytes) noexcept override;
  std::span<const std::byte> look(std::uint64_t place, std::uint64_t bytes) noexcept override;
  std::span<std::byte> room(std::uint64_t place, std::uint64_t bytes) noexcept override;

  // The calls below use the store as a flat range of bytes, for a caller that decides itself which chunks are taken. It
  // may write, fetch and look at any bytes of a taken chunk, from any threads at once. It never calls store() or
  // discard().

  /// Takes the chunk at `place`. Returns false if no server has room.
  bool take_chunk(std::uint64_t place) noexcept { return take(chunk_at(place)); }
  Status write(std::uint64_t place, std::span<const std::byte> from) noexcept;
  void give_back_chunk(std::uint64_t place) noexcept { give_back(chunk_at(place)); }
  [[nodiscard]] std::uint64_t chunks() const noexcept { return count_; }

  /// Returns the size of the chunks whose every server has died.
  [[nodiscard]] std::uint64_t lost_bytes() const noexcept;
  /// Gives all chunks back, for the next program. Call it when the store is not used any more.
  void give_all_back() noexcept;

 private:
  using Copy = Servers::Copy;

  struct alignas(64) Chunk {
    std::array<std::atomic<Copy>, Servers::replicas_max> copies{};  // changed only by the thread that holds the block
    // pages that hold data; only for the thread that holds the block
    pager::PageSet stored;
    [[nodiscard]] bool is_taken() const noexcept { return copies.front().load(std::memory_order_relaxed) != 0; }
  };
  [[nodiscard]] Chunk& chunk_at(std::uint64_t place) const noexcept { return chunks_[place / pager::block_bytes]; }
  [[nodiscard]] std::span<std::byte> mapped(const Chunk& chunk, std::uint64_t place,
                                            std::uint64_t bytes) const noexcept;
  bool take(Chunk& chunk) noexcept;
  void give_back(Chunk& chunk) noexcept;
  void set_stored(Chunk& chunk, const pager::PageSet& stored) noexcept;
  [[nodiscard]] std::span<Chunk> ever_taken() const noexcept;

  Servers& servers_;
  Mapping chunk_memory_;  // starts as zeros: nothing is stored
  Chunk* chunks_;
  std::uint64_t count_;
  // end of the chunks ever taken; relaxed: a thread knows the chunks that it took itself
  std::atomic<std::uint64_t> end_{0};
};

}  // namespace tonari::far
