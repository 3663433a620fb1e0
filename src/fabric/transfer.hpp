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

inline constexpr std::size_t tickets_max = 256;       // announced payloads per rank at a time
inline constexpr std::size_t replies_per_ticket = 2;  // a grant and a done
// Twice the reserved number, since the reader gives slots back a quarter of the ring at a time.
inline constexpr std::size_t reply_slots = 2 * tickets_max * replies_per_ticket;

/// Returns the size of a payload's chunks. A system call costs 0.5 us alone, and 2.4 us while the other side makes one
/// too, since both need the same kernel locks. So there are few chunks: one where a second call would not pay off, then
/// two, then four, each of at most `chunk_bytes_max`.
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

// A payload that both sides copy at the same time, chunk by chunk. It is in the sender's segment; its ticket names it.
//
// claim  bits 32-63: generation of the ticket; bits 0-31: the next unclaimed chunk, or all ones if closed.
// done   number of chunks copied. The side that copies the last chunk is the finisher and sends the other side a head.
//
// I1  a chunk is claimed once                                      take_chunk(): compare-exchange
// I2  a late side claims no chunk of a later transfer              take_chunk(): generation
// I3  there is exactly one finisher                                finish_chunk(): fetch-add
// I4  no chunk of a closed transfer was or will be claimed         close(): compare-exchange from 0
struct TransferMemory {
  alignas(head_bytes) std::atomic<std::uint64_t> claim;
  alignas(head_bytes) std::atomic<std::uint32_t> done;
  std::atomic<std::uint32_t> failed;  // a tonari::Status: a side could not copy a chunk

  /// Opens the transfer for chunks. Called by the sender before it announces the ticket, which publishes this.
  void open(std::uint32_t generation) noexcept {
    done.store(0, std::memory_order_relaxed);
    failed.store(0, std::memory_order_relaxed);
    // Release: a close() that finds this generation sees what this side copied of the previous one.
    claim.store(std::uint64_t{generation} << 32, std::memory_order_release);
  }
  /// Claims the next of `chunks` for the caller. Returns nothing if all are claimed or the generation is over.
  std::optional<std::uint32_t> take_chunk(std::uint32_t generation, std::uint32_t chunks) noexcept {
    std::uint64_t seen = claim.load(std::memory_order_relaxed);  // relaxed: a claim guards no data
    do {
      if (seen >> 32 != generation || (seen & 0xffffffff) >= chunks) return std::nullopt;
    } while (!claim.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed));
    return static_cast<std::uint32_t>(seen);
  }
  /// Called by the receiver. Closes the transfer so that neither side copies anything, and returns true. Returns false
  /// if a side has begun: then all chunks must be copied. Also returns true if the transfer was over before; the caller
  /// then sees all copied bytes.
  bool close(std::uint32_t generation) noexcept {
    constexpr std::uint64_t closed = 0xffffffff;
    std::uint64_t seen = std::uint64_t{generation} << 32;
    // Acquire: pairs with open() of a later generation.
    if (claim.compare_exchange_strong(seen, seen | closed, std::memory_order_acquire)) return true;
    return seen >> 32 != generation || (seen & 0xffffffff) == closed;
  }
  /// Notes that a claimed chunk is copied. Returns true to the finisher, which then sees all bytes that both sides
  /// copied.
  bool finish_chunk(std::uint32_t chunks, Status status) noexcept {
    std::uint32_t none = 0;  // denied replaces no other failure, because it is tried again in another way
    if (status == Status::denied) {
      failed.compare_exchange_strong(none, static_cast<std::uint32_t>(status), std::memory_order_relaxed);
    } else if (status != Status::ok) {
      failed.store(static_cast<std::uint32_t>(status), std::memory_order_relaxed);
    }
    return done.fetch_add(1, std::memory_order_acq_rel) + 1 == chunks;
  }
  enum class Chunk : std::uint8_t { none, copied, last };
  /// Copies an unclaimed chunk by `copy(offset, bytes)`, which returns a Status. Returns `last` to the finisher.
  template <class Copy>
  Chunk copy_chunk(std::uint32_t generation, std::uint64_t bytes, std::uint64_t chunk_bytes, Copy copy) noexcept {
    const std::uint32_t chunks = chunks_of(bytes, chunk_bytes);
    const auto chunk = take_chunk(generation, chunks);
    if (!chunk) return Chunk::none;
    const std::uint64_t offset = *chunk * chunk_bytes;
    return finish_chunk(chunks, copy(offset, std::min(chunk_bytes, bytes - offset))) ? Chunk::last : Chunk::copied;
  }
  /// Copies all unclaimed chunks in this way. Returns true to the finisher.
  template <class Copy>
  bool copy_chunks(std::uint32_t generation, std::uint64_t bytes, std::uint64_t chunk_bytes, Copy copy) noexcept {
    Chunk chunk = Chunk::copied;
    while (chunk == Chunk::copied) chunk = copy_chunk(generation, bytes, chunk_bytes, copy);
    return chunk == Chunk::last;
  }
  /// Whether no chunk of `chunks` is being copied or ever will be.
  [[nodiscard]] bool is_over(std::uint32_t generation, std::uint32_t chunks) noexcept {
    return done.load(std::memory_order_acquire) >= chunks || close(generation);
  }
  [[nodiscard]] Status outcome() const noexcept { return status_of(failed.load(std::memory_order_relaxed)); }
};
static_assert(sizeof(TransferMemory) == 2 * head_bytes);

