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
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::job {

inline constexpr std::size_t cache_line_bytes = 64;
inline constexpr std::uint32_t arena_version = 8;
/// Length of the longest network address that ranks exchange in an arena.
inline constexpr std::size_t card_bytes_max = 2040;
/// Bytes of a rank's segment beside its request ring. src/fabric/segment.hpp asserts that they suffice.
inline constexpr std::size_t segment_fixed_bytes = 4 << 20;
inline constexpr int ranks_per_host_max = 1 << 14;  // the publish field of a head names a local rank in 14 bits

/// A rank's place in its life cycle. It only grows.
enum class Phase : std::uint32_t { absent, joined, running, leaving, left, dead };
std::string_view to_string(Phase phase) noexcept;

/// The operation that a rank's threads wait for, shown by `tonari status`. Written only after a wait has become long.
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

/// The name of the function that a program waits in, as the program calls it: "MPI_Recv". Empty for tonari's own.
///
/// Threads: one writes; any reads, and may see parts of two names.
class CallName {
 public:
  void set(std::string_view name) noexcept;
  [[nodiscard]] std::string get() const;

 private:
  static constexpr std::size_t words = 12;
  std::array<std::atomic<std::uint64_t>, words> text_{};  // relaxed: for people who look at the job
};

/// Counters of a rank in the arena; Statistics documents them. All accesses are relaxed: no other data are ordered by a
/// count. A reader needs each count to be whole, but not all of them from one moment.
struct Counters {
  using Count = std::atomic<std::uint64_t>;
  Count messages_sent{0}, bytes_sent{0};  // written by the thread that made the rank's message runtime
  Count messages_sent_by_others{0}, bytes_sent_by_others{0};  // and the next line: written by the rank's other threads
  Count held_back{0}, wake_ups{0};
  alignas(cache_line_bytes) Count messages_received{0};  // this and all that follow: written by the receiving side
  Count bytes_direct{0}, bytes_buffered{0}, posted_now{0}, posted_max{0}, unexpected_now{0}, unexpected_max{0},
      unexpected_bytes_now{0}, unexpected_bytes_max{0}, sleeps{0};

  [[nodiscard]] Statistics read() const noexcept;
  /// Adds to a count that one thread at a time writes. A read-modify-write would be slower: it waits for all earlier
  /// stores.
  static void add(Count& count, std::uint64_t value) noexcept {
    count.store(count.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
};

/// The state of one rank that all ranks of its host can read. Offsets by cache line: identity; doorbells; the current
/// wait; counters; the network address.
struct alignas(cache_line_bytes) RankBlock {
  // Identity. The rank writes it while joining; the process that notices the rank's death writes the cause.
  std::atomic<Phase> phase{Phase::absent};
  std::atomic<std::int32_t> pid{0};
  std::atomic<std::int32_t> death_signal{0};
  // The exit status, or -1 if it is unknown: the rank ran under a wrapper that does not pass it on.
  std::atomic<std::int32_t> death_status{0};
  std::atomic<std::uint32_t> lives_on{0};  // 1: has a death handler, so the death of another rank must not end it
  std::atomic<std::uint32_t> full{0};  // 1: its unexpected messages have reached their limit; senders read this line
  // Address of the rank's probe word in its own memory. A neighbour reads and writes the word by process_vm_readv and
  // process_vm_writev to learn whether that is allowed.
  std::atomic<std::uint64_t> probe{0};

  // Futex on which the holder of the progress lock sleeps.
  alignas(cache_line_bytes) std::atomic<std::uint32_t> doorbell{0};
  std::atomic<std::uint32_t> progress_lock{0};    // fabric/progress_lock.hpp
  std::atomic<std::uint32_t> doorbell_socket{0};  // 1: the holder sleeps on a socket instead
  // Futex on which the rank's service thread sleeps.
  alignas(cache_line_bytes) std::atomic<std::uint32_t> service_doorbell{0};
  std::atomic<std::uint32_t> service_doorbell_socket{0};  // 1: the service thread sleeps on a socket instead

  alignas(cache_line_bytes) std::atomic<Wait> wait{Wait::nothing};
  std::atomic<std::int32_t> wait_peer{-1};  // rank of the job, or -1 for any rank
  std::atomic<std::int32_t> wait_tag{-1};
  std::atomic<std::uint64_t> wait_since_ns{0};  // CLOCK_MONOTONIC
  CallName wait_call;

  alignas(cache_line_bytes) Counters counters;

  /// The rank's network address, for the other ranks.
  struct Card {
    std::atomic<std::uint32_t> bytes{0};  // its store publishes the address; 0: not there yet
    std::array<std::byte, card_bytes_max> address;
  };
  alignas(cache_line_bytes) Card card;
};

/// The first bytes of an arena.
struct alignas(cache_line_bytes) ArenaHeader {
  std::uint32_t version = arena_version;
  std::uint32_t ranks = 0;
  std::uint64_t segment_bytes = 0;  // size of each rank's segment, in whole pages
  std::uint64_t ring_slots = 0;     // a number of the fabric, fixed by the creator of the arena
  std::uint64_t created_ns = 0;     // CLOCK_MONOTONIC
  std::uint64_t name = 0;           // random, so that it names this arena among all of the host
  // Number of cores that the ranks may run on. Ranks wait differently if they outnumber the cores.
  std::uint32_t cores = 1;

  alignas(cache_line_bytes) std::atomic<std::uint32_t> deaths{0};  // ranks that died; also a futex
  std::atomic<std::uint32_t> cards{0};  // ranks whose address has been published; also a futex
  std::atomic<std::uint32_t> left{0};   // ranks that left or died; also a futex
  std::atomic<std::uint64_t> abort{0};  // not 0: the rank that ended the job, plus 1, << 32 | the code
  alignas(cache_line_bytes) std::atomic<std::uint32_t> context{0};  // next free context of a communicator
  std::atomic<std::uint32_t> pool_taken{0};                         // granules that were handed out; see pool.hpp
  std::uint32_t pool_granules = 0;                                  // size of the pool, which follows the segments
};

/// The memory that the ranks of one host share: one memfd, which all of them map and which vanishes with the last of
/// them. It has room for all ranks of the job; the parts of ranks of other hosts are never touched.
///
///   header | rank block 0 .. N-1 | (page) segment 0 | segment 1 | .. | segment N-1 | (granule) pool
///
/// A segment holds its rank's rings and bulk memory: ring_slots * 64 + segment_fixed_bytes, laid out by
/// src/fabric/segment.hpp. Fresh memory is zero, and a zeroed ring is empty. The pool (pool.hpp) is mapped in parts by
/// the ranks that need them.
///
/// Owns:    the descriptor, and one mapping of everything except the pool. Forked children do not inherit the mapping.
/// Threads: any thread, any process that maps it.
/// Costs:   address space for all segments; memory only for touched pages.
class Arena {
 public:
  /// Makes an arena for `ranks` ranks. Throws SetupError if the machine does not have enough memory for them.
  static Arena create(int ranks, const Settings& settings);
  /// Maps an arena that another process made. Throws SetupError if its version or size is not the expected one.
  explicit Arena(FileDescriptor memory);

  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(header().ranks); }
  [[nodiscard]] ArenaHeader& header() const noexcept {
    return *std::launder(reinterpret_cast<ArenaHeader*>(mapping_.bytes().data()));
  }
  /// Returns a rank's block. After keep_remote_ranks(), the block of a rank of another host is private to this process
  /// and holds only what this process knows of that rank.
  [[nodiscard]] RankBlock& block(int rank) const noexcept {
    if (!remote_.empty() && remote_[static_cast<std::size_t>(rank)]) return *remote_[static_cast<std::size_t>(rank)];
    std::byte* const start = mapping_.bytes().data() + sizeof(ArenaHeader);
    return reinterpret_cast<RankBlock*>(start)[rank];
  }
  [[nodiscard]] std::span<std::byte> segment(int rank) const noexcept;
  [[nodiscard]] const FileDescriptor& memory() const noexcept { return memory_; }
  [[nodiscard]] Pool& pool() const noexcept { return *pool_; }
  /// Offset in the arena's file of a byte of the header, a block or a segment.
  [[nodiscard]] std::uint64_t place_of(const std::byte* byte) const noexcept {
    return static_cast<std::uint64_t>(byte - mapping_.bytes().data());
  }
  /// Bytes of the header and all rank blocks: the part that an observer has to map.
  [[nodiscard]] static std::size_t blocks_bytes(std::size_t ranks) noexcept;

  /// Gives each rank for which `is_remote` is true a private block, because it is on another host and its state reaches
  /// each process separately.
  void keep_remote_ranks(const std::vector<bool>& is_remote);

  /// Advances a rank to a later phase and returns the phase before. Does nothing if the rank has reached that phase or
  /// a later one.
  Phase advance(int rank, Phase phase) noexcept;
  /// Marks the rank as leaving, counts it once, and wakes the ranks that wait for the last one to leave.
  void mark_leaving(int rank) noexcept;
  /// True if every rank is leaving, has left, or is dead.
  [[nodiscard]] bool all_leave() const noexcept;
  /// Records a death and wakes every rank that may wait for it. Later calls for the same rank do nothing, nor do calls
  /// for a rank that has left. Called by the rank itself, or by another process after the rank's process has ended.
  void mark_dead(int rank, int signal, int exit_status) noexcept;
  /// A rank's call of Job::abort().
  struct Abort {
    int rank;
    int code;

    [[nodiscard]] int exit_status() const noexcept { return (code & 0xff) != 0 ? code & 0xff : 1; }
  };
  /// Records that `rank` ends the job, unless another rank has done so before, and wakes all ranks.
  void abort(int rank, int code) noexcept;
  /// Returns the first rank that has ended the job, if any.
  [[nodiscard]] std::optional<Abort> aborted() const noexcept;
  /// Wakes the thread of a rank of this host that sleeps on the rank's doorbell (or, below, its service thread).
  void ring_doorbell(int rank) noexcept {
    ring(rank, block(rank).doorbell, block(rank).doorbell_socket, Doorbell::waiting);
  }
  void ring_service_doorbell(int rank) noexcept {
    ring(rank, block(rank).service_doorbell, block(rank).service_doorbell_socket, Doorbell::service);
  }
  /// Wakes every rank's waiting and service threads.
  void ring_all_doorbells() noexcept;

  /// Selects one of a rank's two doorbells.
  enum class Doorbell : std::uint8_t { waiting, service };
  /// Opens a socket that becomes readable when the doorbell rings while the rank has declared that it sleeps there: for
  /// threads that wait for other descriptors too. One socket per doorbell. Throws SetupError.
  [[nodiscard]] FileDescriptor open_doorbell(int rank, Doorbell doorbell) const;

 private:
  void count_left() noexcept;
  void ring(int rank, std::atomic<std::uint32_t>& doorbell, const std::atomic<std::uint32_t>& socket,
            Doorbell which) noexcept {
    // Sequentially consistent with the thread that falls asleep: either it sees the new value of the doorbell, or this
    // thread sees that it sleeps on a socket. The increment is also a release of the data for which the doorbell rings.
    doorbell.fetch_add(1, std::memory_order_seq_cst);
    if (socket.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      ring_socket(rank, which);
    else
      futex_wake(doorbell, 0x7fffffff);
  }
  [[gnu::cold]] void ring_socket(int rank, Doorbell doorbell) const noexcept;

  FileDescriptor memory_;
  FileDescriptor ringer_;  // the socket from which doorbell packets are sent
  Mapping mapping_;
  std::unique_ptr<Pool> pool_;
  std::vector<std::unique_ptr<RankBlock>> remote_;  // by rank; empty in a job of one host
};

}  // namespace tonari::job
