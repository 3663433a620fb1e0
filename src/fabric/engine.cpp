#include "fabric/engine.hpp"

#include <memory>
#include <vector>

namespace tonari::fabric {

namespace {

std::vector<Rings> rings_of(job::Session& session) {
  std::vector<Rings> result;
  for (int rank = 0; rank < session.size(); ++rank) {
    const Segment segment(session.arena().segment(rank));
    result.push_back({&segment.requests(), &segment.replies()});
  }
  return result;
}

}  // namespace

Engine::Engine(job::Session& session)
    : session_(session),
      block_(session.block()),
      spin_limits_(static_cast<std::uint32_t>(session.ranks_here()) > session.arena().header().cores),
      progress_lock_(block_.progress_lock),
      shm_(rings_of(session), session.arena().header().ring_slots, reply_slots, session.rank(), Neighbours{&session}),
      remote_ranks_(session),
      bulk_(Segment(session.arena().segment(session.rank())).bulk()),
      tickets_(Segment(session.arena().segment(session.rank())).transfers()),
      boards_(Segment(session.arena().segment(session.rank())).boards()),
      doorbells_(session, remote_ranks_.network()),
      handlers_(session) {}

Engine::~Engine() = default;

Engine& Engine::of(job::Session& session) {
  return session.attached<Engine>([&session] { return std::make_unique<Engine>(session); });
}

// Takes all heads before it hands any up, so that the cache lines of several are fetched at once.
std::size_t Engine::poll() noexcept {
  std::size_t heads = 0;
  handlers_.deliver_undelivered();
  shm_.poll(heads_per_poll, [this, &heads](const Head& head) noexcept { arrived_[heads++] = head; });
  if (heads != 0) hand_up(std::span(arrived_).first(heads));
  if (has_network()) heads += poll_network();
  retry_held_back();
  if (shm_.room_made()) [[unlikely]]
    session_.arena().ring_all_doorbells();
  count_poll(heads == 0 && remote_ranks_.network_empty());
  return heads;
}

std::size_t Engine::poll_network() noexcept {
  std::size_t heads = 0;
  const auto keep = [this, &heads](const Head& head) noexcept { arrived_[heads++] = head; };
  if (!remote_ranks_.poll(heads_per_poll, keep)) return 0;
  if (heads != 0) hand_up(std::span(arrived_).first(heads));
  remote_ranks_.tell([this](int peer, const Head& head) noexcept { return send(peer, head, Lane::request); });
  return heads;
}

void Engine::hand_up(std::span<const Head> heads) noexcept {
  handlers_.hand_up(heads, [this](const Head& head) noexcept { remote_ranks_.receive(head); });
}

// Release: after the heads of this poll have been handed up. Pairs with drain().
void Engine::count_poll(bool empty) noexcept {
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (empty) empty_polls_.store(empty_polls_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

// Called when there is nothing else to do: touches cache lines that peers write, which would delay a send.
void Engine::idle() noexcept {
  bulk_.tidy();
  handlers_.idle();
}

void Engine::progress() noexcept {
  if (!progress_lock_.try_take()) return;
  poll();
  progress_lock_.drop(true);
  handlers_.run_deferred_work();
}

void Engine::wake_peer(int peer) noexcept {
  if (is_remote(peer)) return;  // its service thread watches the network
  if (!ProgressLock::is_held(session_.arena().block(peer).progress_lock)) session_.arena().ring_service_doorbell(peer);
}

void Engine::Neighbours::wake(int rank) const noexcept {
  session->arena().ring_doorbell(rank);
  session->block().counters.wake_ups.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace tonari::fabric
