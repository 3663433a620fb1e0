#include "window/descriptor_queue.hpp"

#include "base/futex.hpp"
#include "job/group.hpp"
#include "job/signals.hpp"
#include "window/window_runtime.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace tonari::window {

using fabric::Step;

namespace {

void set_state(Descriptor& descriptor, std::uint32_t state) noexcept {
  std::atomic_ref(descriptor.state).store(state, std::memory_order_release);  // pairs with Descriptor::complete()
}

// Appends to a list that is linked through the descriptors.
void append(Descriptor*& first, Descriptor*& last, Descriptor& descriptor) noexcept {
  descriptor.next = nullptr;
  (first != nullptr ? last->next : first) = &descriptor;
  last = &descriptor;
}

bool may_be_posted(Descriptor& descriptor) noexcept {
  // Acquire, pairs with set_state(): if it is in another queue, a thread may be completing it just now.
  const std::uint32_t state = std::atomic_ref(descriptor.state).load(std::memory_order_acquire);
  return descriptor.primitive > Primitive::none && descriptor.primitive <= Primitive::flush &&
         state == Descriptor::idle;
}

std::span<std::byte> local(const Descriptor& descriptor) noexcept { return {descriptor.local, descriptor.bytes}; }

}  // namespace

Status DescriptorQueue::post(std::span<Descriptor> descriptors) noexcept {
  for (auto each = descriptors.begin(); each != descriptors.end(); ++each) {
    if (!may_be_posted(*each)) {
      while (each != descriptors.begin()) (--each)->state = Descriptor::idle;
      return Status::invalid;
    }
    each->state = Descriptor::under_way;
  }
  const std::lock_guard guard(lock_);
  for (Descriptor& each : descriptors) append(first_, last_, each);
  return Status::ok;
}

bool DescriptorQueue::is_empty() const noexcept {
  const std::lock_guard guard(lock_);
  return first_ == nullptr;
}

Descriptor* DescriptorQueue::take_complete() noexcept {
  Descriptor* oldest = nullptr;
  {
    const std::lock_guard guard(lock_);
    oldest = first_complete_;
    if (oldest == nullptr) return nullptr;
    first_complete_ = oldest->next;
  }
  oldest->state = Descriptor::idle;
  return oldest;
}

Status DescriptorQueue::take_failure() noexcept {
  const std::lock_guard guard(lock_);
  return std::exchange(failure_, Status::ok);
}

bool DescriptorQueue::can_run_locked() const noexcept {
  if (first_ == nullptr || running_.load(std::memory_order_relaxed)) return false;  // the running thread looks again
  switch (waits_) {
    case Waits::for_lock: return request_.lock->ready(request_);
    case Waits::for_barrier: return state_->barrier().ready(meeting_);
    case Waits::for_nothing: break;
  }
  return true;
}

void DescriptorQueue::try_run(Effort effort) noexcept {
  do {
    // acquire: the state that the last running thread left
    if (running_.exchange(true, std::memory_order_acquire)) return;
    run(effort);
    running_.store(false, std::memory_order_release);
  } while (effort == Effort::all && can_run());
}

void DescriptorQueue::run(Effort effort) noexcept {
  Waits waited = Waits::for_nothing;
  {
    const std::lock_guard guard(lock_);
    waited = std::exchange(waits_, Waits::for_nothing);
  }
  for (Descriptor* descriptor = oldest(); descriptor != nullptr; descriptor = oldest()) {
    const bool resumed = waited != Waits::for_nothing;
    if (!resumed && effort == Effort::short_ones && is_long(*descriptor)) return;
    if (!resumed && execute_together(*descriptor)) continue;
    const Waits before = std::exchange(waited, Waits::for_nothing);
    if (!(resumed ? resume(*descriptor, before) : execute(*descriptor))) return;
    complete(*descriptor);
  }
}

Descriptor* DescriptorQueue::oldest() noexcept {
  const std::lock_guard guard(lock_);
  return first_;
}

bool DescriptorQueue::is_long(const Descriptor& descriptor) const noexcept {
  switch (descriptor.primitive) {
    case Primitive::lock:
    case Primitive::unlock:
    case Primitive::barrier:
    case Primitive::flush: return false;
    case Primitive::multicast:
    case Primitive::multicast_regions: {
      const std::uint64_t bytes = descriptor.bytes * descriptor.targets.size();
      return std::ranges::any_of(descriptor.targets,
                                 [&](const GlobalAddress& each) { return state_->is_long(each, bytes); });
    }
    case Primitive::barrier_with_multicast: {
      const JobRank self = state_->group().at(Rank{state_->members().self()});
      return state_->is_long({state_->number(), self, 0}, descriptor.bytes * state_->members().size()) ||
             (state_->members().spans_hosts() && descriptor.bytes != 0);
    }
    default: return state_->is_long(descriptor.address, descriptor.bytes);
  }
}

