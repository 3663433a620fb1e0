#include <tonari/queue.hpp>

#include "fabric/wait.hpp"
#include "window/descriptor_queue.hpp"
#include "window/window_runtime.hpp"

namespace tonari {

using window::DescriptorQueue;

namespace {

Descriptor copy(Primitive primitive, GlobalAddress address, const std::byte* local, std::size_t bytes) noexcept {
  Descriptor made;
  made.primitive = primitive;
  made.address = address;
  made.local = const_cast<std::byte*>(local);  // only read if it was const
  made.bytes = bytes;
  return made;
}

window::Worker& worker_of(DescriptorQueue& work) noexcept { return work.state().runtime().worker(); }

// Waits like the queue: long.
template <class Ready>
void wait_for_work(DescriptorQueue& work, Ready ready) noexcept {
  fabric::wait_until(work.state().runtime().engine(), ready, job::Wait::window, -1);
}

}  // namespace

Descriptor Descriptor::pull(std::span<std::byte> to, GlobalAddress from) noexcept {
  return copy(Primitive::pull, from, to.data(), to.size());
}

// A twin of another length is refused like a twin at no address.
Descriptor Descriptor::pull_with_twin(std::span<std::byte> to, std::span<std::byte> twin, GlobalAddress from) noexcept {
  Descriptor made = copy(Primitive::pull_with_twin, from, to.data(), to.size());
  made.twin = twin.size() == to.size() ? twin.data() : nullptr;
  return made;
}

Descriptor Descriptor::pull_regions(std::span<std::byte> to, GlobalAddress from,
                                    std::span<const Region> regions) noexcept {
  Descriptor made = copy(Primitive::pull_regions, from, to.data(), to.size());
  made.regions = regions;
  return made;
}

Descriptor Descriptor::push(GlobalAddress to, std::span<const std::byte> from) noexcept {
  return copy(Primitive::push, to, from.data(), from.size());
}

Descriptor Descriptor::push_regions(GlobalAddress to, std::span<const std::byte> from,
                                    std::span<const Region> regions) noexcept {
  Descriptor made = copy(Primitive::push_regions, to, from.data(), from.size());
  made.regions = regions;
  return made;
}

Descriptor Descriptor::push_diff(GlobalAddress to, std::span<const std::byte> from,
                                 std::span<const std::byte> twin) noexcept {
  Descriptor made = copy(Primitive::push_diff, to, from.data(), from.size());
  made.twin = twin.size() == from.size() ? const_cast<std::byte*>(twin.data()) : nullptr;  // only read
  return made;
}

Descriptor Descriptor::push_notified(GlobalAddress to, std::span<const std::byte> from,
                                     std::uint32_t notification) noexcept {
  Descriptor made = copy(Primitive::push_notified, to, from.data(), from.size());
  made.number = notification;
  return made;
}

Descriptor Descriptor::multicast(std::span<const GlobalAddress> to, std::span<const std::byte> from) noexcept {
  Descriptor made = copy(Primitive::multicast, {}, from.data(), from.size());
  made.targets = to;
  return made;
}

Descriptor Descriptor::multicast_regions(std::span<const GlobalAddress> to, std::span<const std::byte> from,
                                         std::span<const Region> regions) noexcept {
  Descriptor made = copy(Primitive::multicast_regions, {}, from.data(), from.size());
  made.targets = to;
  made.regions = regions;
  return made;
}

Descriptor Descriptor::lock(JobRank home, std::uint32_t number, LockMode mode) noexcept {
  Descriptor made;
  made.primitive = Primitive::lock;
  made.address.rank = home;
  made.number = number;
  made.mode = mode;
  return made;
}

Descriptor Descriptor::unlock(JobRank home, std::uint32_t number) noexcept {
  Descriptor made = lock(home, number);
  made.primitive = Primitive::unlock;
  return made;
}

Descriptor Descriptor::barrier() noexcept {
  Descriptor made;
  made.primitive = Primitive::barrier;
  return made;
}

Descriptor Descriptor::barrier_with_multicast(std::uint64_t offset, std::span<const std::byte> from) noexcept {
  return copy(Primitive::barrier_with_multicast, {0, JobRank{}, offset}, from.data(), from.size());
}

Descriptor Descriptor::flush() noexcept {
  Descriptor made;
  made.primitive = Primitive::flush;
  return made;
}

Queue::Queue(Window& window) : work_(std::make_shared<DescriptorQueue>(window.state_, nullptr)) {
  worker_of(*work_).enter(*work_);
}
Queue::Queue(Window& window, std::atomic<std::uint64_t>& completions)
    : work_(std::make_shared<DescriptorQueue>(window.state_, &completions)) {
  worker_of(*work_).enter(*work_);
}
Queue::~Queue() {
  (void)wait_all();
  worker_of(*work_).leave(*work_);
}

Status Queue::post(std::span<Descriptor> descriptors) noexcept {
  const Status status = work_->post(descriptors);
  if (status != Status::ok) return status;
  work_->try_run(DescriptorQueue::Effort::short_ones);
  if (!work_->is_empty()) (void)worker_of(*work_).wake();  // without a worker, poll() and wait() run the queue
  return Status::ok;
}

Descriptor* Queue::poll() noexcept {
  if (Descriptor* const oldest = work_->take_complete()) return oldest;
  if (work_->is_empty()) return nullptr;
  work_->state().runtime().engine().progress();
  work_->try_run(DescriptorQueue::Effort::short_ones);
  // Long work is left to the worker. It may have looked while this thread ran the queue, and gone to sleep.
  if (work_->can_run() && !worker_of(*work_).wake()) work_->try_run(DescriptorQueue::Effort::all);
  return work_->take_complete();
}

Descriptor* Queue::wait() noexcept {
  for (;;) {
    const bool is_last = work_->is_empty();  // first: a descriptor that completes now is returned below
    if (Descriptor* const oldest = work_->take_complete()) return oldest;
    if (is_last) return nullptr;
    work_->try_run(DescriptorQueue::Effort::all);
    wait_for_work(*work_, [this] { return work_->ready(); });
  }
}

Status Queue::wait_all() noexcept {
  while (!work_->is_empty()) {
    work_->try_run(DescriptorQueue::Effort::all);
    wait_for_work(*work_, [this] { return work_->is_empty() || work_->can_run(); });
  }
  while (work_->take_complete() != nullptr) {
  }
  return work_->take_failure();
}

}  // namespace tonari
