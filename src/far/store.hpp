#pragma once

#include "base/mapping.hpp"
#include "pager/page.hpp"
#include "pager/source.hpp"

#include <tonari/window.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace tonari::far {

/// Where a program's data are while they are not with it: chunks of 2 MiB in the servers' parts of a window, each on
/// as many servers as there are replicas, or on the one that is left. A chunk is taken when its first page is stored,
/// and given back when all of its pages are zeros again.
///
/// Owns:    what it keeps of chunks; the window outlives it.
/// Threads: as pager::Source; server_died() any.
/// Costs:   an access to a window for each call; a lock when a chunk is taken or given back.
class Store final : public pager::Source {
 public:
  static constexpr unsigned replicas_max = 2;

  /// For an arena of so many bytes. `servers` are ranks of the job; at least `replicas` of them.
  Store(Window& window, const std::vector<int>& servers, unsigned replicas, std::uint64_t bytes);

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

  /// No longer asked. Answers the bytes of chunks that were on it alone: lost.
  std::uint64_t server_died(int rank) noexcept;

  [[nodiscard]] std::uint64_t capacity_bytes() const noexcept;  ///< Of data, however often each is kept.
  [[nodiscard]] std::uint64_t used_bytes() const noexcept;      ///< Chunks that are taken, whole.

 private:
  // Server number plus 1 in the upper half, chunk of that server in the lower; 0: none.
  using Copy = std::uint64_t;

  struct alignas(64) Chunk {
    std::array<std::atomic<Copy>, replicas_max> copies{};  // relaxed: changed by the block's holder; a look from others
    pager::PageSet stored;                                 // the holder's: not zeros
    [[nodiscard]] bool is_taken() const noexcept { return copies.front().load(std::memory_order_relaxed) != 0; }
  };
  struct Server {
    int rank = 0;
    std::atomic<bool> alive{true};  // relaxed: who asks a dead one is told so
    std::uint32_t chunks = 0;
    std::uint32_t never_used = 0;  // chunks from here on; under the lock, as the next
    std::vector<std::uint32_t> free{};
  };

  [[nodiscard]] Chunk& chunk_at(std::uint64_t place) const noexcept { return chunks_[place / pager::block_bytes]; }
  [[nodiscard]] GlobalAddress address_of(Copy copy, std::uint64_t place) const noexcept;
  [[nodiscard]] Server& server_of(Copy copy) const noexcept { return (*servers_)[(copy >> 32) - 1]; }
  [[nodiscard]] bool is_alive(Copy copy) const noexcept;
  [[nodiscard]] std::span<std::byte> mapped(const Chunk& chunk, std::uint64_t place,
                                            std::uint64_t bytes) const noexcept;
  [[nodiscard]] unsigned copies_now() const noexcept;
  bool take(Chunk& chunk) noexcept;
  Server* roomiest(const Server* other_than) noexcept;
  void give_back(Chunk& chunk) noexcept;

  Window& window_;
  unsigned replicas_;
  std::unique_ptr<std::vector<Server>> servers_;
  Mapping chunk_memory_;  // of zeros, which say that nothing is stored
  Chunk* chunks_;
  std::uint64_t count_;
  std::atomic<std::uint64_t> used_{0};  // chunks; relaxed: a count
  std::mutex mutex_;                    // of what servers have free
};

}  // namespace tonari::far