// Returns true if the descriptor is done.
bool DescriptorQueue::execute(Descriptor& descriptor) noexcept {
  switch (descriptor.primitive) {
    case Primitive::lock: return begin_lock(descriptor);
    case Primitive::barrier:
    case Primitive::barrier_with_multicast: return begin_barrier(descriptor);
    default: descriptor.status = perform(descriptor); return true;
  }
}

// Executes and completes `first` together with the next descriptors that fit into one system call. Returns false if
// there are none.
bool DescriptorQueue::execute_together(Descriptor& first) noexcept {
  const Primitive primitive = first.primitive;
  if (primitive != Primitive::pull && primitive != Primitive::push) return false;
  if (!state_->is_elsewhere(first.address)) return false;
  WindowState::Batch batch(*state_, primitive == Primitive::pull ? Rights::read : Rights::write);
  {
    const std::lock_guard guard(lock_);
    for (Descriptor* each = &first; each != nullptr && each->primitive == primitive; each = each->next) {
      if (!batch.add(each->address, local(*each))) break;
    }
  }
  if (batch.size() < 2) return false;
  const std::size_t copied = batch.copy();
  Descriptor* each = &first;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Descriptor* const next = i + 1 < batch.size() ? each->next : nullptr;  // once complete, it belongs to the caller
    each->status = i < copied ? Status::ok : perform(*each);
    complete(*each);
    each = next;
  }
  return true;
}

bool DescriptorQueue::resume(Descriptor& descriptor, Waits waited) noexcept {
  if (waited == Waits::for_lock) return step_lock(descriptor);
  return step_barrier(descriptor);
}

bool DescriptorQueue::begin_lock(Descriptor& descriptor) noexcept {
  descriptor.status =
      state_->locks().begin(request_, descriptor.address.rank.value(), descriptor.number, descriptor.mode);
  return descriptor.status != Status::ok || step_lock(descriptor);
}

bool DescriptorQueue::step_lock(Descriptor& descriptor) noexcept {
  if (!request_.lock->step(request_)) return wait_for(Waits::for_lock);
  descriptor.status = Locks::status_of(request_);
  return true;
}

bool DescriptorQueue::begin_barrier(Descriptor& descriptor) noexcept {
  const bool gives = descriptor.primitive == Primitive::barrier_with_multicast && descriptor.bytes != 0;
  descriptor.status = gives ? state_->multicast_to_all(descriptor.address.offset, local(descriptor)) : Status::ok;
  const Status begun = state_->barrier().begin(meeting_);
  if (begun != Status::ok) descriptor.status = begun;
  return begun != Status::ok || step_barrier(descriptor);
}

bool DescriptorQueue::step_barrier(Descriptor& descriptor) noexcept {
  if (!state_->barrier().step(meeting_)) return wait_for(Waits::for_barrier);
  if (descriptor.status == Status::ok) descriptor.status = meeting_.status;
  return true;
}

bool DescriptorQueue::wait_for(Waits what) noexcept {
  const std::lock_guard guard(lock_);
  waits_ = what;
  return false;
}

// Executes a descriptor that does not wait for other ranks to come or leave.
Status DescriptorQueue::perform(Descriptor& d) noexcept {
  WindowState& state = *state_;
  switch (d.primitive) {
    case Primitive::pull: return state.pull(local(d), d.address);
    case Primitive::pull_with_twin: return state.pull_with_twin(local(d), {d.twin, d.bytes}, d.address);
    case Primitive::pull_regions: return state.pull_regions(local(d), d.address, d.regions);
    case Primitive::push: return state.push(d.address, local(d));
    case Primitive::push_regions: return state.push_regions(d.address, local(d), d.regions);
    case Primitive::push_notified: return state.push_notified(d.address, local(d), d.number);
    case Primitive::multicast: return state.multicast(d.targets, local(d));
    case Primitive::multicast_regions: return state.multicast_regions(d.targets, local(d), d.regions);
    case Primitive::flush: return state.flush();
    case Primitive::unlock: (void)state.flush(); return state.locks().unlock(d.address.rank.value(), d.number);
    case Primitive::push_diff: {
      const Result<std::uint64_t> difference = state.push_diff(d.address, local(d), {d.twin, d.bytes});
      d.result = difference.value;
      return difference.status;
    }
    case Primitive::atomic: {
      const auto [status, before] = state.apply(d.address, d.words);
      d.result = before;
      return status;
    }
    default: return Status::invalid;
  }
}

