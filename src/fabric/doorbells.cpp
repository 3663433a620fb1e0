#include "fabric/doorbells.hpp"

#include "base/futex.hpp"
#include "fabric/network.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <atomic>

namespace tonari::fabric {

using Doorbell = job::Arena::Doorbell;

Doorbells::Doorbells(job::Session& session, Network* network) : block_(session.block()), network_(network) {
  if (network == nullptr) return;
  waiting_ = session.arena().open_doorbell(session.rank(), Doorbell::waiting);
  service_ = session.arena().open_doorbell(session.rank(), Doorbell::service);
}

void Doorbells::sleep(Doorbell which, std::uint32_t seen, std::chrono::nanoseconds longest) noexcept {
  const bool is_service = which == Doorbell::service;
  const std::atomic<std::uint32_t>& doorbell = is_service ? block_.service_doorbell : block_.doorbell;
  if (network_ == nullptr) return futex_wait(doorbell, seen, longest);
  if (!network_->arm()) return;
  std::atomic<std::uint32_t>& on_socket = is_service ? block_.service_doorbell_socket : block_.doorbell_socket;
  const int socket = (is_service ? service_ : waiting_).number();
  on_socket.store(1, std::memory_order_seq_cst);  // before the doorbell is read again: pairs with Arena::ring()
  if (doorbell.load(std::memory_order_seq_cst) == seen) {
    pollfd ready[2] = {{network_->descriptor(), POLLIN, 0}, {socket, POLLIN, 0}};
    const auto seconds = std::chrono::floor<std::chrono::seconds>(longest);
    const timespec limit{.tv_sec = static_cast<time_t>(seconds.count()),
                         .tv_nsec = static_cast<long>((longest - seconds).count())};
    ::ppoll(ready, 2, &limit, nullptr);
  }
  on_socket.store(0, std::memory_order_relaxed);  // a needless ring does no harm
  char drained[64];
  while (::recv(socket, drained, sizeof drained, MSG_DONTWAIT) > 0) {
  }
}

}  // namespace tonari::fabric
