#pragma once

#include "base/clock.hpp"
#include "fabric/bulk.hpp"
#include "fabric/doorbells.hpp"
#include "fabric/handlers.hpp"
#include "fabric/network.hpp"
#include "fabric/progress_lock.hpp"
#include "fabric/remote_ranks.hpp"
#include "fabric/segment.hpp"
#include "fabric/shm.hpp"
#include "fabric/spin_limits.hpp"
#include "fabric/transfer.hpp"
#include "fabric/waitable.hpp"
#include "fabric/watches.hpp"
#include "job/session.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::fabric {

/// Whether a rank will soon look at heads that are sent to it.
enum class Attention : std::uint8_t {
  elsewhere,  ///< None of its threads waits in the library.
  asleep,     ///< A thread waits and has to be woken.
  looking,    ///< A thread waits and polls on a core of its own. It usually serves a request at once.
};

/// The fabric of one rank: sends heads, polls, and waits.
///
/// The thread that holds the progress lock polls for the whole rank. Other waiting threads sleep beside it, each until
/// its own wait is over or the lock is passed on to it. A holder that finds nothing spins, then yields, then sleeps on
/// the rank's doorbell. The service thread polls while no other thread does.
///
/// Threads: any.
class Engine final : public job::Session::Attachment {
 public:
  explicit Engine(job::Session& session);
  ~Engine() override;
  /// Returns the session's engine and makes it on first use.
  static Engine& of(job::Session& session);

  // Sending

  /// Sends a head; never blocks. Returns
  ///   ok         the head is copied and will arrive;
  ///   again      there is no room, and nothing was sent;
  ///   peer_gone  the peer has died.
  /// A reply finds the room that its request reserved, except while another rank has claimed a slot and has lost its
  /// core before publishing it.
  Status send(int peer, const Head& head, Lane lane) noexcept {
    if (is_remote(peer)) [[unlikely]]
      return network().send(peer, head, lane);
    return shm_.send(peer, head, lane);
  }
  /// Sends a head with a tail to a remote rank; the tail is sent from `bytes`, not from bulk memory. `under_way` is
  /// raised by one; the bytes must not change until the network has lowered it again. Returns as send().
  Status send_from(int peer, const Head& head, std::span<const std::byte> bytes,
                   std::atomic<std::uint32_t>& under_way) noexcept {
    return network().send_from(peer, head, bytes, under_way);
  }
  /// After `again`: has `peer` ring our doorbell when it has made room. Returns true if there is room already.
  bool ask_for_room(int peer, Lane lane) noexcept {
    return !is_remote(peer) && shm_.ask_for_room(peer, lane);  // a remote peer announces room by the network
  }
  /// Returns the tail of a head from `peer`; empty if there is no such block, since the head was malformed. The place
  /// is in the peer's bulk memory or, if the peer is remote, where the network library keeps the bytes.
  [[nodiscard]] std::span<const std::byte> look(int peer, std::uint64_t place, std::uint64_t bytes) const noexcept {
    if (is_remote(peer)) [[unlikely]]
      return Network::look(place, bytes);
    return BulkReader::look(bulk_of(peer), {place}, bytes);
  }
  /// Returns a tail that has been read to its sender, or to the network library.
  void give_back(int peer, std::uint64_t place) noexcept {
    if (is_remote(peer)) [[unlikely]]
      return network().give_back(place);
    BulkReader::give_back(bulk_of(peer), {place});
  }

  // Peers

  /// Whether `peer` is on another host, or treated as if it were: its rings and segment cannot be used.
  [[nodiscard]] bool is_remote(int peer) const noexcept { return remote_ranks_.is_remote(peer); }
  /// Whether this rank can copy directly between its program's memory and that of `peer`.
  [[nodiscard]] bool copies_directly(int peer) const noexcept { return session_.direct_copies() && !is_remote(peer); }
  /// The same for all ranks.
  [[nodiscard]] bool copies_directly() const noexcept { return session_.direct_copies() && !has_network(); }
  /// Copies by RDMA to and from remote ranks; null if the network has no RDMA.
  [[nodiscard]] ucx::Wire* by_key() noexcept {
    return has_network() && network().by_key().has_keys() ? &network().by_key() : nullptr;
  }
  /// Whether `peer` polls at the moment, as far as this rank can see. With more ranks than cores it is never relied on.
  [[nodiscard]] Attention attention(int peer) const noexcept {
    if (is_remote(peer) || shared_cores() || !ProgressLock::is_held(session_.arena().block(peer).progress_lock)) {
      return Attention::elsewhere;
    }
    return shm_.is_asleep(peer) ? Attention::asleep : Attention::looking;
  }
  /// Wakes `peer` if it sleeps. Called after this rank has published something on a board.
  void wake_if_asleep(int peer) noexcept {
    if (!is_remote(peer)) shm_.wake_if_asleep(peer);
  }
  /// Has `peer`'s service thread poll unless another of its threads does.
  void wake_peer(int peer) noexcept;

  // Waiting

