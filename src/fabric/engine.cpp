#include "fabric/engine.hpp"

#include "job/ending.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <mutex>

namespace tonari::fabric {

namespace {

constexpr std::uint32_t spins_with_a_core_each = 4000;
constexpr std::uint32_t spins_with_shared_cores = 2;  // the awaited rank may need this core
constexpr std::uint32_t yields_with_a_core_each = 50;
constexpr std::uint32_t yields_with_shared_cores = 400;

bool has_other_hosts(const job::Session& session) noexcept {
  for (int rank = 0; rank < session.size(); ++rank) {
    if (session.is_on_other_host(rank)) return true;
  }
  return false;
}

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
      shm_(rings_of(session), session.arena().header().ring_slots, reply_slots, session.rank(), Neighbours{this}),
      bulk_(Segment(session.arena().segment(session.rank())).bulk()),
      tickets_(Segment(session.arena().segment(session.rank())).transfers()),
      boards_(Segment(session.arena().segment(session.rank())).boards()) {
  shared_cores_ = static_cast<std::uint32_t>(session.ranks_here()) > session.arena().header().cores;
  spins_min_ = shared_cores_ ? spins_with_shared_cores : spins_with_a_core_each;
  spins_ = spins_min_;
  yields_max_ = shared_cores_ ? yields_with_shared_cores : yields_with_a_core_each;
  if (session.network() == nullptr) return;
  doorbell_ = session.arena().open_doorbell(session.rank(), job::Arena::Doorbell::waiting);
  service_doorbell_ = session.arena().open_doorbell(session.rank(), job::Arena::Doorbell::service);
  const auto size = static_cast<std::size_t>(session.size());
  for (int rank = 0; rank < session.size(); ++rank) remote_.push_back(session.is_remote(rank) ? 1 : 0);
  has_neighbours_ = std::ranges::count(remote_, 0) > 1;
  leaves_ = std::vector<std::atomic<char>>(size);
  full_told_to_ = session.size();
  if (has_other_hosts(session)) failure_detector_.emplace(session);
  network_ = static_cast<Network*>(session.network());
}

Engine::~Engine() = default;

Engine& Engine::of(job::Session& session) {
  return session.attached<Engine>([&session] { return std::make_unique<Engine>(session); });
}

// Takes all heads before it hands any up, so that the cache lines of several are fetched at once.
std::size_t Engine::poll() noexcept {
  std::size_t heads = 0;
  if (has_undelivered_) [[unlikely]]
    deliver_undelivered();
  shm_.poll(heads_a_poll, [this, &heads](const Head& head) noexcept { arrived_[heads++] = head; });
  if (heads != 0) hand_up(std::span(arrived_).first(heads));
  if (network_ != nullptr) heads += poll_network();
  retry_held_back();
  if (shm_.room_made()) [[unlikely]]
    session_.arena().ring_all_doorbells();
  count_poll(heads == 0 && network_empty_);
  return heads;
}

// Release: after the heads of this poll have been handed up. Pairs with drain().
void Engine::count_poll(bool empty) noexcept {
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (empty) empty_polls_.store(empty_polls_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

// Polling the network costs as much as tens of polls of the rings.
std::size_t Engine::poll_network() noexcept {
  network_empty_ = false;
  if (++polls_without_network_ < polls_without_network_max && has_neighbours_) return 0;
  polls_without_network_ = 0;
  std::size_t heads = 0;
  const std::uint64_t empty_looks = network_->empty_looks();
  network_->poll(heads_a_poll, [this, &heads](const Head& head) noexcept { arrived_[heads++] = head; });
  network_empty_ = network_->empty_looks() != empty_looks;  // unchanged: it had heads, or a sender holds its lock
  if (heads != 0) hand_up(std::span(arrived_).first(heads));
  if (network_->gone_count() != gone_seen_) [[unlikely]]
    notice_gone();
  tell_if_full();
  if (failure_detector_) run_failure_detector();
  return heads;
}

void Engine::run_failure_detector() noexcept {
  const std::uint32_t deaths =
      session_.arena().header().deaths.load(std::memory_order_acquire);  // acquire: with the phases
  if (deaths != deaths_seen_) [[unlikely]] {
    deaths_seen_ = deaths;
    failure_detector_->take_over_watched();
  }
  failure_detector_->tell([this](int peer, const Head& head) noexcept { return send(peer, head, Lane::request); });
}

// Ranks of other hosts cannot read this rank's block. If there is no room for a head, the next poll continues.
void Engine::tell_if_full() noexcept {
  const std::uint32_t full = block_.full.load(std::memory_order_relaxed);
  if (full != full_told_) [[unlikely]] {
    full_told_ = full;
    full_told_to_ = 0;
  }
  const auto ranks = static_cast<int>(remote_.size());
  Head head{};
  head.kind = Kind::rank_full;
  head.source = static_cast<std::uint32_t>(session_.rank());
  head.tag = full_told_;
  for (; full_told_to_ < ranks; ++full_told_to_) {
    const bool cannot_look = is_remote(full_told_to_) && session_.is_on_other_host(full_told_to_);
    if (cannot_look && send(full_told_to_, head, Lane::request) == Status::again) return;
  }
}

void Engine::notice_gone() noexcept {
  gone_seen_ = network_->gone_count();
  for (int rank = 0; rank < session_.size(); ++rank) {
    if (!is_remote(rank) || !session_.is_on_other_host(rank) || !network_->gone(rank)) continue;
    const bool stays = session_.arena().block(rank).phase.load(std::memory_order_acquire) < job::Phase::leaving;
    if (!stays) continue;
    network_->say_if_out_of_reach(rank);
    if (failure_detector_) failure_detector_->found_dead(rank);
    session_.arena().mark_dead(rank, 0, job::Ending::unknown);
  }
}

// `rank`: as its watcher reports. Deaths on this host are found by the arena, not by heads.
void Engine::hear_of_death(std::uint32_t rank) noexcept {
  if (rank >= remote_.size() || !session_.is_on_other_host(static_cast<int>(rank))) return;  // malformed: drop it
  const auto dead = static_cast<int>(rank);
  const bool stays = session_.arena().block(dead).phase.load(std::memory_order_acquire) < job::Phase::leaving;
  if (stays) session_.arena().mark_dead(dead, 0, job::Ending::unknown);
}

// Handles a head of Protocol::fabric.
void Engine::receive(const Head& head) noexcept {
  if (head.kind == Kind::rank_died) return hear_of_death(head.tag);  // from a rank of this host, too
  const auto rank = static_cast<int>(head.source);
  if (head.source >= remote_.size() || !is_remote(rank)) return;            // malformed: drop it
  if (head.kind.has_tail()) return give_back(rank, head.as<Tail>().place);  // malformed: no such kind
  const bool has_own_block = session_.is_on_other_host(rank);               // in this arena, written by this rank alone
  if (head.kind == Kind::rank_full && has_own_block) {
    session_.arena().block(rank).full.store(head.tag, std::memory_order_relaxed);  // a hint
  } else if (head.kind == Kind::rank_leaves) {
    leaves_[head.source].store(1, std::memory_order_release);  // after its earlier heads; pairs with left()
    if (has_own_block) session_.arena().mark_leaving(rank);
  }
}

void Engine::hand_up(std::span<const Head> heads) noexcept {
  while (!heads.empty()) {
    const Protocol protocol = heads.front().kind.protocol();
    const auto end =
        std::ranges::find_if(heads, [protocol](const Head& head) { return head.kind.protocol() != protocol; });
    const auto count = static_cast<std::size_t>(end - heads.begin());
    if (protocol != Protocol::fabric) {
      hand_up(static_cast<std::size_t>(protocol), heads.first(count));
    } else {
      for (const Head& head : heads.first(count)) receive(head);
    }
    heads = heads.subspan(count);
  }
}

void Engine::hand_up(std::size_t protocol, std::span<const Head> heads) noexcept {
  ProtocolHandler* const above = handlers_[protocol].load(std::memory_order_acquire);
  std::vector<Head>& undelivered = undelivered_[protocol];
  if (above != nullptr && undelivered.empty()) [[likely]] {  // else these heads would overtake the undelivered ones
    above->receive(heads);
  } else {
    undelivered.insert(undelivered.end(), heads.begin(), heads.end());
    has_undelivered_ = true;
  }
}

void Engine::deliver_undelivered() noexcept {
  has_undelivered_ = false;
  for (std::size_t protocol = 0; protocol < handlers_count; ++protocol) {
    ProtocolHandler* const above = handlers_[protocol].load(std::memory_order_acquire);
    if (above != nullptr) {
      above->receive(undelivered_[protocol]);
      undelivered_[protocol] = {};
    }
    has_undelivered_ = has_undelivered_ || !undelivered_[protocol].empty();
  }
}

void Engine::retry_held_back() noexcept {
  if (watches_count_.load(std::memory_order_relaxed) != 0) wake_watchers();
  for (auto& slot : handlers_) {
    ProtocolHandler* above = slot.load(std::memory_order_acquire);
    if (above != nullptr && above->held_back()) above->retry();
  }
}

// Called by the service thread before it tells the handlers that a rank has died or is leaving. Has the heads of that
// rank that have already arrived handed up, by this thread or by the holder of the progress lock, which the doorbell
// wakes.
//
// Guaranteed: the heads that were in our rings when this rank learned of the death; for a remote rank, the heads in
// this host's sockets, as far as UCX still reads a broken connection. Not guaranteed: heads on their way from another
// host. A rank's own connection breaks after everything that came over it, but its watcher's report comes over another
// connection and may be faster. Then the handlers learn of the death first, and late heads arrive afterwards or are
// lost with the connection. So the last messages of a dead rank may arrive after its death is reported, or not at all.
//
// Waits for two empty polls, since the first may have begun earlier. If other ranks never pause, `polls_max` polls have
// taken more than the rings and sockets hold. The holder's polls are counted, not this thread's looks at it, since the
// holder may be without a core for a while.
void Engine::drain() noexcept {
  constexpr std::uint32_t polls_max = 2000;
  const std::uint32_t polls = polls_.load(std::memory_order_acquire);
  const std::uint32_t empty_polls = empty_polls_.load(std::memory_order_acquire);
  while (empty_polls_.load(std::memory_order_acquire) - empty_polls < 2 &&
         polls_.load(std::memory_order_acquire) - polls < polls_max) {
    if (take_progress_lock()) {
      shm_.expect_gap();
      poll_all();
      drop_progress_lock(true);
    } else {
      ring_own_doorbell();
      ::sched_yield();
    }
  }
}

// Called when there is nothing else to do: touches cache lines that peers write, which would delay a send.
void Engine::idle() noexcept {
  bulk_.tidy();
  for (auto& slot : handlers_) {
    ProtocolHandler* above = slot.load(std::memory_order_acquire);
    if (above != nullptr) above->idle();
  }
}

void Engine::progress() noexcept {
  if (!take_progress_lock()) return;
  poll();
  drop_progress_lock(true);
  run_deferred_work();
}

bool Engine::watch(const Watched& what, Sleeper* sleeper) noexcept {
  const std::lock_guard guard(watches_lock_);
  if (sleeper == nullptr) {
    const auto ended = std::erase_if(watches_, [&](const Watch& each) { return each.what == &what; });
    watches_count_.fetch_sub(static_cast<std::uint32_t>(ended), std::memory_order_relaxed);
    return true;
  }
  try {
    watches_.push_back({&what, sleeper});
  } catch (const std::bad_alloc&) {
    return false;
  }
  watches_count_.fetch_add(1, std::memory_order_relaxed);
  return !what.ready();
}

void Engine::wake_watchers() noexcept {
  for (std::size_t i = 0;;) {
    Sleeper* to_wake = nullptr;
    {
      const std::lock_guard guard(watches_lock_);
      while (i < watches_.size() && !watches_[i].what->ready()) ++i;
      if (i >= watches_.size()) return;
      to_wake = watches_[i++].sleeper;
    }
    to_wake->wake();
  }
}

void Engine::run_deferred_work_slow() noexcept {
  for (auto& slot : handlers_) {
    ProtocolHandler* above = slot.load(std::memory_order_acquire);
    if (above != nullptr) above->run_deferred_work();
  }
}

bool Engine::has_handlers() const noexcept {
  return std::ranges::any_of(handlers_,
                             [](const auto& slot) { return slot.load(std::memory_order_acquire) != nullptr; });
}

void Engine::serve() noexcept {
  // The service thread polls only if no application thread does so within a moment.
  constexpr std::chrono::microseconds moment{20};
  const std::uint32_t seen = block_.service_doorbell.load(std::memory_order_relaxed);
  if (!has_handlers()) return;  // nothing could handle the heads
  if ((block_.progress_lock.load(std::memory_order_relaxed) & 1) != 0) return;
  futex_wait(block_.service_doorbell, seen, moment);
  if (!take_progress_lock()) return;
  do {
    shm_.expect_gap();
  } while (poll_all() != 0);
  idle();
  drop_progress_lock(true);
  run_deferred_work();
}

bool Engine::died(int rank) noexcept {
  if (!has_handlers()) return false;  // nothing could handle the heads that it has sent
  drain();
  if (is_remote(rank)) {
    network_->forget(rank);  // also returns the tails that were being sent to it
  } else {
    bulk_.reader_died(rank);
  }
  tell_handlers(rank, &ProtocolHandler::died);
  return true;
}

bool Engine::left(int rank) noexcept {
  if (!has_handlers()) return false;  // as in died()
  if (is_remote(rank) && leaves_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire) == 0) return false;
  drain();
  tell_handlers(rank, &ProtocolHandler::left);
  return true;
}

void Engine::tell_handlers(int rank, void (ProtocolHandler::*told)(int) noexcept) noexcept {
  {
    const std::lock_guard guard(handlers_mutex_);
    gone_.push_back({rank, told});
    for (const auto& layer : owned_handlers_) {
      if (layer) (layer.get()->*told)(rank);
    }
  }
  wake_watchers();
  ring_own_doorbell();
}

bool Engine::held_back() const noexcept {
  return std::ranges::any_of(handlers_, [](const std::atomic<ProtocolHandler*>& slot) {
    const ProtocolHandler* const above = slot.load(std::memory_order_acquire);
    return above != nullptr && above->held_back();
  });
}

void Engine::settle() noexcept {
  struct NothingHeld {
    Engine& engine;
    Step step() noexcept { return engine.held_back() ? Step::retry : Step::done; }
    [[nodiscard]] bool ready() const noexcept { return !engine.held_back(); }
    bool attach(Sleeper*) noexcept { return true; }  // it looks again by itself
    void slow() noexcept {}
  } waiting{*this};
  wait(waiting);
  Head leaving{};
  leaving.kind = Kind::rank_leaves;
  leaving.source = static_cast<std::uint32_t>(session_.rank());
  tell_remote_ranks(leaving);
}

// Returns when the head has been sent to all remote ranks that are alive.
void Engine::tell_remote_ranks(const Head& head) noexcept {
  struct Telling {
    Engine& engine;
    const Head& head;
    int next = 0;
    Step step() noexcept {
      for (; next < static_cast<int>(engine.remote_.size()); ++next) {
        if (engine.is_remote(next) && engine.send(next, head, Lane::request) == Status::again) return Step::retry;
      }
      return Step::done;
    }
    [[nodiscard]] bool ready() const noexcept { return false; }
    bool attach(Sleeper*) noexcept { return true; }  // it looks again by itself
    void slow() noexcept {}
  } telling{*this, head};
  if (network_ != nullptr) wait(telling);
}

void Engine::sleep_on(job::Arena::Doorbell which, std::uint32_t seen, std::chrono::nanoseconds longest) noexcept {
  const bool is_service = which == job::Arena::Doorbell::service;
  const std::atomic<std::uint32_t>& doorbell = is_service ? block_.service_doorbell : block_.doorbell;
  if (network_ == nullptr) return futex_wait(doorbell, seen, longest);
  if (!network_->arm()) return;
  std::atomic<std::uint32_t>& on_socket = is_service ? block_.service_doorbell_socket : block_.doorbell_socket;
  const int socket = (is_service ? service_doorbell_ : doorbell_).number();
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

// Called by the service thread. While another thread of this rank polls, that thread watches the network: if two
// threads slept on one descriptor, each message would wake both.
bool Engine::rest(std::uint32_t seen, std::chrono::nanoseconds longest) noexcept {
  if (network_ == nullptr) return false;
  if (!take_progress_lock()) {
    futex_wait(block_.service_doorbell, seen, nap_);
    nap_ = std::min(2 * nap_, nap_max);
    return true;
  }
  nap_ = std::chrono::milliseconds(1);
  const bool quiet = network_->quiet() && !held_back() && deferred_work_.load(std::memory_order_relaxed) == 0;
  drop_progress_lock(true);
  if (!quiet) return true;
  sleep_on(job::Arena::Doorbell::service, seen, longest);
  if (block_.service_doorbell.load(std::memory_order_relaxed) == seen) serve_network();
  return true;
}

// Unlike serve(), does not wait for an application thread: the network has woken the service thread, since no other
// thread watches it.
void Engine::serve_network() noexcept {
  if (!take_progress_lock()) return;
  while (poll_all() != 0) {
  }
  drop_progress_lock(true);
  run_deferred_work();
}

// Two ranks that reply to each other could each fall asleep while the other is being woken, and so on forever, since
// waking a core takes as long as spinning or longer. So after a short sleep this rank spins longer, until a sleep is
// long again.
void Engine::adapt_spins(std::chrono::nanoseconds slept) noexcept {
  if (shared_cores_) return;
  spins_ = slept > short_sleep_max ? spins_min_ : std::min(2 * spins_, spins_growth_max * spins_min_);
}

void Engine::wake_peer(int peer) noexcept {
  if (is_remote(peer)) return;  // its service thread watches the network
  job::RankBlock& block = session_.arena().block(peer);
  if ((block.progress_lock.load(std::memory_order_relaxed) & 1) == 0) session_.arena().ring_service_doorbell(peer);
}

void Engine::wake(int peer) noexcept {
  session_.arena().ring_doorbell(peer);
  block_.counters.wake_ups.fetch_add(1, std::memory_order_relaxed);
}

Sleeper* Engine::register_sleeper() noexcept {
  const std::lock_guard guard(sleepers_lock_);
  if (sleepers_free_.empty()) sleepers_free_.push_back(&sleepers_.emplace_back());
  Sleeper* sleeper = sleepers_free_.back();
  sleepers_free_.pop_back();
  sleeper->woken.store(0, std::memory_order_relaxed);
  lying_.push_back(sleeper);
  return sleeper;
}

void Engine::unregister_sleeper(Sleeper* sleeper) noexcept {
  const std::lock_guard guard(sleepers_lock_);
  std::erase(lying_, sleeper);
  sleepers_free_.push_back(sleeper);
}

void Engine::pass_on_progress_lock_slow() noexcept {
  Sleeper* next = nullptr;
  {
    const std::lock_guard guard(sleepers_lock_);
    if (lying_.empty()) return;
    next = lying_.front();
    lying_.erase(lying_.begin());
  }
  next->wake();
}

}  // namespace tonari::fabric
