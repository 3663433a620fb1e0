#pragma once

#include "base/file_descriptor.hpp"
#include "base/futex.hpp"
#include "base/mapping.hpp"
#include "base/settings.hpp"
#include "job/pool.hpp"

#include <tonari/job.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <vector>

namespace tonari::job {

inline constexpr std::size_t cache_line_bytes = 64;
inline constexpr std::uint32_t arena_version = 5;
/// The longest address of a network that ranks exchange in an arena.
inline constexpr std::size_t card_bytes_max = 2040;
/// What a rank's segment holds beside its request ring; src/fabric/segment.hpp proves that it suffices.
inline constexpr std::size_t segment_fixed_bytes = 4 << 20;
inline constexpr int ranks_per_host_max = 1 << 14;  // the publish field of a head names a local rank in 14 bits

/// Where a rank stands in its life. Only ever grows.
enum class Phase : std::uint32_t { absent, joined, running, leaving, left, dead };
std::string_view to_string(Phase phase) noexcept;

/// What a rank's threads wait for, for `tonari status`. Written only when a wait has become long.
enum class Wait : std::uint32_t {
  nothing,
  send,
  receive,
  probe,
  barrier,
  broadcast,
  reduce,
  all_reduce,
  scan,
  gather,
  scatter,
  all_gather,
  all_to_all,
  room,
  lock,
  notification,
  window,
  leave
};
std::string_view to_string(Wait wait) noexcept;

/// Counters of a rank as they lie in the arena; Statistics has their meaning. Relaxed throughout: nothing is ordered by
/// a count, and readers want each one whole, not all at one moment.
struct Counters {
  using Count = std::atomic<std::uint64_t>;
  Count messages_sent{0}, bytes_sent{0};                      // by the thread that made the rank's messages
  Count messages_sent_by_others{0}, bytes_sent_by_others{0};  // by its other threads, as the next
  Count held_back{0}, wake_ups{0};
  alignas(cache_line_bytes) Count messages_received{0};  // from here on by the receiving side
  Count bytes_direct{0}, bytes_buffered{0}, posted_now{0}, posted_max{0}, unexpected_now{0}, unexpected_max{0},
      unexpected_bytes_now{0}, unexpected_bytes_max{0}, sleeps{0};

