#pragma once

#include "fabric/by_key.hpp"
#include "fabric/transport.hpp"

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

struct ucp_ep;  // a type of UCX, declared here so that only this folder includes its headers

namespace tonari::fabric::ucx {

class Worker;
struct Library;

// The header of each active message. Offsets in bytes.
//
//   0                                                     64                  72
//   +-----------------------------------------------------+-------------------+
//   | head                                                | proof             |
//   +-----------------------------------------------------+-------------------+
//
// proof: a value that only members of the job can compute, for this sender and this receiver (authenticator.hpp). Every
// head has it, since UCX names the connection of a message only if the message carries as many bytes for that.
//
// A tail is the data of the same message, which then has another active message number. Before the receiver hands the
// head up, it replaces the tail's place by the address at which it keeps the bytes. So Ordered need not know of tails.
// The layer that handles the head reads the bytes there and gives them back.
struct Frame {
  std::byte head[head_bytes];
  std::uint64_t proof;
};
static_assert(sizeof(Frame) == 72 && offsetof(Frame, proof) == 64 && std::has_unique_object_representations_v<Frame>);

/// A wire (ordered.hpp) over the network, by UCX's active messages: over TCP, or over verbs if there are any.
///
/// The job's secret protects against mistakes: a head is accepted only if its sender knows the secret, so neither
/// another job nor a stranger that speaks UCX is taken for a rank. It does not protect against attacks. Heads are
/// neither encrypted nor signed, so an eavesdropper on the network can copy a proof. UCX trusts every process that
/// connects to it, and its TCP transport writes to the address that a packet names. So any process that can reach the
/// port can write to this process's memory. The network of a job must be trusted, as for MPI.
///
/// Owns:    a UCX worker, connections made on first use, a bounded number of frames per peer.
/// Threads: any may send. One at a time polls. Call introduce() before the first send to that peer.
/// Costs:   a send copies a head and takes a lock; it never waits for the network. A poll asks UCX once.
class Wire {
 public:
  struct Settings {
    std::string network = "any";        ///< tcp, rc, ud or any that UCX finds, but never shared memory.
    std::string devices;                ///< As UCX_NET_DEVICES; empty for all.
    std::span<const std::byte> secret;  ///< The job's, 16 bytes at least.
    int ranks = 0;
    int self = 0;
    std::size_t requests = 0;  ///< Per peer under way at a time: accepted, and not yet taken by the system.
    std::size_t replies = 0;   ///< The same; Ordered needs five of them for credits.
    /// Called when a tail's bytes may be reused. Must not call the wire.
    void (*tail_sent)(void* owner, std::uint64_t place) noexcept = nullptr;
    void* owner = nullptr;
    std::span<std::byte> staging{};  ///< The memory that put() reads and get() writes.
  };
  /// The tail of a head, whose payload says how many bytes: fabric::Tail.
  struct Outgoing {
    std::span<const std::byte> bytes;  ///< Must not change between a send() that returns ok and `tail_sent`.
    std::uint64_t place = 0;           ///< Passed to `tail_sent`.
  };

  /// Throws SetupError.
  explicit Wire(const Settings& settings);
  Wire(Wire&&) = delete;  // UCX's callbacks have its address
  /// Sends the accepted heads, for at most a second, then closes the connections. Peers take that for a death, so agree
  /// to leave first.
  ~Wire();

  /// The address to pass to the introduce() of peers.
  [[nodiscard]] std::span<const std::byte> address() const noexcept { return address_; }
  /// `address`: must come from that rank by a trusted way. UCX crashes on bytes that are not an address.
  void introduce(int peer, std::vector<std::byte> address);

  Status send(int peer, const Head& head, Lane lane) noexcept { return send(peer, head, lane, {}); }
  Status send(int peer, const Head& head, Lane lane, const Outgoing& tail) noexcept;
  /// Hands up all heads that UCX has, which may be more than `heads_max`: Ordered has room for them. `handle` must not
  /// send. Returns the number of heads; 0 if another thread has the lock.
  template <class Handle>
  std::size_t poll(std::size_t /*heads_max*/, Handle&& handle) noexcept {
    using Target = std::remove_reference_t<Handle>;
    const Sink sink{const_cast<void*>(static_cast<const void*>(&handle)),
                    [](void* target, const Head& head) noexcept { (*static_cast<Target*>(target))(head); }};
    return poll(sink);
  }
  /// Number of polls that had the lock and found nothing. Called by the poller.
  [[nodiscard]] std::uint64_t empty_looks() const noexcept { return empty_looks_; }

  /// Returns the bytes of a tail, by the place in the head that was handed up. Any thread.
  [[nodiscard]] static std::span<const std::byte> look(std::uint64_t place, std::uint64_t bytes) noexcept {
    return {reinterpret_cast<const std::byte*>(place), bytes};
  }
  /// Gives the bytes back to UCX. Any thread; once per tail.
  void give_back(std::uint64_t place) noexcept;

  /// Readable when poll() has something to do, once arm() has returned true.
  [[nodiscard]] int event_descriptor() const noexcept { return event_descriptor_; }
  /// Call before each sleep. Returns false if something has arrived: poll first.
  bool arm() noexcept;

