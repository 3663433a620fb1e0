#pragma once

#include "base/file_descriptor.hpp"
#include "fabric/send_queue.hpp"
#include "pager/userfaultfd.hpp"
#include "share/address_range.hpp"
#include "share/array/array.hpp"
#include "share/coherence/notice_tree.hpp"
#include "share/coherence/release.hpp"
#include "share/sync/slots.hpp"

#include <tonari/message.hpp>
#include <tonari/window.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace tonari::share {

/// One rank's shared memory: its arrays, the thread that serves their faults, and the releases and acquires of this
/// rank.
///
/// Owns:    the range of addresses, a window for synchronisation, the fault thread (where there are several hosts).
/// Threads: any, except collective calls: one thread per rank.
class SharedMemory {
 public:
  /// Collective. Throws SetupError.
  SharedMemory(Job& job, fabric::Engine& engine, Communicator& ranks, fabric::Requests& requests,
               fabric::SendQueue& send_queue);
  SharedMemory(SharedMemory&&) = delete;
  ~SharedMemory();

  /// Collective. Throws SetupError.
  std::shared_ptr<detail::Memory> make(Job& job, std::uint64_t bytes, const ArrayOptions& options);

  struct Made {
    std::shared_ptr<detail::Memory> memory;
    std::uint64_t bytes;  // as the program has requested
  };
  /// Returns the existing arrays in the order of their creation, the same in all ranks. Collective.
  [[nodiscard]] std::vector<Made> made() const;
  /// Returns the communicator of all ranks for collectives of this layer.
  [[nodiscard]] Communicator& ranks() noexcept { return ranks_; }

  Status release(Others others = Others::may_compute) noexcept;
  Status acquire() noexcept;
  Status barrier() noexcept;

  /// Takes the slot of a mutex, flag or counter, the same in all ranks. Collective. Throws SetupError.
  std::uint32_t take_slot() { return slots_->take(ranks_, window_); }
  [[nodiscard]] const std::shared_ptr<SyncSlots>& slots() const noexcept { return slots_; }
  [[nodiscard]] Window& window() noexcept { return window_; }

  // For arrays.
  [[nodiscard]] fabric::Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] fabric::Requests& requests() const noexcept { return requests_; }
  [[nodiscard]] fabric::SendQueue& send_queue() const noexcept { return send_queue_; }
  [[nodiscard]] NoticeTree& notice_tree() noexcept { return notice_tree_; }
  [[nodiscard]] pager::Userfaultfd& faults() noexcept { return *faults_; }
  [[nodiscard]] AddressRange& range() noexcept { return range_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] bool unwinds() const noexcept;
  /// Returns true if a rank of this job has died.
  [[nodiscard]] bool somebody_died() const noexcept { return engine_.session().somebody_died(); }
  /// Returns true if all other ranks have left the job: then no rank will set a flag that this rank waits for.
  [[nodiscard]] bool is_alone() const noexcept;
  void add(Array& array);
  void remove(Array& array) noexcept;
  void has_dirty() noexcept { dirty_.store(true, std::memory_order_release); }
  void has_stale() noexcept { stale_.store(true, std::memory_order_release); }
  /// Returns the fetches of the fault thread.
  [[nodiscard]] Fetches& fetches() noexcept { return fetches_; }

  /// Calls visit(array), and keeps the array from being destroyed meanwhile. Returns false if there is none.
  template <class Visit>
  bool with(std::uint32_t number, Visit visit) noexcept {
    return visit_if([number](const Array& each) { return each.number() == number; }, visit);
  }
  template <class Visit>
  bool with_at(const void* byte, Visit visit) noexcept {
    return visit_if([byte](const Array& each) { return each.contains(byte); }, visit);
  }

 private:
  template <class Is, class Visit>
  bool visit_if(Is is, Visit visit) noexcept {
    Array* found = nullptr;
    {
      const std::lock_guard guard(arrays_lock_);
      const auto place = std::ranges::find_if(arrays_, [&](const Array* each) { return is(*each); });
      if (place == arrays_.end()) return false;
      found = *place;
      found->users().fetch_add(1, std::memory_order_relaxed);  // while the lock keeps remove() out
    }
    visit(*found);
    found->users().fetch_sub(1, std::memory_order_release);  // publishes the changes to the array
    return true;
  }
  template <class Work>
  Status work_on_all(std::atomic<bool>& some, Others others, Work work) noexcept;
  void start_fault_thread();
  void stop_fault_thread() noexcept;
  void serve_faults() noexcept;
  void serve_fault(const pager::Fault& fault) noexcept;

  fabric::Engine& engine_;
  Communicator& ranks_;
  fabric::Requests& requests_;
  fabric::SendQueue& send_queue_;
  const int rank_;
  const int size_;
  const bool spread_;  // the job has several hosts
  const int exceptions_;
  AddressRange range_;
  Window window_;
  struct MadeOnce {
    std::weak_ptr<detail::Memory> memory;
    std::uint64_t bytes;
  };
  std::vector<MadeOnce> made_;  // changed by collective calls only
  std::uint32_t arrays_made_ = 0;
  const std::shared_ptr<SyncSlots> slots_;

  SpinLock arrays_lock_;  // protects arrays_
  std::vector<Array*> arrays_;

  std::mutex epoch_mutex_;                   // held during a release or acquire
  std::atomic<std::uint32_t> under_way_{0};  // 1 while a thread has taken the work and is not done
  std::atomic<bool> dirty_{false};           // release and acquire: orders the arrays' own sets
  std::atomic<bool> stale_{false};
  std::optional<Release> release_;
  NoticeTree notice_tree_{*this};

  Fetches fetches_{engine_, fabric::Waiter::faults};
  std::optional<pager::Userfaultfd> faults_;
  FileDescriptor stop_doorbell_;
  std::thread fault_thread_;
};

}  // namespace tonari::share
