#pragma once

#include "harness/one_sided_wire.hpp"
#include "wires/tonari.hpp"

#include <tonari/job.hpp>
#include <tonari/queue.hpp>
#include <tonari/window.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace tonari::bench {

/// tonari as a Wire with windows, with blocking calls: a pull is complete when it returns.
class TonariOneSidedWire : public TonariWire {
 public:
  class Window {
   public:
    explicit Window(tonari::Window window) : window_(std::move(window)) {}

    std::span<std::byte> local() const noexcept { return window_.local(); }
    void push(std::span<const std::byte> from, int rank, std::size_t offset) {
      check(window_.push(window_.at(JobRank{rank}, offset), from));
    }
    void flush(int rank) { check(window_.flush(JobRank{rank})); }
    void flush() { check(window_.flush()); }
    void pull(std::span<std::byte> to, int rank, std::size_t offset) {
      check(window_.pull(to, window_.at(JobRank{rank}, offset)));
    }
    void finish_pulls(int) const noexcept {}
    // Mapped memory is written at once; for other memory, descriptors are collected and posted together.
    void start_push(std::span<const std::byte> from, int rank, std::size_t offset) {
      start(Descriptor::push(window_.at(JobRank{rank}, offset), from), from.size());
    }
    void start_pull(std::span<std::byte> to, int rank, std::size_t offset) {
      start(Descriptor::pull(to, window_.at(JobRank{rank}, offset)), to.size());
    }
    void finish_started() {
      if (started_ == 0) return;
      check(queue_->post(std::span(descriptors_).first(std::exchange(started_, 0))));
      check(queue_->wait_all());
    }
    // Descriptors for any memory, which are posted together and run while the caller computes.
    void post(std::span<const Descriptor> descriptors) {
      std::ranges::copy(descriptors, descriptors_.begin());
      check(queue_->post(std::span(descriptors_).first(descriptors.size())));
    }
    void finish_posted() { check(queue_->wait_all()); }
    Descriptor pushing(std::span<const std::byte> from, int rank, std::size_t offset) const {
      return Descriptor::push(window_.at(JobRank{rank}, offset), from);
    }
    Descriptor pulling(std::span<std::byte> to, int rank, std::size_t offset) const {
      return Descriptor::pull(to, window_.at(JobRank{rank}, offset));
    }
    void multicast(std::span<const std::byte> from, std::size_t offset) {
      check(window_.multicast_to_all(offset, from));
    }
    std::uint64_t fetch_add(std::uint64_t value, int rank, std::size_t offset) {
      return before(window_.fetch_add(window_.at(JobRank{rank}, offset), value));
    }
    std::uint64_t compare_and_swap(std::uint64_t expected, std::uint64_t desired, int rank, std::size_t offset) {
      return before(window_.compare_and_swap(window_.at(JobRank{rank}, offset), expected, desired));
    }
    void lock(int rank) { check(window_.lock(JobRank{rank})); }
    void unlock(int rank) { check(window_.unlock(JobRank{rank})); }

   private:
    static std::uint64_t before(const Result<std::uint64_t>& fetched) {
      check(fetched.status);
      return fetched.value;
    }

    void start(const Descriptor& descriptor, std::size_t bytes) {
      if (window_.direct(descriptor.address, bytes) != nullptr) {
        check(descriptor.primitive == Primitive::push ? window_.push(descriptor.address, {descriptor.local, bytes})
                                                      : window_.pull({descriptor.local, bytes}, descriptor.address));
        return;
      }
      if (started_ == descriptors_.size()) finish_started();
      descriptors_[started_++] = descriptor;
    }

    tonari::Window window_;
    std::unique_ptr<Queue> queue_ = std::make_unique<Queue>(window_);
    std::array<Descriptor, 16> descriptors_{};
    std::size_t started_ = 0;
  };

  class Alone {
   public:
    explicit Alone(Job& job) noexcept : job_(job) {}

    void expose(std::span<std::byte> memory) { window_.emplace(tonari::Window::alone(job_, memory)); }
    void expose_pinned(std::span<std::byte> memory) {
      window_.emplace(tonari::Window::alone(job_, memory, {.pinned = true}));
    }
    void withdraw() { window_.reset(); }

   private:
    Job& job_;
    std::optional<tonari::Window> window_;
  };

  TonariOneSidedWire(Job& job, Communicator& communicator) noexcept : TonariWire(communicator), job_(job) {}

  Window allocate(std::size_t bytes) { return Window(tonari::Window(job_, bytes)); }
  Window allocate_with_locks(std::size_t bytes) { return allocate(bytes); }  // every window has locks
  Window expose(std::span<std::byte> memory) { return Window(tonari::Window(job_, memory)); }
  Window expose_pinned(std::span<std::byte> memory) { return Window(tonari::Window(job_, memory, {.pinned = true})); }
  Alone prepare_alone() { return Alone(job_); }

 private:
  Job& job_;
};

static_assert(AtomicWire<TonariOneSidedWire> && LockWire<TonariOneSidedWire>);
static_assert(MulticastWire<TonariOneSidedWire> && PinningWire<TonariOneSidedWire>);

}  // namespace tonari::bench
