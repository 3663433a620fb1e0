#pragma once

#include "base/lock.hpp"
#include "fabric/head.hpp"

#include <tonari/status.hpp>

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tonari::fabric {

inline constexpr std::size_t tickets_max = 256;       // announced payloads of one rank at a time
inline constexpr std::size_t replies_per_ticket = 2;  // a grant and a done
// Twice what is reserved: slots that were read are given back a quarter of the ring at a time.
inline constexpr std::size_t reply_slots = 2 * tickets_max * replies_per_ticket;

/// How long the chunks of a payload are. A call costs 0.5 us alone and 2.4 us beside the other side's (both want the
/// same locks of the kernel), so chunks are few: one up to where a second call no longer pays, then as many as double
/// with the size, up to `chunk_bytes_max`.
inline constexpr std::uint64_t alone_bytes_max = 24 * 1024;
constexpr std::uint64_t chunk_bytes_of(std::uint64_t bytes, std::uint64_t chunk_bytes_max) noexcept {
  constexpr std::uint64_t halves_bytes_max = 256 * 1024;
  constexpr std::uint64_t page = 4096;
  const std::uint64_t chunks = bytes <= alone_bytes_max ? 1 : bytes <= halves_bytes_max ? 2 : 4;
  return std::clamp<std::uint64_t>((bytes / chunks + page - 1) / page * page, page, chunk_bytes_max);
}
constexpr std::uint32_t chunks_of(std::uint64_t bytes, std::uint64_t chunk_bytes) noexcept {
  return static_cast<std::uint32_t>((bytes + chunk_bytes - 1) / chunk_bytes);
}

// A payload that both sides copy at once, chunk by chunk. In the sender's segment, named by its ticket.
//
// claim  bits 32-63: generation of the ticket; bits 0-31: the next chunk nobody has claimed, or all ones: closed.
// done   chunks copied. Who brings it to the number of chunks is the finisher, and tells the other side by a head.
//
// I1  a chunk is claimed once                                      claim(): compare-exchange
// I2  a side that comes late claims nothing of a later transfer    claim(): generation
// I3  there is exactly one finisher                                finish_chunk(): fetch-add
// I4  of a closed transfer no chunk was or will be claimed         close(): compare-exchange from 0
struct TransferMemory {
  alignas(head_bytes) std::atomic<std::uint64_t> claim;
  alignas(head_bytes) std::atomic<std::uint32_t> done;
  std::atomic<std::uint32_t> failed;  // a tonari::Status: a side could not copy a chunk

  /// Opens it for chunks. By the sender, before the ticket is announced (which publishes it).
  void open(std::uint32_t generation) noexcept {
    done.store(0, std::memory_order_relaxed);
    failed.store(0, std::memory_order_relaxed);
    // Release: what this side copied of the generation before is seen by whose close() finds this one.
    claim.store(std::uint64_t{generation} << 32, std::memory_order_release);
  }
  /// The next chunk of `chunks`, for the caller alone; nothing when all are claimed or the generation is over.
  std::optional<std::uint32_t> take_chunk(std::uint32_t generation, std::uint32_t chunks) noexcept {
    std::uint64_t seen = claim.load(std::memory_order_relaxed);  // relaxed: claiming hands over no data
    do {
      if (seen >> 32 != generation || (seen & 0xffffffff) >= chunks) return std::nullopt;
    } while (!claim.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed));
    return static_cast<std::uint32_t>(seen);
  }
  /// Has neither side copy anything, unless one has begun: then false, and it must be brought to its end. True also
  /// when that came before: the caller, the receiver, then sees all that was copied.
  bool close(std::uint32_t generation) noexcept {
    constexpr std::uint64_t closed = 0xffffffff;
    std::uint64_t seen = std::uint64_t{generation} << 32;
    // Acquire: pairs with open() of a later generation.
    if (claim.compare_exchange_strong(seen, seen | closed, std::memory_order_acquire)) return true;
    return seen >> 32 != generation || (seen & 0xffffffff) == closed;
  }
  /// Says that a claimed chunk is copied. True for the finisher, who then sees all that both sides copied.
  bool finish_chunk(std::uint32_t chunks, Status status) noexcept {
    if (status != Status::ok) failed.store(static_cast<std::uint32_t>(status), std::memory_order_relaxed);
    return done.fetch_add(1, std::memory_order_acq_rel) + 1 == chunks;
  }
  enum class Chunk : std::uint8_t { none, copied, last };
  /// Copies a chunk that nobody has claimed by `copy(offset, bytes)`, which answers a Status. `last`: the caller is the
  /// finisher.
  template <class Copy>
  Chunk copy_chunk(std::uint32_t generation, std::uint64_t bytes, std::uint64_t chunk_bytes, Copy copy) noexcept {
    const std::uint32_t chunks = chunks_of(bytes, chunk_bytes);
    const auto chunk = take_chunk(generation, chunks);
    if (!chunk) return Chunk::none;
    const std::uint64_t offset = *chunk * chunk_bytes;
    return finish_chunk(chunks, copy(offset, std::min(chunk_bytes, bytes - offset))) ? Chunk::last : Chunk::copied;
  }
  /// The same with all that are left. True for the finisher.
  template <class Copy>
  bool copy_chunks(std::uint32_t generation, std::uint64_t bytes, std::uint64_t chunk_bytes, Copy copy) noexcept {
    Chunk chunk = Chunk::copied;
    while (chunk == Chunk::copied) chunk = copy_chunk(generation, bytes, chunk_bytes, copy);
    return chunk == Chunk::last;
  }
  /// No chunk of `chunks` is being copied, nor ever will be.
  [[nodiscard]] bool is_over(std::uint32_t generation, std::uint32_t chunks) noexcept {
    return done.load(std::memory_order_acquire) >= chunks || close(generation);
  }
  [[nodiscard]] Status outcome() const noexcept { return status_of(failed.load(std::memory_order_relaxed)); }
};
static_assert(sizeof(TransferMemory) == 2 * head_bytes);

