#include "fabric/engine.hpp"

#include "job/ending.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <mutex>

namespace tonari::fabric {

namespace {

constexpr std::uint32_t spins_with_a_core_each = 4000;
constexpr std::uint32_t spins_with_shared_cores = 2;  // who is waited for may need this core
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
  bell_ = session.arena().open_bell(session.rank(), job::Arena::Bell::waiting);
  service_bell_ = session.arena().open_bell(session.rank(), job::Arena::Bell::service);
  const auto size = static_cast<std::size_t>(session.size());
  for (int rank = 0; rank < session.size(); ++rank) far_.push_back(session.is_far(rank) ? 1 : 0);
  has_neighbours_ = std::ranges::count(far_, 0) > 1;
  leaves_ = std::vector<std::atomic<char>>(size);
  full_told_to_ = session.size();
  if (has_other_hosts(session)) vigil_.emplace(session);
  network_ = static_cast<Network*>(session.network());
}

Engine::~Engine() = default;

Engine& Engine::of(job::Session& session) {
  return session.attached<Engine>([&session] { return std::make_unique<Engine>(session); });
}

// Takes heads first and hands them up then: the lines of several are on their way at once.
std::size_t Engine::poll() noexcept {
  std::size_t heads = 0;
  if (has_strays_) [[unlikely]]
    hand_up_strays();
  shm_.poll(heads_a_poll, [this, &heads](const Head& head) noexcept { arrived_[heads++] = head; });
  if (heads != 0) hand_up(std::span(arrived_).first(heads));
  if (network_ != nullptr) heads += poll_network();
  retry_held_back();
  if (shm_.room_made()) [[unlikely]]
    session_.arena().ring_all_bells();
  count_poll(heads == 0 && network_empty_);
  return heads;
}

// Release: with what the poll has handed up. Pairs with drain().
void Engine::count_poll(bool empty) noexcept {
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (empty) empty_polls_.store(empty_polls_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

// A look at the network costs as much as tens of looks at the rings.
std::size_t Engine::poll_network() noexcept {
  network_empty_ = false;
  if (++polls_without_network_ < polls_without_network_max && has_neighbours_) return 0;
  polls_without_network_ = 0;
  std::size_t heads = 0;
  const std::uint64_t empty_looks = network_->empty_looks();
  network_->poll(heads_a_poll, [this, &heads](const Head& head) noexcept { arrived_[heads++] = head; });
  network_empty_ = network_->empty_looks() != empty_looks;  // else it had something, or a sender has its lock
  if (heads != 0) hand_up(std::span(arrived_).first(heads));
  if (network_->gone_count() != gone_seen_) [[unlikely]]
    notice_gone();
  tell_if_full();
  if (vigil_) keep_vigil();
  return heads;
}

void Engine::keep_vigil() noexcept {
  const std::uint32_t deaths = session_.arena().header().deaths.load(std::memory_order_acquire);  // with the phases
  if (deaths != deaths_seen_) [[unlikely]] {
    deaths_seen_ = deaths;
    vigil_->look_after_orphans();
  }
  vigil_->tell([this](int peer, const Head& head) noexcept { return send(peer, head, Lane::request); });
}

// Other hosts cannot look into this rank's block. Where there is no room for it, the next poll goes on.
void Engine::tell_if_full() noexcept {
  const std::uint32_t full = block_.full.load(std::memory_order_relaxed);
  if (full != full_told_) [[unlikely]] {
    full_told_ = full;
    full_told_to_ = 0;
  }
  const auto ranks = static_cast<int>(far_.size());
  Head head{};
  head.kind = Kind::rank_full;
  head.source = static_cast<std::uint32_t>(session_.rank());
  head.tag = full_told_;
  for (; full_told_to_ < ranks; ++full_told_to_) {
    const bool cannot_look = is_far(full_told_to_) && session_.is_on_other_host(full_told_to_);
    if (cannot_look && send(full_told_to_, head, Lane::request) == Status::again) return;
  }
}

void Engine::notice_gone() noexcept {
  gone_seen_ = network_->gone_count();
  for (int rank = 0; rank < session_.size(); ++rank) {
    if (!is_far(rank) || !session_.is_on_other_host(rank) || !network_->gone(rank)) continue;
    const bool stays = session_.arena().block(rank).phase.load(std::memory_order_acquire) < job::Phase::leaving;
    if (!stays) continue;
    network_->say_if_out_of_reach(rank);
    if (vigil_) vigil_->found_dead(rank);
    session_.arena().mark_dead(rank, 0, job::Ending::unknown);
  }
}

// From its watcher. What is at stake on this host, the arena says itself.
void Engine::hear_of_death(std::uint32_t rank) noexcept {
  if (rank >= far_.size() || !session_.is_on_other_host(static_cast<int>(rank))) return;  // a peer lies
  const auto dead = static_cast<int>(rank);
  const bool stays = session_.arena().block(dead).phase.load(std::memory_order_acquire) < job::Phase::leaving;
  if (stays) session_.arena().mark_dead(dead, 0, job::Ending::unknown);
}

// What is for the engine itself.
void Engine::take_up(const Head& head) noexcept {
  if (head.kind == Kind::rank_died) return hear_of_death(head.tag);  // from a neighbour, too
  const auto rank = static_cast<int>(head.source);
  if (head.source >= far_.size() || !is_far(rank)) return;     // a peer lies
  const bool has_own_block = session_.is_on_other_host(rank);  // here, for this rank alone
  if (head.kind == Kind::rank_full && has_own_block) {
    session_.arena().block(rank).full.store(head.tag, std::memory_order_relaxed);  // a hint
  } else if (head.kind == Kind::rank_leaves) {
    leaves_[head.source].store(1, std::memory_order_release);  // with what came before it; pairs with left()
    if (has_own_block) session_.arena().mark_leaving(rank);
  }
}

void Engine::hand_up(std::span<const Head> heads) noexcept {
  while (!heads.empty()) {
    const std::size_t layer = layer_of(heads.front().kind);
    const auto end = std::ranges::find_if(heads, [layer](const Head& head) { return layer_of(head.kind) != layer; });
    const auto count = static_cast<std::size_t>(end - heads.begin());
    if (layer < layers_count) {
      hand_up(layer, heads.first(count));
    } else {
      for (const Head& head : heads.first(count)) take_up(head);
    }
    heads = heads.subspan(count);
  }
}

void Engine::hand_up(std::size_t layer, std::span<const Head> heads) noexcept {
  Layer* const above = layers_[layer].load(std::memory_order_acquire);
  std::vector<Head>& strays = strays_[layer];
  if (above != nullptr && strays.empty()) [[likely]] {  // or they would overtake
    above->receive(heads);
  } else {
    strays.insert(strays.end(), heads.begin(), heads.end());
    has_strays_ = true;
  }
}

void Engine::hand_up_strays() noexcept {
  has_strays_ = false;
  for (std::size_t layer = 0; layer < layers_count; ++layer) {
    Layer* const above = layers_[layer].load(std::memory_order_acquire);
    if (above != nullptr) {
      above->receive(strays_[layer]);
      strays_[layer] = {};
    }
    has_strays_ = has_strays_ || !strays_[layer].empty();
  }
}

void Engine::retry_held_back() noexcept {
  if (watches_count_.load(std::memory_order_relaxed) != 0) wake_watchers();
  for (auto& slot : layers_) {
    Layer* above = slot.load(std::memory_order_acquire);
    if (above != nullptr && above->held_back()) above->retry();
  }
}

// By the service thread, before layers are told that a rank has died or leaves: what lies here of that rank is handed
// up, by this thread or by the baton's holder, whom the bell rouses.
//
// Promised: what lay in our rings, or of a far rank in this host's sockets, as far as UCX still reads a connection that
// has broken, when we learned of it. Not promised: what was on its way from another host. A rank's own connection
// breaks behind all that came over it, but its watcher's word comes over another one, and may overtake. Then the layers
// learn of the death first, and get what comes late, or it is lost with the connection: of what the dead have sent
// nobody can count on the last.
//
// Two empty polls, since the first may have begun before. Where others never pause, so many polls have taken more than
// rings and sockets hold. The holder's polls count, not our looks at it: it may be without a core for a while.
void Engine::drain() noexcept {
  constexpr std::uint32_t polls_max = 2000;
  const std::uint32_t polls = polls_.load(std::memory_order_acquire);
  const std::uint32_t empty_polls = empty_polls_.load(std::memory_order_acquire);
  while (empty_polls_.load(std::memory_order_acquire) - empty_polls < 2 &&
         polls_.load(std::memory_order_acquire) - polls < polls_max) {
    if (take_baton()) {
      shm_.expect_gap();
      poll_all();
      drop_baton(true);
    } else {
      ring_own_bell();
      ::sched_yield();
    }
  }
}

// A spare moment: touch lines that a peer writes, which would delay a send.
void Engine::idle() noexcept {
  bulk_.tidy();
  for (auto& slot : layers_) {
    Layer* above = slot.load(std::memory_order_acquire);
    if (above != nullptr) above->idle();
  }
}

void Engine::progress() noexcept {
  if (!take_baton()) return;
  poll();
  drop_baton(true);
  run_errands();
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

void Engine::run_all_errands() noexcept {
  for (auto& slot : layers_) {
    Layer* above = slot.load(std::memory_order_acquire);
    if (above != nullptr) above->run_errands();
  }
}

bool Engine::has_layers() const noexcept {
  return std::ranges::any_of(layers_, [](const auto& slot) { return slot.load(std::memory_order_acquire) != nullptr; });
}

void Engine::serve() noexcept {
  // Only where no application thread comes by itself within a moment.
  constexpr std::chrono::microseconds moment{20};
  const std::uint32_t seen = block_.service_bell.load(std::memory_order_relaxed);
  if (!has_layers()) return;  // heads would have nowhere to go
  if ((block_.baton.load(std::memory_order_relaxed) & 1) != 0) return;
  futex_wait(block_.service_bell, seen, moment);
  if (!take_baton()) return;
  do {
    shm_.expect_gap();
  } while (poll_all() != 0);
  idle();
  drop_baton(true);
  run_errands();
}

bool Engine::died(int rank) noexcept {
  if (!has_layers()) return false;  // what it sent would have nowhere to go
  drain();
  if (is_far(rank)) {
    network_->forget(rank);  // which gives back what it read of ours
  } else {
    bulk_.reader_died(rank);
  }
  tell_layers(rank, &Layer::died);
  return true;
}

bool Engine::left(int rank) noexcept {
  if (!has_layers()) return false;  // as above
  if (is_far(rank) && leaves_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire) == 0) return false;
  drain();
  tell_layers(rank, &Layer::left);
  return true;
}

void Engine::tell_layers(int rank, void (Layer::*told)(int) noexcept) noexcept {
  {
    const std::lock_guard guard(layers_mutex_);
    gone_.push_back({rank, told});
    for (const auto& layer : owned_layers_) {
      if (layer) (layer.get()->*told)(rank);
    }
  }
  wake_watchers();
  ring_own_bell();
}

bool Engine::held_back() const noexcept {
  return std::ranges::any_of(layers_, [](const std::atomic<Layer*>& slot) {
    const Layer* const above = slot.load(std::memory_order_acquire);
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
  tell_far_ranks(leaving);
}

// Returns when the head is on its way to all of them that live.
void Engine::tell_far_ranks(const Head& head) noexcept {
  struct Telling {
    Engine& engine;
    const Head& head;
    int next = 0;
    Step step() noexcept {
      for (; next < static_cast<int>(engine.far_.size()); ++next) {
        if (engine.is_far(next) && engine.send(next, head, Lane::request) == Status::again) return Step::retry;
      }
      return Step::done;
    }
    [[nodiscard]] bool ready() const noexcept { return false; }
    bool attach(Sleeper*) noexcept { return true; }  // it looks again by itself
    void slow() noexcept {}
  } telling{*this, head};
  if (network_ != nullptr) wait(telling);
}

void Engine::sleep_on(job::Arena::Bell which, std::uint32_t seen, std::chrono::nanoseconds longest) noexcept {
  const bool is_service = which == job::Arena::Bell::service;
  const std::atomic<std::uint32_t>& bell = is_service ? block_.service_bell : block_.bell;
  if (network_ == nullptr) return futex_wait(bell, seen, longest);
  if (!network_->arm()) return;
  std::atomic<std::uint32_t>& on_socket = is_service ? block_.service_bell_socket : block_.bell_socket;
  const int socket = (is_service ? service_bell_ : bell_).number();
  on_socket.store(1, std::memory_order_seq_cst);  // before the bell is looked at again: pairs with Arena::ring()
  if (bell.load(std::memory_order_seq_cst) == seen) {
    pollfd ready[2] = {{network_->descriptor(), POLLIN, 0}, {socket, POLLIN, 0}};
    const auto seconds = std::chrono::floor<std::chrono::seconds>(longest);
    const timespec limit{.tv_sec = static_cast<time_t>(seconds.count()),
                         .tv_nsec = static_cast<long>((longest - seconds).count())};
    ::ppoll(ready, 2, &limit, nullptr);
  }
  on_socket.store(0, std::memory_order_relaxed);  // a ring for nothing does no harm
  char drained[64];
  while (::recv(socket, drained, sizeof drained, MSG_DONTWAIT) > 0) {
  }
}

// By the service thread. While some other thread of this rank is in the library, that one looks at the network: two on
// one descriptor would wake for each message both.
bool Engine::rest(std::uint32_t seen, std::chrono::nanoseconds longest) noexcept {
  if (network_ == nullptr) return false;
  if (!take_baton()) {
    futex_wait(block_.service_bell, seen, nap_);
    nap_ = std::min(2 * nap_, nap_max);
    return true;
  }
  nap_ = std::chrono::milliseconds(1);
  const bool quiet = network_->quiet() && !held_back() && errands_.load(std::memory_order_relaxed) == 0;
  drop_baton(true);
  if (!quiet) return true;
  sleep_on(job::Arena::Bell::service, seen, longest);
  if (block_.service_bell.load(std::memory_order_relaxed) == seen) serve_network();
  return true;
}

// What has woken the service thread came by the network: there is nobody to leave it to, as serve() does.
void Engine::serve_network() noexcept {
  if (!take_baton()) return;
  while (poll_all() != 0) {
  }
  drop_baton(true);
  run_errands();
}

// Two ranks that answer each other and each fall asleep meanwhile would go on like that for ever, since waking a core
// takes as long as they spin, and longer. So who has slept a short time spins longer from then on, until a sleep is
// long again.
void Engine::adapt_spins(std::chrono::nanoseconds slept) noexcept {
  if (shared_cores_) return;
  spins_ = slept > short_sleep_max ? spins_min_ : std::min(2 * spins_, spins_growth_max * spins_min_);
}

void Engine::nudge(int peer) noexcept {
  if (is_far(peer)) return;  // its service thread looks at the network
  job::RankBlock& block = session_.arena().block(peer);
  if ((block.baton.load(std::memory_order_relaxed) & 1) == 0) session_.arena().ring_service_bell(peer);
}

void Engine::wake(int peer) noexcept {
  session_.arena().ring_bell(peer);
  block_.counters.wake_ups.fetch_add(1, std::memory_order_relaxed);
}

Sleeper* Engine::lie_down() noexcept {
  const std::lock_guard guard(sleepers_lock_);
  if (sleepers_free_.empty()) sleepers_free_.push_back(&sleepers_.emplace_back());
  Sleeper* sleeper = sleepers_free_.back();
  sleepers_free_.pop_back();
  sleeper->woken.store(0, std::memory_order_relaxed);
  lying_.push_back(sleeper);
  return sleeper;
}

void Engine::get_up(Sleeper* sleeper) noexcept {
  const std::lock_guard guard(sleepers_lock_);
  std::erase(lying_, sleeper);
  sleepers_free_.push_back(sleeper);
}

void Engine::hand_on() noexcept {
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
