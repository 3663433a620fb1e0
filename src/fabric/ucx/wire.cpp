#include "fabric/ucx/wire.hpp"

#include "base/clock.hpp"
#include "fabric/ucx/authenticator.hpp"
#include "fabric/ucx/library.hpp"
#include "fabric/ucx/worker.hpp"

#include <sched.h>
#include <unistd.h>

#include <cassert>
#include <cstring>
#include <utility>

namespace tonari::fabric::ucx {

namespace {

// Numbers of active messages.
constexpr unsigned head_id = 0;
constexpr unsigned tail_id = 1;  // a head and its tail
constexpr std::uint64_t goodbye_ns_max = 1'000'000'000;
constexpr unsigned busy_looks_between = 256;

}  // namespace

// UCX calls these within its own functions, so the calling thread holds the lock.
struct Wire::Callbacks {
  static ucs_status_t head_arrived(void* wire, const void* header, std::size_t header_bytes, void* /*data*/,
                                   std::size_t data_bytes, const ucp_am_recv_param_t* /*about*/) noexcept {
    static_cast<Wire*>(wire)->take({static_cast<const std::byte*>(header), header_bytes}, nullptr, data_bytes);
    return UCS_OK;  // UCX frees the data
  }
  static ucs_status_t tail_arrived(void* wire, const void* header, std::size_t header_bytes, void* data,
                                   std::size_t data_bytes, const ucp_am_recv_param_t* about) noexcept {
    const bool is_here = (about->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;  // until give_back()
    const bool kept = static_cast<Wire*>(wire)->take({static_cast<const std::byte*>(header), header_bytes},
                                                     is_here ? data : nullptr, data_bytes);
    return kept ? UCS_INPROGRESS : UCS_OK;
  }
  static void sent(void* request, ucs_status_t status, void* flight) noexcept {
    Flight& landed = *static_cast<Flight*>(flight);
    Wire& wire = *landed.to->wire;
    if (status != UCS_OK) wire.fail(*landed.to, status);
    wire.end_tail(landed);
    wire.give_back(landed);
    wire.ucx_.request_free(request);
  }
  static void failed(void* peer, ucp_ep_h /*endpoint*/, ucs_status_t status) noexcept {
    Peer& lost = *static_cast<Peer*>(peer);
    lost.wire->fail(lost, status);
  }
  static void closed(void* request, ucs_status_t /*status*/, void* wire_pointer) noexcept {
    Wire& wire = *static_cast<Wire*>(wire_pointer);
    --wire.closing_;
    wire.ucx_.request_free(request);
  }
};

Wire::Wire(const Settings& settings)
    : ucx_(library()),
      peers_(static_cast<std::size_t>(settings.ranks)),
      most_{settings.requests, settings.replies},
      tail_sent_(settings.tail_sent),
      owner_(settings.owner),
      worker_(std::make_unique<Worker>(settings.network, settings.devices, settings.ranks)),
      address_(worker_->address()),
      event_descriptor_(worker_->event_descriptor()),
      process_(::getpid()),
      flights_(peers_.size() * (settings.requests + settings.replies)) {
  const Authenticator proofs(settings.secret);
  for (int rank = 0; rank < settings.ranks; ++rank) {
    Peer& peer = of(rank);
    peer.wire = this;
    peer.proof_to = proofs.of(settings.self, rank);
    peer.proof_from = proofs.of(rank, settings.self);
  }
  for (Flight& flight : flights_) flight.next = std::exchange(free_, &flight);
  accept(head_id, UCP_AM_FLAG_WHOLE_MSG, Callbacks::head_arrived);
  accept(tail_id, UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA, Callbacks::tail_arrived);
  if (worker_->reaches_memory() && !settings.staging.empty()) staging_ = pin(settings.staging);
}

void Wire::accept(unsigned number, unsigned flags, auto arrived) {
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = number;
  handler.flags = flags;
  handler.cb = arrived;
  handler.arg = this;
  require(ucx_.worker_set_am_recv_handler(worker_->handle(), &handler), "asking UCX for active messages",
          "use another version of UCX");
}

Wire::~Wire() {
  if (::getpid() != process_) {  // a forked child: its parent owns the connections
    static_cast<void>(worker_.release());
    return;
  }
  const std::lock_guard guard(mutex_);
  say_goodbye();
  for (Peer& peer : peers_) close(peer);
  progress_until([this] { return closing_ == 0; });
  if (staging_ != nullptr) ucx_.mem_unmap(worker_->context(), staging_);
}

void Wire::introduce(int peer, std::vector<std::byte> address) {
  const std::lock_guard guard(mutex_);
  of(peer).address = std::move(address);
  untidy_ = true;  // it may have sent heads before
}

Status Wire::send(int peer, const Head& head, Lane lane, const Outgoing& tail) noexcept {
  Peer& to = of(peer);
  if (to.gone.load(std::memory_order_relaxed)) [[unlikely]]
    return Status::peer_gone;  // it hands up nothing here
  lock_to_send();
  const std::lock_guard guard(mutex_, std::adopt_lock);
  if (to.endpoint == nullptr && !open(to)) [[unlikely]]
    return Status::peer_gone;

  Flight* const flight = take_flight(to, lane);
  if (flight == nullptr) [[unlikely]]
    return Status::again;
  std::memcpy(flight->frame.head, &head, sizeof head);
  flight->frame.proof = to.proof_to;
  flight->tail = tail;
  return start(*flight);
}

Status Wire::start(Flight& flight) noexcept {
  ucp_request_param_t how;  // UCX reads only the fields in the mask
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  how.cb.send = Callbacks::sent;
  how.user_data = &flight;
  how.flags = UCP_AM_SEND_FLAG_EAGER;
  const auto tail = flight.tail.bytes;
  void* const request = ucx_.am_send_nbx(flight.to->endpoint, tail.empty() ? head_id : tail_id, &flight.frame,
                                         sizeof flight.frame, tail.data(), tail.size(), &how);
  if (UCS_PTR_IS_PTR(request)) return Status::ok;  // sent() gives the frame back

  const ucs_status_t status = UCS_PTR_STATUS(request);
  if (status == UCS_OK) [[likely]]
    end_tail(flight);
  give_back(flight);
  if (status == UCS_OK) [[likely]]
    return Status::ok;
  if (status == UCS_ERR_NO_MEMORY || status == UCS_ERR_NO_RESOURCE) return Status::again;
  fail(*flight.to, status);
  return Status::peer_gone;
}

std::size_t Wire::poll(const Sink& sink) noexcept {
  if (senders_.load(std::memory_order_relaxed) != 0 || !mutex_.try_lock()) return 0;
  const std::lock_guard guard(mutex_, std::adopt_lock);
  sink_ = &sink;
  heads_ = 0;
  // While this rank has made no connection itself, UCX wakes it for arriving data only after a worker_progress() that
  // found nothing. worker_arm() does not check that, so arm() does. A first connection takes several calls; a thread
  // that stopped after one of them could leave another thread asleep. So they are all made in one poll.
  constexpr int looks_max = 64;
  int looks = 0;
  do {
    looked_in_vain_ = ucx_.worker_progress(worker_->handle()) == 0;
  } while (!looked_in_vain_ && !connects_ && heads_ == 0 && ++looks < looks_max);
  if (looked_in_vain_) ++empty_looks_;
  // Also while other peers send all the time: one of the rest may be silent.
  if (looked_in_vain_ || ++busy_looks_ % busy_looks_between == 0) worker_->check_keepalive();
  sink_ = nullptr;
  if (untidy_) [[unlikely]]
    tidy();
  return heads_;
}

void Wire::end_tail(const Flight& flight) noexcept {
  if (!flight.tail.bytes.empty()) tail_sent_(owner_, flight.tail.place);
}

// Handles one active message, whose sender is not trusted yet. Returns true if its data are kept.
bool Wire::take(std::span<const std::byte> header, void* data, std::size_t data_bytes) noexcept {
  if (sink_ == nullptr) return false;  // in the destructor: there is no handler
  if (header.size() != sizeof(Frame)) return refuse();
  Head head;
  std::uint64_t proof;
  std::memcpy(&head, header.data(), sizeof head);
  std::memcpy(&proof, header.data() + offsetof(Frame, proof), sizeof proof);
  if (head.source >= peers_.size() || proof != peers_[head.source].proof_from) return refuse();
  if (!take_tail(head, data, data_bytes)) return refuse();

  if (!peers_[head.source].heard.load(std::memory_order_relaxed)) [[unlikely]] {
    peers_[head.source].heard.store(true, std::memory_order_relaxed);
    untidy_ = true;
  }
  ++heads_;
  sink_->hand_up(sink_->target, head);
  return data_bytes != 0;
}

// Returns false if the message's tail is not as its head says.
bool Wire::take_tail(Head& head, void* data, std::size_t data_bytes) noexcept {
  if (!head.kind.has_tail()) return data_bytes == 0;
  if (data == nullptr || data_bytes == 0 || head.as<Tail>().bytes != data_bytes) return false;
  head.set(Tail{data_bytes, reinterpret_cast<std::uint64_t>(data)});
  return true;
}

void Wire::give_back(std::uint64_t place) noexcept {
  lock_to_send();
  const std::lock_guard guard(mutex_, std::adopt_lock);
  ucx_.am_data_release(worker_->handle(), reinterpret_cast<void*>(place));
}

bool Wire::arm() noexcept {
  lock_to_send();
  const std::lock_guard guard(mutex_, std::adopt_lock);
  worker_->check_keepalive();
  return !untidy_ && looked_in_vain_ && ucx_.worker_arm(worker_->handle()) == UCS_OK;
}

void Wire::forget(int peer) noexcept {
  lock_to_send();
  const std::lock_guard guard(mutex_, std::adopt_lock);
  fail(of(peer), UCS_ERR_CANCELED);
}

std::string_view Wire::reason(int peer) const noexcept {
  if (!gone(peer) || of(peer).reason == UCS_ERR_CANCELED) return "";
  return ucx_.status_string(static_cast<ucs_status_t>(of(peer).reason));
}

bool Wire::was_reached(int peer) const noexcept {
  if (of(peer).heard.load(std::memory_order_relaxed)) return true;
  return gone(peer) && of(peer).reason == UCS_ERR_CONNECTION_RESET;
}

// The poller has the lock most of the time. It would take it again before a sleeping sender woke up, so senders spin
// first, and the poller stays away while there are any.
void Wire::lock_to_send() noexcept {
  constexpr int looks_max = 1000;  // about as long as UCX's poll of TCP
  if (mutex_.try_lock()) [[likely]]
    return;
  senders_.fetch_add(1, std::memory_order_relaxed);
  int looks = 0;
  while (looks < looks_max && !mutex_.try_lock()) {
    cpu_relax();
    ++looks;
  }
  if (looks == looks_max) mutex_.lock();
  senders_.fetch_sub(1, std::memory_order_relaxed);
}

Wire::Flight* Wire::take_flight(Peer& to, Lane lane) noexcept {
  const auto index = static_cast<std::size_t>(lane);
  if (to.under_way[index] == most_[index]) return nullptr;
  ++to.under_way[index];
  Flight* const flight = std::exchange(free_, free_->next);  // there are enough for all peers
  flight->to = &to;
  flight->lane = lane;
  return flight;
}

void Wire::give_back(Flight& flight) noexcept {
  --flight.to->under_way[static_cast<std::size_t>(flight.lane)];
  flight.next = std::exchange(free_, &flight);
}

bool Wire::open(Peer& peer) noexcept {
  if (peer.gone.load(std::memory_order_relaxed)) return false;
  assert(!peer.address.empty());
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(peer.address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {.cb = Callbacks::failed, .arg = &peer};
  const ucs_status_t status = ucx_.ep_create(worker_->handle(), &params, &peer.endpoint);
  if (status == UCS_OK) {
    connects_ = true;
    return true;
  }
  peer.endpoint = nullptr;
  fail(peer, status);
  return false;
}

void Wire::close(Peer& peer) noexcept {
  if (peer.endpoint == nullptr) return;
  ucp_request_param_t how;
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.flags = UCP_EP_CLOSE_FLAG_FORCE;
  how.cb.send = Callbacks::closed;
  how.user_data = this;
  void* const request = ucx_.ep_close_nbx(std::exchange(peer.endpoint, nullptr), &how);
  if (UCS_PTR_IS_PTR(request)) ++closing_;
}

void Wire::fail(Peer& peer, int reason) noexcept {
  if (peer.gone.load(std::memory_order_relaxed)) return;
  peer.reason = reason;
  peer.gone.store(true, std::memory_order_release);     // after the reason: pairs with gone()
  gone_count_.fetch_add(1, std::memory_order_release);  // after the peer's flag: a reader of the count finds it
  untidy_ = true;
}

// Closes connections that have failed, which a callback must not do. Connects to peers that have sent a head, since UCX
// reports a peer's death only to ranks that have connected to it themselves.
void Wire::tidy() noexcept {
  untidy_ = false;
  for (Peer& peer : peers_) {
    if (peer.gone.load(std::memory_order_relaxed)) {
      close(peer);
    } else if (peer.heard.load(std::memory_order_relaxed) && peer.endpoint == nullptr && !peer.address.empty()) {
      open(peer);
    }
  }
}

void Wire::say_goodbye() noexcept {
  const ucp_request_param_t nothing{};
  void* const flush = ucx_.worker_flush_nbx(worker_->handle(), &nothing);
  if (!UCS_PTR_IS_PTR(flush)) return;
  progress_until([&] { return ucx_.request_check_status(flush) != UCS_INPROGRESS; });
  ucx_.request_free(flush);
}

void Wire::progress_until(auto done) noexcept {
  const std::uint64_t until_ns = monotonic_ns() + goodbye_ns_max;
  while (!done() && monotonic_ns() < until_ns) {
    if (ucx_.worker_progress(worker_->handle()) == 0) ::sched_yield();
  }
}

}  // namespace tonari::fabric::ucx