/// The tickets of a rank: each is a TransferMemory and room for its replies. Threads: any thread of the rank.
class Tickets {
 public:
  struct Ticket {
    std::uint32_t index;
    std::uint32_t generation;
  };
  explicit Tickets(TransferMemory* memory) noexcept : memory_(memory) { free_.fill(~std::uint64_t{0}); }

  /// A ticket whose transfer is open, or nothing when no more than `spare` are left.
  std::optional<Ticket> take(unsigned spare = 0) noexcept;
  void give_back(std::uint32_t index) noexcept;

 private:
  TransferMemory* memory_;
  SpinLock lock_;  // of the rest
  std::array<std::uint64_t, tickets_max / 64> free_;
  std::array<std::uint32_t, tickets_max> generation_{};
};

/// How a rank copies straight between its own memory and that of another rank of its host.
class DirectCopy {
 public:
  /// `same_memory`: the ranks are threads of one process.
  DirectCopy(int peer_pid, bool same_memory) noexcept : pid_(peer_pid), same_memory_(same_memory) {}
  /// Between memory that is mapped here: addresses "there" are addresses here.
  static DirectCopy here() noexcept { return {0, true}; }

  /// Answers ok, bad_address (one of the two ranges is not readable or writable), or peer_gone.
  Status read(std::byte* to, std::uint64_t from, std::size_t bytes) const noexcept;
  Status write(std::uint64_t to, const std::byte* from, std::size_t bytes) const noexcept;
  /// Several stretches, each here and there of one length, with one call of the system: at most stretches_max.
  static constexpr std::size_t stretches_max = 64;
  Status read(std::span<const iovec> here, std::span<const iovec> there) const noexcept;
  Status write(std::span<const iovec> here, std::span<const iovec> there) const noexcept;
  /// Answer how many were copied whole, from the first on, until one could not be reached.
  std::size_t read_first(std::span<const iovec> here, std::span<const iovec> there) const noexcept;
  std::size_t write_first(std::span<const iovec> here, std::span<const iovec> there) const noexcept;

 private:
  int pid_;
  bool same_memory_;
};

}  // namespace tonari::fabric