/// The tickets of a rank. Each has a TransferMemory and room for the replies. Threads: any thread of the rank.
class Tickets {
 public:
  struct Ticket {
    std::uint32_t index;
    std::uint32_t generation;
  };
  explicit Tickets(TransferMemory* memory) noexcept : memory_(memory) { free_.fill(~std::uint64_t{0}); }

  /// Returns a ticket whose transfer is open, or nothing if at most `spare` tickets are left.
  std::optional<Ticket> take(unsigned spare = 0) noexcept;
  void give_back(std::uint32_t index) noexcept;

 private:
  TransferMemory* memory_;
  SpinLock lock_;  // guards the rest
  std::array<std::uint64_t, tickets_max / 64> free_;
  std::array<std::uint32_t, tickets_max> generation_{};
};

/// Copies directly between this rank's memory and that of another rank of its host.
class DirectCopy {
 public:
  /// `same_memory`: the ranks are threads of one process.
  DirectCopy(int peer_pid, bool same_memory) noexcept : pid_(peer_pid), same_memory_(same_memory) {}
  /// For memory that is mapped in this process: remote addresses are addresses of this process.
  static DirectCopy here() noexcept { return {0, true}; }
  /// Whether remote addresses are addresses of this process, so that its threads may use them.
  [[nodiscard]] bool is_here() const noexcept { return same_memory_; }

  /// Returns ok, bad_address (one of the two ranges is not readable or not writable), denied (the peer has changed its
  /// user, or forbids that others read it), or peer_gone: also if the peer's main thread has ended, but others live.
  Status read(std::byte* to, std::uint64_t from, std::size_t bytes) const noexcept;
  Status write(std::uint64_t to, const std::byte* from, std::size_t bytes) const noexcept;
  /// The same for several stretches in one system call. Stretch i has one length here and there; at most stretches_max.
  static constexpr std::size_t stretches_max = 64;
  Status read(std::span<const iovec> here, std::span<const iovec> there) const noexcept;
  Status write(std::span<const iovec> here, std::span<const iovec> there) const noexcept;
  /// The same between stretches here, at most stretches_max_here, and as many contiguous bytes there.
  static constexpr std::size_t stretches_max_here = 1024;
  Status read(std::span<const iovec> here, std::uint64_t from) const noexcept;
  Status write(std::uint64_t to, std::span<const iovec> here) const noexcept;
  /// Copies until a stretch is not accessible. Returns the number of stretches copied completely.
  std::size_t read_first(std::span<const iovec> here, std::span<const iovec> there) const noexcept;
  std::size_t write_first(std::span<const iovec> here, std::span<const iovec> there) const noexcept;

 private:
  int pid_;
  bool same_memory_;
};

}  // namespace tonari::fabric
