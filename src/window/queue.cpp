#include <tonari/queue.hpp>

#include "fabric/wait.hpp"
#include "window/descriptor_queue.hpp"
#include "window/window_runtime.hpp"

namespace tonari {

using window::DescriptorQueue;

namespace {

window::Worker& worker_of(DescriptorQueue& work) noexcept { return work.state().runtime().worker(); }

// Waits like the queue: long.
template <class Ready>
void wait_for_work(DescriptorQueue& work, Ready ready) noexcept {
  fabric::wait_until(work.state().runtime().engine(), ready, job::Wait::window, -1);
}

}  // namespace

Queue::Queue(Window& window) : work_(std::make_shared<DescriptorQueue>(window::WindowState::share(window), nullptr)) {
  worker_of(*work_).enter(*work_);
}
Queue::Queue(Window& window, std::atomic<std::uint64_t>& completions)
    : work_(std::make_shared<DescriptorQueue>(window::WindowState::share(window), &completions)) {
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
