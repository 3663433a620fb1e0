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

struct ucp_ep;  // UCX's, so that only this folder needs its headers

namespace tonari::fabric::ucx {

class Worker;
struct Library;

// What is sent: the header of an active message. Offsets in bytes.
//
//   0                                                     64                  72
//   +-----------------------------------------------------+-------------------+
//   | head                                                | proof             |
//   +-----------------------------------------------------+-------------------+
//
// proof: what only a member of the job can know (proof.hpp), for this sender and this receiver. It is in every head,
// since UCX does not say over which connection a message came unless each carries as many bytes to tell.
//
// A tail is the data of the same message, under an active message number of its own. The receiver writes over `place`
// where it keeps the bytes before it hands the head up, so tails pass through Ordered unseen. Who takes the head reads
// them there and gives them back.
struct Frame {
  std::byte head[head_bytes];
  std::uint64_t proof;
};
static_assert(sizeof(Frame) == 72 && offsetof(Frame, proof) == 64 && std::has_unique_object_representations_v<Frame>);

/// A wire (ordered.hpp) over the network, by UCX's active messages: TCP, or verbs where they are.
///
/// What the job's secret guards: a head is acted upon only when its sender knows the secret, so neither another job
/// nor a stranger who speaks UCX is taken for a rank. What it does not: heads are neither encrypted nor signed, so who
/// can read the network can copy a proof; and UCX believes whoever connects to it. Its TCP transport writes where a
/// packet says, below everything that is asked of it here, so who can reach the port can write this process's memory.
/// The network of a job must be trusted, as for MPI.
///
/// Owns:    a UCX worker, connections made on first use, in_flight frames for each peer.
/// Threads: any may send. One at a time polls. introduce() before the first send to that peer.
/// Costs:   a send copies a head and takes a lock; it never waits for the network. A poll is one look at it.
class Wire {
 public:
  struct Settings {
    std::string network = "any";        ///< tcp, rc, ud or any that UCX finds, but never shared memory.
    std::string devices;                ///< As UCX_NET_DEVICES; empty for all.
    std::span<const std::byte> secret;  ///< The job's, 16 bytes at least.
    int ranks = 0;
    int self = 0;
    std::size_t requests = 0;  ///< To each peer under way at a time: accepted, and not yet taken by the system.
    std::size_t replies = 0;   ///< The same; with Ordered, credits need five of them.
    void (*tail_sent)(void* owner, std::uint64_t place) noexcept = nullptr;  ///< It may be reused. Must not call us.
    void* owner = nullptr;
    std::span<std::byte> staging{};  ///< What put() reads from and get() writes to.
  };
  /// The tail of a head, whose payload says how many bytes: fabric::Tail.
  struct Outgoing {
    std::span<const std::byte> bytes;  ///< Stay as they are from when send() answers ok until `tail_sent`.
    std::uint64_t place = 0;           ///< For `tail_sent`.
  };

  /// Throws SetupError.
  explicit Wire(const Settings& settings);
  Wire(Wire&&) = delete;  // UCX calls back
  /// Sends what was accepted, for as long as a second, then closes. Peers see that as a death: first agree to leave.
  ~Wire();

  /// For peers to be introduced with.
  [[nodiscard]] std::span<const std::byte> address() const noexcept { return address_; }
  /// `address`: from that rank, by a way that can be trusted. UCX crashes on bytes that are no address.
  void introduce(int peer, std::vector<std::byte> address);

  Status send(int peer, const Head& head, Lane lane) noexcept { return send(peer, head, lane, {}); }
  Status send(int peer, const Head& head, Lane lane, const Outgoing& tail) noexcept;
  /// Hands up whatever one look at the network brings, which may be more than `heads_max`: Ordered has room for it.
  /// `handle` must not send. Answers 0 when another thread has the lock.
  template <class Handle>
  std::size_t poll(std::size_t /*heads_max*/, Handle&& handle) noexcept {
    using Target = std::remove_reference_t<Handle>;
    const Sink sink{const_cast<void*>(static_cast<const void*>(&handle)),
                    [](void* target, const Head& head) noexcept { (*static_cast<Target*>(target))(head); }};
    return poll(sink);
  }
  /// How often poll() had the lock, and the network nothing. By the poller.
  [[nodiscard]] std::uint64_t empty_looks() const noexcept { return empty_looks_; }

