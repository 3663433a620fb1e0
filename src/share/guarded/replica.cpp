#include "share/guarded/replica.hpp"

#include "base/clock.hpp"
#include "fabric/wait.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

// The threads of this rank, and the queue.
namespace tonari::share {

namespace {

constexpr std::align_val_t line_alignment{64};

}  // namespace

void Replica::Freeing::operator()(std::byte* bytes) const noexcept { ::operator delete[](bytes, line_alignment); }

Replica::Replica(fabric::Engine& engine, fabric::SendQueue& send_queue, fabric::HeldBack& held, const GuardedPlan& plan)
    : engine_(engine), send_queue_(send_queue), held_(held), plan_(plan), self_(engine.session().rank()) {
  if (mover() != Mover::asker_gets)
    memory_.reset(static_cast<std::byte*>(::operator new[](plan.bytes, line_alignment)));
  if (is_home(self_)) home_.emplace(self_, engine.session().size());
}

void Replica::open(std::span<const std::byte> initial, std::optional<Window> window,
                   std::unique_ptr<window::Put> put) noexcept {
  window_ = std::move(window);
  put_ = std::move(put);
  if (window_) memory_.reset();
  data_ = window_ ? window_->local().data() : memory_.get();
  std::memset(data_, 0, plan_.bytes);
  if (!home_) return;
  std::ranges::copy(initial, data_);
  owner_ = true;
  version_ = have_ = 1;
  source_ = self_;
}

Replica::~Replica() {
  if (counted_) held_.remove();
}

bool Replica::can_enter(Use use) const noexcept {
  if (writing_ || !has_data()) return false;
  if (use == Use::read) return may_read();
  return owner_ && readers_ == 0 && copies_.empty() && children_.empty() && sendings_.empty();
}

void Replica::hold(Use use) noexcept {
  if (use == Use::write) {
    writing_ = true;
    tried_ = false;
  } else {
    ++readers_;
    has_read_ = true;
  }
}

Status Replica::enter(Use use) noexcept {
  std::unique_lock guard(mutex_);
  if (queue_.empty() && can_enter(use)) [[likely]] {
    hold(use);
    const bool looks = ++entries_ % entries_between_looks == 0;
    guard.unlock();
    if (looks) engine_.progress();  // a thread that locks in a loop may be the only one that can make progress
    return Status::ok;
  }
  if (lost_) return Status::peer_gone;
  Waiter waiter;
  queue_.push_back({Turn::What::local, use, &waiter});
  advance();
  const bool woke = std::exchange(woke_, false);
  guard.unlock();
  if (woke) engine_.wake_self();
  return wait(waiter);
}

Status Replica::wait(Waiter& waiter) noexcept {
  for (;;) {
    wait_for_outcome(waiter);
    switch (waiter.outcome.load(std::memory_order_acquire)) {
      case Outcome::entered: return Status::ok;
      case Outcome::failed: return Status::peer_gone;
      default: break;
    }
    std::unique_lock guard(mutex_);
    if (waiter.outcome.load(std::memory_order_relaxed) != Outcome::to_get) continue;
    waiter.outcome.store(Outcome::waiting, std::memory_order_relaxed);  // with the lock held: no outcome is lost
    get(guard);
  }
}

// Waits a moment before it wakes another rank: after a barrier all ranks lock at once, so most often that rank makes
// progress by itself.
void Replica::wait_for_outcome(Waiter& waiter) noexcept {
  constexpr std::uint64_t patience_ns = 20'000;
  const auto is_over = [&waiter] { return waiter.outcome.load(std::memory_order_acquire) != Outcome::waiting; };
  if (is_over()) return;
  if (waiter.is_patient) {
    return fabric::wait_patiently(engine_, is_over, job::Wait::lock, plan_.options.home.value(), patience_ns,
                                  [&] { lose_patience(waiter); });
  }
  fabric::WaitUntil waiting(engine_, is_over, job::Wait::lock, plan_.options.home.value());
  engine_.wait(waiting);
}

void Replica::lose_patience(Waiter& waiter) noexcept {
  const std::lock_guard guard(mutex_);
  waiter.is_patient = false;
  if (asked_ != Wanted::nothing) engine_.wake_peer(plan_.options.home.value());
  for (const Child& each : children_) engine_.wake_peer(each.rank);
}

// Gets the data. Called by the thread at the front of the queue: the bytes do not change meanwhile, at either end (G4).
void Replica::get(std::unique_lock<std::mutex>& guard) noexcept {
  const int source = source_;
  const std::uint64_t version = version_;
  guard.unlock();
  const Status got = window_->pull(std::span(data_, plan_.bytes), window_->at(JobRank{source}));
  guard.lock();
  fetching_ = false;
  if (got == Status::ok) {
    have_ = version;
  } else if (owner_ || is_alive(source)) {
    tell_lost();
  } else {
    valid_ = false;  // the owner has the data, or the data are lost
  }
  advance();
  if (std::exchange(woke_, false)) engine_.wake_self();
}

Status Replica::try_enter(Use use) noexcept {
  const auto has_to_get = [&] { return (use == Use::read ? may_read() : owner_) && !has_data() && !fetching_; };
  const auto is_free = [&] {
    return queue_.empty() && (can_enter(use) || (mover() == Mover::asker_gets && has_to_get()));
  };
  std::unique_lock guard(mutex_);
  if (lost_) return Status::peer_gone;
  if (queue_.empty() && !can_enter(use)) ask_for_later(use);
  if (!is_free()) {
    const bool is_coming = !queue_.empty() || !children_.empty() || !sendings_.empty() || fetching_;
    const std::uint64_t patience_ns =
        is_coming ? next_patience_ns() : 0;  // otherwise another thread of this rank holds it
    guard.unlock();
    engine_.progress();  // a thread that tries in a loop may be the only one that can make progress
    const auto is_free_now = [&] {
      const std::lock_guard look(mutex_);
      return is_free();
    };
    fabric::WaitUntil waiting(engine_, is_free_now, job::Wait::lock, plan_.options.home.value(),
                              monotonic_ns() + patience_ns);
    engine_.wait(waiting);
    guard.lock();
  }
  if (is_free() && !can_enter(use)) {
    fetching_ = true;
    get(guard);
  }
  if (!queue_.empty() || !can_enter(use)) return lost_ ? Status::peer_gone : Status::again;
  tries_in_vain_ = 0;
  hold(use);
  return Status::ok;
}

// Requests the data, so that this try or a later one can succeed.
void Replica::ask_for_later(Use use) noexcept {
  if (use == Use::write ? !owner_ : !may_read()) {
    queue_.push_back({Turn::What::local, use});
  } else if (use == Use::write && !writing_ && sendings_.empty()) {
    tried_ = true;
    (void)stop_readers(-1);
  }
  advance();
}

// Returns how long a try waits for other ranks' replies: longer after failed tries, and not always the same time.
// Otherwise two threads that hold one lock each and try for the other's, as std::lock does, could exchange them for
// ever.
std::uint64_t Replica::next_patience_ns() noexcept {
  constexpr std::uint64_t unit_ns = 25'000;
  constexpr std::uint32_t doublings_max = 6;
  random_ = random_ * 6364136223846793005 + 1442695040888963407 + static_cast<std::uint64_t>(self_);
  return (random_ >> 61) * unit_ns << std::min(tries_in_vain_++, doublings_max);
}

Status Replica::leave(Use use) noexcept {
  Status status = Status::ok;
  {
    const std::lock_guard guard(mutex_);
    if (use == Use::write ? !writing_ : readers_ == 0) return lost_ ? Status::peer_gone : Status::invalid;
    if (use == Use::read) {
      --readers_;
    } else {
      writing_ = false;
      if (lost_) {
        status = Status::peer_gone;
      } else {
        have_ = ++version_;
        source_ = self_;
        if (std::exchange(update_wanted_, false) || updates()) update_copies();
      }
    }
    if (queue_.empty() && sendings_.empty() && !stopping_) [[likely]]
      return status;
    advance();
    if (!std::exchange(woke_, false)) return status;
  }
  engine_.wake_self();  // another thread of this rank may sleep with the progress lock
  return status;
}

bool Replica::has_entered(Use use) noexcept {
  const std::lock_guard guard(mutex_);
  return writing_ || (use == Use::read && readers_ != 0);
}

void Replica::prefetch() noexcept {
  const std::lock_guard guard(mutex_);
  if (may_read() || lost_ || !queue_.empty()) return;
  queue_.push_back({Turn::What::local, Use::read});
  advance();
}

Status Replica::update_now() noexcept {
  {
    const std::lock_guard guard(mutex_);
    if (owner_) {
      update_wanted_ = writing_;
      if (!writing_ && children_.empty() && !is_about_to_change()) {
        update_copies();
        advance();
      }
      return Status::ok;
    }
  }
  const Status status = enter(Use::read);
  return status == Status::ok ? leave(Use::read) : status;
}

void Replica::drop() noexcept {
  const std::lock_guard guard(mutex_);
  const bool has_nothing = owner_ || (!valid_ && !awaits_update_);
  if (has_nothing || readers_ != 0 || asked_ != Wanted::nothing || fetching_ || stopping_ || home_gone_) return;
  if (!sendings_.empty()) return;  // G9
  valid_ = awaits_update_ = false;
  dropped_ = true;
  post(plan_.options.home.value(), Kind::guard_want,
       GuardWant{have_, ++asks_, static_cast<std::uint32_t>(self_), GuardAct::drop});
  advance();
}

void Replica::free() noexcept {
  const std::lock_guard guard(mutex_);
  post(plan_.options.home.value(), Kind::guard_freed);
  advance();
}

bool Replica::is_over() noexcept {
  const std::lock_guard guard(mutex_);
  return over_ && all_is_sent();
}

// Serves the queue as far as possible. With mutex_ held.
void Replica::advance() noexcept {
  bool moved = true;
  while (moved) {
    while (step()) queue_.pop_front();
    if (stopping_ && !fetching_) valid_ = false;  // threads that waited for the fetched data have entered
    const bool has_to_update = updates() && owner_ && !writing_ && !stopped_.empty() && !tried_;
    if (has_to_update && !is_about_to_change()) update_copies();
    moved = send();
    tell_stopped();
    for (const fabric::Head& head : std::exchange(to_self_, {})) {
      take(head);
      moved = true;
    }
  }
  if (counted_ == !all_is_sent()) return;
  counted_ = !counted_;
  if (!counted_) return held_.remove();
  held_.add();
  engine_.wake_self();
  engine_.session().arena().ring_service_doorbell(self_);
}

// Returns true if the front of the queue is done.
bool Replica::step() noexcept {
  if (queue_.empty()) return false;
  const Turn turn = queue_.front();
  switch (turn.what) {
    case Turn::What::local: return step_local(turn);
    case Turn::What::ownership: return step_ownership(turn);
    case Turn::What::copy:
      if (!owner_ || writing_) return false;
      stopped_.remove(turn.rank);
      if (!is_alive(turn.rank)) return true;
      copies_.add(turn.rank);
      give(turn.rank, {GivenTag::copy, true}, turn.have);
      return true;
    case Turn::What::drop:
      if (!owner_) return false;
      copies_.remove(turn.rank);
      stopped_.remove(turn.rank);
      return true;
  }
  return true;
}

bool Replica::step_local(const Turn& turn) noexcept {
  const bool reads = turn.use == Use::read;
  const fabric::Wakeup wakeup =
      turn.waiter != nullptr && turn.waiter->is_patient ? fabric::Wakeup::later : fabric::Wakeup::now;
  if (lost_ || (home_gone_ && !(reads ? may_read() : owner_))) {
    end(turn, Outcome::failed);
    return true;
  }
  if (!(reads ? may_read() : owner_)) {
    ask(reads ? GuardAct::read : GuardAct::write, wakeup);
    return false;
  }
  if (turn.waiter == nullptr) return true;
  if (!has_data()) {
    if (mover() == Mover::asker_gets && !std::exchange(fetching_, true)) end(turn, Outcome::to_get);
    return false;
  }
  if (writing_) return false;
  // Data that are being sent must not be changed, and a stop must not overtake them.
  if (!reads && (!sendings_.empty() || !stop_readers(-1, wakeup) || readers_ != 0)) return false;
  hold(turn.use);
  end(turn, Outcome::entered);
  return true;
}

bool Replica::step_ownership(const Turn& turn) noexcept {
  if (!owner_ || writing_ || fetching_ || !sendings_.empty() || !stop_readers(turn.rank) || readers_ != 0) return false;
  stopped_.remove(turn.rank);
  if (updates()) {
    awaits_update_ = has_read_;
    if (has_read_) stopped_.add(self_);
    for (auto left = stopped_.ranks(); !left.empty();) {
      const auto some = left.first(std::min(left.size(), GuardList::listed_max));
      GuardList list{};
      std::ranges::copy(some, list.listed.begin());
      post(turn.rank, Kind::guard_inherit, list, static_cast<std::uint32_t>(some.size()));
      left = left.subspan(some.size());
    }
  }
  stopped_.clear();
  give(turn.rank, {GivenTag::ownership, true}, turn.have);
  owner_ = valid_ = has_read_ = tried_ = false;
  return true;
}

void Replica::ask(GuardAct act, fabric::Wakeup wakeup) noexcept {
  if (asked_ != Wanted::nothing || (act == GuardAct::read && awaits_update_)) return;
  asked_ = act == GuardAct::read ? Wanted::to_read : Wanted::to_write;
  post(plan_.options.home.value(), Kind::guard_want, GuardWant{have_, ++asks_, static_cast<std::uint32_t>(self_), act},
       0, wakeup);
}

void Replica::end(const Turn& turn, Outcome outcome) noexcept {
  if (turn.waiter == nullptr) return;
  turn.waiter->outcome.store(outcome, std::memory_order_release);  // the waiter may be destroyed from here on
  woke_ = true;
}

void Replica::fail_local() noexcept {
  std::erase_if(queue_, [this](const Turn& turn) {
    if (turn.what != Turn::What::local) return false;
    end(turn, Outcome::failed);
    return true;
  });
}

// Returns true if a writer is next: it would stop at once any rank that is given a copy now.
bool Replica::is_about_to_change() const noexcept {
  if (queue_.empty()) return false;
  const Turn& next = queue_.front();
  return next.what == Turn::What::ownership ||
         (next.what == Turn::What::local && next.use == Use::write && next.waiter != nullptr);
}

}  // namespace tonari::share