  /// Returns once `waitable.step()` has returned done.
  template <Waitable W>
  void wait(W& waitable) noexcept;
  /// Polls `waitable` alone for a while, without the progress lock: for events that come without a head and usually
  /// soon. With more ranks than cores it yields between two looks. Returns true if `waitable.step()` has returned done.
  template <Waitable W>
  [[nodiscard]] bool look_before_waiting(W& waitable) noexcept;
  /// Polls once, unless another thread holds the progress lock.
  void progress() noexcept;
  /// Has `sleeper` woken when `what` is ready; the holder of the progress lock looks at it in each poll. A null
  /// `sleeper` ends that. Returns false if `what` is ready already, or if there is no memory.
  bool watch(const Watched& what, Sleeper* sleeper) noexcept {
    if (sleeper != nullptr) return watches_.add(what, *sleeper);
    watches_.remove(what);
    return true;
  }
  /// Wakes the thread of this rank that holds the progress lock, if it sleeps, to retry what was just held back.
  void wake_self() noexcept {
    if (progress_lock_.is_held(std::memory_order_seq_cst)) ring_own_doorbell();  // order: see HeldBack
  }
  /// Reports to `tonari status` that a thread of this rank has waited long for `peer` (a rank of the job, or -1).
  void tell_long_wait(job::Wait what, int peer, int tag) noexcept {
    block_.wait_peer.store(peer, std::memory_order_relaxed);
    block_.wait_tag.store(tag, std::memory_order_relaxed);
    block_.wait_since_ns.store(monotonic_ns(), std::memory_order_relaxed);
    block_.wait_call.set(session_.name_of_call());
    block_.wait.store(what, std::memory_order_relaxed);
  }
  /// Whether this host has more ranks than cores.
  [[nodiscard]] bool shared_cores() const noexcept { return spin_limits_.shared_cores(); }

  // The layers above

  /// The handler of `protocol`, made by `make()` and registered on first use.
  template <class T, class Make>
  T& handler(Protocol protocol, Make make) {
    return handlers_.get<T>(protocol, make);
  }
  [[nodiscard]] Handlers& handlers() noexcept { return handlers_; }

  // Memory

  [[nodiscard]] job::Session& session() noexcept { return session_; }
  [[nodiscard]] job::Counters& counters() noexcept { return block_.counters; }
  [[nodiscard]] BulkOwner& bulk() noexcept { return bulk_; }
  [[nodiscard]] Tickets& tickets() noexcept { return tickets_; }
  [[nodiscard]] Boards& boards() noexcept { return boards_; }
  [[nodiscard]] BoardMemory& board_of(int peer, std::uint32_t index) const noexcept {
    return Segment(session_.arena().segment(peer)).boards()[index];
  }
  [[nodiscard]] BulkMemory& bulk_of(int peer) const noexcept { return Segment(session_.arena().segment(peer)).bulk(); }
  [[nodiscard]] TransferMemory& transfer_of(int peer, std::uint32_t ticket) const noexcept {
    return Segment(session_.arena().segment(peer)).transfers()[ticket];
  }
  [[nodiscard]] DirectCopy direct_copy(int peer) const noexcept {
    return {session_.arena().block(peer).pid.load(std::memory_order_relaxed), session_.threads()};
  }

  // job::Session::Attachment, called by the service thread; settle() by the leaving thread: engine_service.cpp
  void serve() noexcept override;
  bool died(int rank) noexcept override;
  bool left(int rank) noexcept override;
  void settle() noexcept override;
  bool rest(std::uint32_t seen, std::chrono::nanoseconds longest) noexcept override;

 private:
  struct Neighbours {
    job::Session* session;
    [[nodiscard]] bool alive(int rank) const noexcept { return session->alive(rank); }
    [[gnu::cold, gnu::noinline]] void wake(int rank) const noexcept;
  };
  [[nodiscard]] bool has_network() const noexcept { return remote_ranks_.network() != nullptr; }
  [[nodiscard]] Network& network() const noexcept { return *remote_ranks_.network(); }
  void ring_own_doorbell() noexcept { session_.arena().ring_doorbell(session_.rank()); }

  // Polling, by the holder of the progress lock
  std::size_t poll() noexcept;
  std::size_t poll_all() noexcept {
    remote_ranks_.expect_poll();
    return poll();
  }
  std::size_t poll_network() noexcept;
  void hand_up(std::span<const Head> heads) noexcept;
  void retry_held_back() noexcept {
    watches_.wake_ready_if_any();
    handlers_.retry();
  }
  void count_poll(bool empty) noexcept;
  [[gnu::noinline]] void idle() noexcept;

  // Waiting: engine_wait.hpp
  template <Waitable W>
  void watch_rings(W& waitable, bool retry, std::uint32_t& patience) noexcept;
  template <Waitable W>
  [[gnu::noinline]] void sleep_on_doorbell(W& waitable, bool retry) noexcept;
  template <Waitable W>
  [[gnu::noinline]] void sleep_beside(W& waitable, bool retry) noexcept;
  template <Waitable W>
  static std::chrono::nanoseconds longest_sleep(const W& waitable, bool retry) noexcept;

  // The service thread: engine_service.cpp
  void serve_network() noexcept;
  void drain() noexcept;
  void tell_handlers(int rank, void (ProtocolHandler::*event)(int) noexcept) noexcept;
  void tell_remote_ranks(const Head& head) noexcept;

  static constexpr std::size_t heads_per_poll = 32;

  job::Session& session_;
  job::RankBlock& block_;
  SpinLimits spin_limits_;
  ProgressLock progress_lock_;
  Shm<Neighbours> shm_;  // polled by the holder of the progress lock
  RemoteRanks remote_ranks_;
  BulkOwner bulk_;
  Tickets tickets_;
  Boards boards_;
  Watches watches_;
  Doorbells doorbells_;
  std::chrono::milliseconds nap_{1};  // by the service thread

  std::array<Head, 2 * heads_per_poll> arrived_;  // by the holder of the progress lock: heads that one poll has taken
  std::atomic<std::uint32_t> polls_{0};           // by the holder of the progress lock, as the next: for drain()
  std::atomic<std::uint32_t> empty_polls_{0};     // polls that have looked everywhere and found nothing

  Handlers handlers_;  // last member: it ends first
};

}  // namespace tonari::fabric

#include "fabric/engine_wait.hpp"  // the templates