  /// The bytes of a tail that was handed up with a head, by the place in it. Any thread.
  [[nodiscard]] static std::span<const std::byte> look(std::uint64_t place, std::uint64_t bytes) noexcept {
    return {reinterpret_cast<const std::byte*>(place), bytes};
  }
  /// They are not needed any more. Any thread, once.
  void give_back(std::uint64_t place) noexcept;

  /// Readable when poll() has something to do, once arm() has answered true.
  [[nodiscard]] int event_descriptor() const noexcept { return event_descriptor_; }
  /// Before sleeping. False: something came, poll first. Each sleep needs an arm() of its own.
  bool arm() noexcept;

  /// The peer is known to be dead, from elsewhere.
  void forget(int peer) noexcept;
  /// It failed or was forgotten; for ever.
  [[nodiscard]] bool gone(int peer) const noexcept {
    return of(peer).gone.load(std::memory_order_acquire);  // with the reason
  }
  /// How many have gone: changes when there is one more to look for.
  [[nodiscard]] std::uint32_t gone_count() const noexcept { return gone_count_.load(std::memory_order_acquire); }
  /// What UCX said of a peer that has gone; empty for one that was forgotten.
  [[nodiscard]] std::string_view reason(int peer) const noexcept;
  /// It was there at least: it has sent a head, or its system has ended the connection.
  [[nodiscard]] bool was_reached(int peer) const noexcept;
  /// Active messages that were no head of a member of this job.
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

  // Copies by key (by_key.cpp). Threads: any.

  /// Else there are none, and the rest is not called.
  [[nodiscard]] bool has_keys() const noexcept { return staging_ != nullptr; }
  /// May take long: the pages are brought in and pinned.
  [[nodiscard]] Exposed expose(std::span<std::byte> memory) noexcept;
  /// Once no peer uses its key: a copy that is under way then would end the connection.
  void withdraw(const Exposed& exposed) noexcept;
  /// Null: it cannot be used. Ours, until close_key().
  [[nodiscard]] RemoteKey* open_key(int peer, std::span<const std::byte> key) noexcept;
  void close_key(RemoteKey* key) noexcept;
  /// Start a copy between memory of `staging`, or what else is `exposed`, and an address in what the key opens. What
  /// was put is there once a flush() that was started after it is done.
  void put(int peer, RemoteKey* key, std::uint64_t there, std::span<const std::byte> from, Landing& landing,
           ucp_mem* exposed = nullptr) noexcept;
  void get(int peer, RemoteKey* key, std::uint64_t there, std::span<std::byte> to, Landing& landing) noexcept;
  void flush(int peer, Landing& landing) noexcept;

 private:
  struct Peer {
    Wire* wire = nullptr;
    ucp_ep* endpoint = nullptr;  // under the lock, as all but the atomics
    std::uint64_t proof_to = 0;
    std::uint64_t proof_from = 0;
    std::size_t under_way[2] = {0, 0};  // frames, by lane
    std::atomic<bool> gone{false};
    std::atomic<bool> heard{false};  // it has sent a head; relaxed: was_reached() is for people
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
  struct Callbacks;  // what UCX calls
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

  std::mutex mutex_;                       // of UCX's worker and the next eight
  std::vector<Flight> flights_;            // all there are
  Flight* free_ = nullptr;                 // those that carry nothing
  const Sink* sink_ = nullptr;             // while polling
  std::size_t heads_ = 0;                  // handed up by this poll
  std::uint32_t closing_ = 0;              // endpoints
  bool untidy_ = false;                    // an endpoint is to be made or closed
  bool connects_ = false;                  // some peer has an endpoint, or had
  bool looked_in_vain_ = false;            // the last look at UCX found nothing to do
  std::uint64_t empty_looks_ = 0;          // by the poller
  unsigned busy_looks_ = 0;                // also
  std::atomic<std::uint32_t> senders_{0};  // waiting for the lock: relaxed, a hint for the poller to stay away
  std::atomic<std::uint32_t> gone_count_{0};
  std::atomic<std::uint64_t> refused_{0};  // relaxed: a figure for people
};

}  // namespace tonari::fabric::ucx
