#include "fabric/engine.hpp"

#include <algorithm>
#include <mutex>

namespace tonari::fabric {

namespace {

constexpr std::uint32_t spins_with_a_core_each = 4000;
constexpr std::uint32_t spins_with_shared_cores = 2;  // who is waited for may need this core
constexpr std::uint32_t yields_with_a_core_each = 50;
constexpr std::uint32_t yields_with_shared_cores = 400;

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
  shared_cores_ = static_cast<std::uint32_t>(session.size()) > session.arena().header().cores;
  spins_min_ = shared_cores_ ? spins_with_shared_cores : spins_with_a_core_each;
  spins_ = spins_min_;
  yields_max_ = shared_cores_ ? yields_with_shared_cores : yields_with_a_core_each;
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
  retry_held_back();
  if (shm_.room_made()) [[unlikely]]
    session_.arena().ring_all_bells();
  if (heads == 0) empty_polls_.store(empty_polls_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  return heads;
}

void Engine::hand_up(std::span<const Head> heads) noexcept {
  while (!heads.empty()) {
    const std::size_t layer = layer_of(heads.front().kind);
    const auto end = std::ranges::find_if(heads, [layer](const Head& head) { return layer_of(head.kind) != layer; });
    const auto count = static_cast<std::size_t>(end - heads.begin());
    if (layer < layers_count) hand_up(layer, heads.first(count));  // or a peer lies
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

// By the service thread: takes what is in the rings, or sees that the baton's holder has, whom the bell rouses. Two
// empty polls, since the first may have begun before. Where others never pause, enough has been taken after so many
// looks.
void Engine::drain() noexcept {
  constexpr int looks_max = 10'000;
  const std::uint32_t before = empty_polls_.load(std::memory_order_acquire);
  for (int look = 0; look < looks_max && empty_polls_.load(std::memory_order_acquire) - before < 2; ++look) {
    if (take_baton()) {
      shm_.expect_gap();
      poll();
      drop_baton(true);
    } else {
      ring_bell(block_.bell);
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
  } while (poll() != 0);
  idle();
  drop_baton(true);
  run_errands();
}

bool Engine::died(int rank) noexcept {
  if (!has_layers()) return false;  // what it sent would have nowhere to go
  drain();
  bulk_.reader_died(rank);
  tell_layers(rank, &Layer::died);
  return true;
}

bool Engine::left(int rank) noexcept {
  if (!has_layers()) return false;  // as above
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
  ring_bell(block_.bell);
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
}

// Two ranks that answer each other and each fall asleep meanwhile would go on like that for ever, since waking a core
// takes as long as they spin, and longer. So who has slept a short time spins longer from then on, until a sleep is
// long again.
void Engine::adapt_spins(std::chrono::nanoseconds slept) noexcept {
  if (shared_cores_) return;
  spins_ = slept > short_sleep_max ? spins_min_ : std::min(2 * spins_, spins_growth_max * spins_min_);
}

void Engine::nudge(int peer) noexcept {
  job::RankBlock& block = session_.arena().block(peer);
  if ((block.baton.load(std::memory_order_relaxed) & 1) == 0) ring_bell(block.service_bell);
}

void Engine::wake(int peer) noexcept {
  ring_bell(session_.arena().block(peer).bell);
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