  [[nodiscard]] Statistics read() const noexcept;
  /// Where one thread at a time counts: a read-modify-write would first wait for all stores before it.
  static void add(Count& count, std::uint64_t value) noexcept {
    count.store(count.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
};

/// What all ranks of a host may see of one rank. Offsets by cache line: identity; doorbells; what it waits for;
/// counters.
struct alignas(cache_line_bytes) RankBlock {
  // Identity: written by the rank while joining, and on a death by who noticed it.
  std::atomic<Phase> phase{Phase::absent};
  std::atomic<std::int32_t> pid{0};
  std::atomic<std::int32_t> death_signal{0};
  std::atomic<std::int32_t> death_status{0};  // -1: not known, it ran under a wrapper that keeps it to itself
  std::atomic<std::uint32_t> lives_on{0};     // 1: has a death handler, so a death elsewhere must not end it
  std::atomic<std::uint32_t> full{0};         // 1: its unexpected messages are at their limit; senders read this line
  std::atomic<std::uint64_t> probe{0};  // where its probe word lies in its own memory: a neighbour reads that word by
                                        // process_vm_readv to learn whether it may

  alignas(cache_line_bytes) std::atomic<std::uint32_t> doorbell{
      0};                                         // futex: the holder of the progress lock sleeps on it
  std::atomic<std::uint32_t> progress_lock{0};    // fabric/engine.hpp
  std::atomic<std::uint32_t> doorbell_socket{0};  // 1: it sleeps on a socket instead
  alignas(cache_line_bytes) std::atomic<std::uint32_t> service_doorbell{0};  // futex: its service thread sleeps on it
  std::atomic<std::uint32_t> service_doorbell_socket{0};                     // as above

  alignas(cache_line_bytes) std::atomic<Wait> wait{Wait::nothing};
  std::atomic<std::int32_t> wait_peer{-1};  // rank of the job, or -1: any
  std::atomic<std::int32_t> wait_tag{-1};
  std::atomic<std::uint64_t> wait_since_ns{0};  // CLOCK_MONOTONIC

  alignas(cache_line_bytes) Counters counters;

  /// The rank's address in the network, for the others.
  struct Card {
    std::atomic<std::uint32_t> bytes{0};  // published with what it counts; 0: not there yet
    std::array<std::byte, card_bytes_max> address;
  };
  alignas(cache_line_bytes) Card card;
};

/// The first bytes of an arena.
struct alignas(cache_line_bytes) ArenaHeader {
  std::uint32_t version = arena_version;
  std::uint32_t ranks = 0;
  std::uint64_t segment_bytes = 0;  // of each rank, whole pages
  std::uint64_t ring_slots = 0;     // fabric's own numbers, fixed by who made the arena
  std::uint64_t created_ns = 0;     // CLOCK_MONOTONIC
  std::uint64_t name = 0;           // no other arena's of this host
  std::uint32_t cores = 1;          // that the ranks may run on: more ranks than cores wait differently

  alignas(cache_line_bytes) std::atomic<std::uint32_t> deaths{0};   // ranks that died; also a futex
  std::atomic<std::uint32_t> cards{0};                              // ranks whose address is there; also a futex
  std::atomic<std::uint32_t> left{0};                               // ranks that left or died; also a futex
  alignas(cache_line_bytes) std::atomic<std::uint32_t> context{0};  // message: next free context
  std::atomic<std::uint32_t> pool_taken{0};                         // granules of the pool; pool.hpp
  std::uint32_t pool_granules = 0;                                  // there are, from the end of the segments on
};

/// The memory that the ranks of one host share: one memfd, mapped by all, gone with the last of them. It has room for
/// all ranks of the job, and what is kept for those of other hosts is not touched.
///
///   header | rank block 0 .. N-1 | (page) segment 0 | segment 1 | .. | segment N-1 | (granule) pool
///
/// A segment is its rank's rings and bulk memory: ring_slots * 64 + segment_fixed_bytes, laid out by
/// src/fabric/segment.hpp. Fresh memory is zero, and zero is an empty ring. The pool (pool.hpp) is mapped in parts, by
/// who needs them.
///
/// Owns:    the descriptor and one mapping of all but the pool, which forked children do not inherit.
/// Threads: any thread, any process that maps it.
/// Costs:   address space for all segments; memory only for what is touched.
class Arena {
 public:
  /// Makes an arena for `ranks` ranks. Throws SetupError when the machine has not the memory for that many.
  static Arena create(int ranks, const Settings& settings);
  /// Maps one made by another process. Throws SetupError when it is not of this version or size.
  explicit Arena(FileDescriptor memory);

  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(header().ranks); }
  [[nodiscard]] ArenaHeader& header() const noexcept {
    return *std::launder(reinterpret_cast<ArenaHeader*>(mapping_.bytes().data()));
  }
  /// Of a rank of another host: what this rank alone knows of it, once keep_remote_ranks() was called.
  [[nodiscard]] RankBlock& block(int rank) const noexcept {
    if (!remote_.empty() && remote_[static_cast<std::size_t>(rank)]) return *remote_[static_cast<std::size_t>(rank)];
    std::byte* const start = mapping_.bytes().data() + sizeof(ArenaHeader);
    return reinterpret_cast<RankBlock*>(start)[rank];
  }
  [[nodiscard]] std::span<std::byte> segment(int rank) const noexcept;
  [[nodiscard]] const FileDescriptor& memory() const noexcept { return memory_; }
  [[nodiscard]] Pool& pool() const noexcept { return *pool_; }
  /// Where in the memory a byte of the header, a block or a segment lies.
  [[nodiscard]] std::uint64_t place_of(const std::byte* byte) const noexcept {
    return static_cast<std::uint64_t>(byte - mapping_.bytes().data());
  }
  /// Bytes of the header and all rank blocks: what someone who only looks has to map.
  [[nodiscard]] static std::size_t blocks_bytes(std::size_t ranks) noexcept;

  /// Those ranks are on other hosts, and are told of to this process alone, rank by rank.
  void keep_remote_ranks(const std::vector<bool>& is_remote);

  /// Moves a rank on to a later phase and answers the one it was in. Does nothing when it is there already, or further.
  Phase advance(int rank, Phase phase) noexcept;
  /// The rank leaves: counts it, once, and wakes those who wait for the last one.
  void mark_leaving(int rank) noexcept;
  /// True when every rank leaves, has left, or is dead.
  [[nodiscard]] bool all_leave() const noexcept;
  /// Records a death once (later calls for the rank do nothing, nor does a call for one that has left) and wakes
  /// everyone who may wait for it. Called by the rank itself, or by another process once the rank's is gone.
  void mark_dead(int rank, int signal, int exit_status) noexcept;
  /// Wakes the thread of a rank of this host that sleeps on its doorbell, or its service thread.
  void ring_doorbell(int rank) noexcept {
    ring(rank, block(rank).doorbell, block(rank).doorbell_socket, Doorbell::waiting);
  }
  void ring_service_doorbell(int rank) noexcept {
    ring(rank, block(rank).service_doorbell, block(rank).service_doorbell_socket, Doorbell::service);
  }
  /// Wakes every rank's waiting and service threads.
  void ring_all_doorbells() noexcept;

  /// Which of a rank's two doorbells.
  enum class Doorbell : std::uint8_t { waiting, service };
  /// A socket that becomes readable when the doorbell rings while the rank says that it sleeps there: for who has to
  /// wait for other descriptors too. One a doorbell. Throws SetupError.
  [[nodiscard]] FileDescriptor open_doorbell(int rank, Doorbell doorbell) const;

 private:
  void count_left() noexcept;
  void ring(int rank, std::atomic<std::uint32_t>& doorbell, const std::atomic<std::uint32_t>& socket,
            Doorbell which) noexcept {
    // Sequentially consistent with who falls asleep: either it sees the doorbell rung, or we see where it sleeps.
    // Release, so with what it is rung for.
    doorbell.fetch_add(1, std::memory_order_seq_cst);
    if (socket.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      ring_socket(rank, which);
    else
      futex_wake(doorbell, 0x7fffffff);
  }
  [[gnu::cold]] void ring_socket(int rank, Doorbell doorbell) const noexcept;

  FileDescriptor memory_;
  FileDescriptor ringer_;  // a socket to send from
  Mapping mapping_;
  std::unique_ptr<Pool> pool_;
  std::vector<std::unique_ptr<RankBlock>> remote_;  // by rank; empty where there is one host
};

}  // namespace tonari::job