void DescriptorQueue::complete(Descriptor& descriptor) noexcept {
  {
    const std::lock_guard guard(lock_);
    first_ = descriptor.next;
    const bool failed = descriptor.status != Status::ok && descriptor.status != Status::holder_died;
    if (failed && failure_ == Status::ok) failure_ = descriptor.status;
    if (completions_ == nullptr) append(first_complete_, last_complete_, descriptor);
    set_state(descriptor, completions_ == nullptr ? Descriptor::unreturned : Descriptor::idle);
    // Within the lock: a thread that finds the queue empty also finds the descriptor counted. The counter may be
    // destroyed with the queue.
    if (completions_ != nullptr) completions_->fetch_add(1, std::memory_order_release);
  }
  state_->runtime().engine().wake_self();  // a thread of this rank may sleep until then
}

// Returns the next queue to run, or nullptr at the end. The queue stays until end().
DescriptorQueue* Worker::begin(std::size_t index) noexcept {
  const std::lock_guard guard(mutex_);
  DescriptorQueue* const next = index < works_.size() ? works_[index] : nullptr;
  runs_ = next;
  return next;
}

// Returns true if the queue is empty.
bool Worker::end(const DescriptorQueue& work) noexcept {
  const std::lock_guard guard(mutex_);
  runs_ = nullptr;
  return work.is_empty();
}

// Runs all queues as far as possible.
struct Worker::Round final : fabric::Watched {
  explicit Round(Worker& of) noexcept : worker(of) {}

  Step step() noexcept {
    // Read before the queues: a later change makes ready() true. Acquire: pairs with the release of each change
    // (wake(), leave()), which publishes the posted descriptors.
    seen = worker.changes_.load(std::memory_order_acquire);
    bool all_empty = true;
    std::size_t index = 0;
    // A queue that leaves counts as a change, so there is another round.
    while (DescriptorQueue* const work = worker.begin(index++)) {
      work->try_run(DescriptorQueue::Effort::all);
      all_empty = worker.end(*work) && all_empty;
    }
    return all_empty || worker.stopping_.load(std::memory_order_relaxed) ? Step::done : Step::waiting;
  }
  [[nodiscard]] bool ready() const noexcept override {
    if (worker.changes_.load(std::memory_order_acquire) != seen) return true;  // acquire: as in step()
    const std::lock_guard guard(worker.mutex_);
    return std::ranges::any_of(worker.works_, [](const DescriptorQueue* each) { return each->can_run(); });
  }
  bool attach(fabric::Sleeper* sleeper) noexcept { return worker.engine_.watch(*this, sleeper); }
  void slow() noexcept {}

  Worker& worker;
  std::uint32_t seen = 0;
};

Worker::~Worker() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_relaxed);  // relaxed: published by the doorbell
  ring_doorbell(changes_);
  engine_.wake_self();
  thread_.join();
}

void Worker::enter(DescriptorQueue& work) {
  const std::lock_guard guard(mutex_);
  works_.push_back(&work);
}

bool Worker::wake() noexcept {
  {
    const std::lock_guard guard(mutex_);
    if (!thread_.joinable()) {
      try {
        const job::AllSignalsBlocked none_for_the_new_thread;
        thread_ = std::thread([this] { run(); });
      } catch (const std::system_error&) {
        return false;
      }
    }
  }
  ring_doorbell(changes_);
  engine_.wake_self();
  return true;
}

void Worker::leave(const DescriptorQueue& work) noexcept {
  for (;; ::sched_yield()) {
    const std::lock_guard guard(mutex_);
    // Release: pairs with step() and run(). works_ itself is guarded by the mutex; the new count causes another round.
    if (std::erase(works_, &work) != 0) changes_.fetch_add(1, std::memory_order_release);
    if (runs_ != &work) return;
  }
}

void Worker::run() noexcept {
  ::pthread_setname_np(::pthread_self(), "tonari-worker");
  constexpr std::chrono::seconds sleep_max{1};  // limits the harm of a lost wake
  for (;;) {
    // Acquire: pairs with the release of each change, which also publishes stopping_.
    const std::uint32_t seen = changes_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    Round round(*this);
    if (round.step() == Step::waiting) {
      engine_.wait(round);
    } else {
      futex_wait(changes_, seen, sleep_max);
    }
  }
}

}  // namespace tonari::window
