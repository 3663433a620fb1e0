#include "fabric/ucx/library.hpp"
#include "fabric/ucx/wire.hpp"
#include "fabric/ucx/worker.hpp"

#include <mutex>
#include <utility>

// RDMA: a wire over verbs can also read and write the memory of peers that have sent their keys.
namespace tonari::fabric::ucx {

namespace {

void land(Landing& landing, Status status) noexcept {
  landing.status = status;
  landing.done.store(true, std::memory_order_release);
}

}  // namespace

// UCX calls this within its own functions, so the calling thread holds the lock.
struct Wire::LandingCallback {
  static void landed(void* request, ucs_status_t status, void* landing_pointer) noexcept {
    Landing& landing = *static_cast<Landing*>(landing_pointer);
    library().request_free(request);
    land(landing, status == UCS_OK ? Status::ok : Status::peer_gone);
  }
};

ucp_mem* Wire::pin(std::span<std::byte> memory) noexcept {
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = memory.data();
  params.length = memory.size();
  ucp_mem* pinned = nullptr;
  return ucx_.mem_map(worker_->context(), &params, &pinned) == UCS_OK ? pinned : nullptr;
}

Exposed Wire::expose(std::span<std::byte> memory) noexcept {
  lock_to_send();
  const std::lock_guard guard(mutex_, std::adopt_lock);
  Exposed exposed;
  exposed.memory = pin(memory);
  void* packed = nullptr;
  std::size_t bytes = 0;
  if (exposed.memory == nullptr) return exposed;
  if (ucx_.rkey_pack(worker_->context(), exposed.memory, &packed, &bytes) == UCS_OK) {
    const auto* const first = static_cast<const std::byte*>(packed);
    exposed.key.assign(first, first + bytes);
    ucx_.rkey_buffer_release(packed);
  } else {
    ucx_.mem_unmap(worker_->context(), std::exchange(exposed.memory, nullptr));
  }
  return exposed;
}

void Wire::withdraw(const Exposed& exposed) noexcept {
  lock_to_send();
  const std::lock_guard guard(mutex_, std::adopt_lock);
  ucx_.mem_unmap(worker_->context(), exposed.memory);
}

RemoteKey* Wire::open_key(int peer, std::span<const std::byte> key) noexcept {
  lock_to_send();
  const std::lock_guard guard(mutex_, std::adopt_lock);
  Peer& owner = of(peer);
  RemoteKey* opened = nullptr;
  if (owner.endpoint == nullptr && !open(owner)) return nullptr;
  return ucx_.ep_rkey_unpack(owner.endpoint, key.data(), &opened) == UCS_OK ? opened : nullptr;
}

void Wire::close_key(RemoteKey* key) noexcept {
  lock_to_send();
  const std::lock_guard guard(mutex_, std::adopt_lock);
  ucx_.rkey_destroy(key);
}

// `post` starts the operation and returns as UCX does.
void Wire::start(int peer, Landing& landing, auto post) noexcept {
  landing.done.store(false, std::memory_order_relaxed);
  lock_to_send();
  const std::lock_guard guard(mutex_, std::adopt_lock);
  Peer& to = of(peer);
  if (to.gone.load(std::memory_order_relaxed) || to.endpoint == nullptr) return land(landing, Status::peer_gone);
  ucp_request_param_t how;  // UCX reads only the fields in the mask
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.cb.send = LandingCallback::landed;
  how.user_data = &landing;
  void* const request = post(to.endpoint, how);
  if (UCS_PTR_IS_PTR(request)) return;  // landed() completes it
  const ucs_status_t status = UCS_PTR_STATUS(request);
  if (status == UCS_OK) return land(landing, Status::ok);
  if (status == UCS_ERR_NO_MEMORY) return land(landing, Status::no_memory);
  fail(to, status);
  land(landing, Status::peer_gone);
}

void Wire::put(int peer, RemoteKey* key, std::uint64_t there, std::span<const std::byte> from, Landing& landing,
               ucp_mem* exposed) noexcept {
  start(peer, landing, [&](ucp_ep* endpoint, ucp_request_param_t& how) {
    how.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
    how.memh = exposed != nullptr ? exposed : staging_;
    return ucx_.put_nbx(endpoint, from.data(), from.size(), there, key, &how);
  });
}

void Wire::get(int peer, RemoteKey* key, std::uint64_t there, std::span<std::byte> to, Landing& landing) noexcept {
  start(peer, landing, [&](ucp_ep* endpoint, ucp_request_param_t& how) {
    how.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
    how.memh = staging_;
    return ucx_.get_nbx(endpoint, to.data(), to.size(), there, key, &how);
  });
}

void Wire::flush(int peer, Landing& landing) noexcept {
  start(peer, landing,
        [&](ucp_ep* endpoint, const ucp_request_param_t& how) { return ucx_.ep_flush_nbx(endpoint, &how); });
}

}  // namespace tonari::fabric::ucx
