#include "fabric/send_queue.hpp"

#include <algorithm>
#include <utility>

namespace tonari::fabric {

void SendQueue::post(int peer, const Head& head, Lane lane) noexcept {
  const Waiting each{peer, lane, head};
  {
    const std::lock_guard guard(mutex_);
    const bool stands_behind =
        std::ranges::any_of(waiting_, [&](const Waiting& other) { return other.peer == peer && other.lane == lane; });
    if (!stands_behind && send(each)) return;
    waiting_.push_back(each);
    held_back_.set(waiting_.size());
  }
  engine_.wake_peer(peer);  // it makes room by polling
  engine_.wake_self();
  engine_.session().arena().ring_service_doorbell(engine_.session().rank());  // if no thread is in the library
}

// Wakes the peers again: a peer that was woken by post() may have polled before the head could be sent.
void SendQueue::retry() noexcept {
  const std::lock_guard guard(mutex_);
  std::vector<std::pair<int, Lane>> full;
  std::vector<int> sent;
  std::erase_if(waiting_, [&](const Waiting& each) {
    const std::pair to(each.peer, each.lane);
    if (std::ranges::find(full, to) != full.end()) return false;
    if (!send(each)) {
      full.push_back(to);
      return false;
    }
    if (std::ranges::find(sent, each.peer) == sent.end()) sent.push_back(each.peer);
    return true;
  });
  held_back_.set(waiting_.size());
  for (const int peer : sent) engine_.wake_peer(peer);
}

// Returns false if there is no room. Frees the tail of a head that is dropped because the peer has died.
bool SendQueue::send(const Waiting& each) noexcept {
  const Status status = engine_.send(each.peer, each.head, each.lane);
  if (status == Status::again) return false;
  if (status == Status::peer_gone && each.head.kind.has_tail()) {
    BulkReader::give_back(engine_.bulk_of(engine_.session().rank()), {each.head.as<Tail>().place});
  }
  return true;
}

}  // namespace tonari::fabric