  /// Closes the connection to a peer that has died, as other ranks report.
  void forget(int peer) noexcept;
  /// Whether the connection has failed or was closed by forget(). Once true, always true.
  [[nodiscard]] bool gone(int peer) const noexcept {
    return of(peer).gone.load(std::memory_order_acquire);  // acquire: with the reason
  }
  /// Number of peers for which gone() is true.
  [[nodiscard]] std::uint32_t gone_count() const noexcept { return gone_count_.load(std::memory_order_acquire); }
  /// UCX's reason why the connection failed; empty after forget().
  [[nodiscard]] std::string_view reason(int peer) const noexcept;
  /// Whether the peer was ever reached: it has sent a head, or its system has ended the connection.
  [[nodiscard]] bool was_reached(int peer) const noexcept;
  /// Number of active messages that were dropped, since they were not heads of a member of this job.
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

  // RDMA copies (by_key.cpp). Threads: any.

  /// Whether the network has RDMA. If not, none of the following may be called.
  [[nodiscard]] bool has_keys() const noexcept { return staging_ != nullptr; }
  /// Pins `memory` and makes its key. May take long, since all pages are brought in.
  [[nodiscard]] Exposed expose(std::span<std::byte> memory) noexcept;
  /// Call it only when no peer uses the key: a copy under way would break the connection.
  void withdraw(const Exposed& exposed) noexcept;
  /// Returns null if the key cannot be used. The wire owns the result until close_key().
  [[nodiscard]] RemoteKey* open_key(int peer, std::span<const std::byte> key) noexcept;
  void close_key(RemoteKey* key) noexcept;
  /// Start a copy between local memory, in `staging` or `exposed`, and an address in the memory that the key opens. The
  /// bytes of a put() have arrived once a flush() that was started after it is done.
  void put(int peer, RemoteKey* key, std::uint64_t there, std::span<const std::byte> from, Landing& landing,
           ucp_mem* exposed = nullptr) noexcept;
  void get(int peer, RemoteKey* key, std::uint64_t there, std::span<std::byte> to, Landing& landing) noexcept;
  void flush(int peer, Landing& landing) noexcept;

  /// Returns the memory that each peer takes, without UCX's own for a connection, and without the peer's address.
  static constexpr std::size_t bytes_per_peer(std::size_t requests, std::size_t replies) noexcept {
    return sizeof(Peer) + (requests + replies) * sizeof(Flight);
  }

 private:
  struct Peer {
    Wire* wire = nullptr;
    ucp_ep* endpoint = nullptr;  // under the lock, as all except the atomics
    std::uint64_t proof_to = 0;
    std::uint64_t proof_from = 0;
    std::size_t under_way[2] = {0, 0};  // frames, by lane
    std::atomic<bool> gone{false};
    std::atomic<bool> heard{false};  // it has sent a head; relaxed: only for messages to people
    int reason = 0;                  // ucs_status_t; written before `gone`
    std::vector<std::byte> address;
  };
  struct Flight {  // a frame that UCX may still read
    Frame frame;
    Outgoing tail;
    Peer* to;
    Lane lane;
    Flight* next;
  };
  struct Sink {
    void* target;
    void (*hand_up)(void* target, const Head& head) noexcept;
  };
  struct Callbacks;  // the functions that UCX calls
  struct LandingCallback;

  Peer& of(int peer) noexcept { return peers_[static_cast<std::size_t>(peer)]; }
  [[nodiscard]] const Peer& of(int peer) const noexcept { return peers_[static_cast<std::size_t>(peer)]; }
  std::size_t poll(const Sink& sink) noexcept;
  void lock_to_send() noexcept;
  void start(int peer, Landing& landing, auto post) noexcept;

  // Under the lock:
  Status start(Flight& flight) noexcept;
  ucp_mem* pin(std::span<std::byte> memory) noexcept;
  bool take(std::span<const std::byte> header, void* data, std::size_t data_bytes) noexcept;
  bool take_tail(Head& head, void* data, std::size_t data_bytes) noexcept;
  void accept(unsigned number, unsigned flags, auto arrived);
  void end_tail(const Flight& flight) noexcept;
  bool refuse() noexcept {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  Flight* take_flight(Peer& to, Lane lane) noexcept;
  void give_back(Flight& flight) noexcept;
  bool open(Peer& peer) noexcept;
  void close(Peer& peer) noexcept;
  void fail(Peer& peer, int reason) noexcept;
  void tidy() noexcept;
  void say_goodbye() noexcept;
  void progress_until(auto done) noexcept;

  const Library& ucx_;
  std::vector<Peer> peers_;  // by rank
  std::size_t most_[2];      // frames under way to a peer, by lane
  void (*tail_sent_)(void* owner, std::uint64_t place) noexcept;
  void* owner_;
  std::unique_ptr<Worker> worker_;
  std::vector<std::byte> address_;
  int event_descriptor_ = -1;
  ucp_mem* staging_ = nullptr;  // null: there are no keys
  pid_t process_;

  std::mutex mutex_;               // guards UCX's worker and the next eight
  std::vector<Flight> flights_;    // all
  Flight* free_ = nullptr;         // a list of the unused ones
  const Sink* sink_ = nullptr;     // while polling
  std::size_t heads_ = 0;          // handed up by this poll
  std::uint32_t closing_ = 0;      // endpoints
  bool untidy_ = false;            // an endpoint has to be made or closed
  bool connects_ = false;          // an endpoint has ever been made
  bool looked_in_vain_ = false;    // the last look at UCX found nothing to do
  std::uint64_t empty_looks_ = 0;  // used by the poller, as the next
  unsigned busy_looks_ = 0;
  std::atomic<std::uint32_t> senders_{0};  // senders that wait for the lock; relaxed: a hint for the poller
  std::atomic<std::uint32_t> gone_count_{0};
  std::atomic<std::uint64_t> refused_{0};  // relaxed: only for messages to people
};

}  // namespace tonari::fabric::ucx
