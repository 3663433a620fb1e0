#pragma once

#include "base/clock.hpp"
#include "base/futex.hpp"
#include "base/mapping.hpp"
#include "pager/fault_inbox.hpp"
#include "pager/own_faults.hpp"
#include "pager/own_space.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>

namespace tonari::test {

/// This process's address space with one region, whose faults the threads serve that meet them, in a handler of SIGBUS.
/// One at a time. `stored` is the memory of the region's source.
class SelfServingSpace : public pager::OwnSpace {
 public:
  SelfServingSpace(std::size_t buffers, std::span<const std::byte> stored)
      : OwnSpace(buffers, {.touch = pager::Userfaultfd::Touch::signals, .protects = true}), stored_(stored) {
    current = this;
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO;
    std::memset(&action.sa_mask, 0xff, sizeof action.sa_mask);  // also libc's own signals
    ::sigaction(SIGBUS, &action, &before_);
  }
  ~SelfServingSpace() override {
    ::sigaction(SIGBUS, &before_, nullptr);
    current = nullptr;
  }

  std::span<const pager::Fault> read_faults() noexcept override { return inbox_.read(); }
  bool wait_for_faults() noexcept override { return inbox_.wait(); }
  void stop_waiting() noexcept override { inbox_.stop(); }
  void wake_waiting(pager::Address /*start*/, const std::atomic<std::uint32_t>& word) noexcept override {
    futex_wake(word, 0x7fffffff);
  }
  std::span<std::byte> tables(pager::Address start, std::size_t bytes, std::size_t table_bytes) override {
    memory_ = Mapping::of_sparse_zeros(table_bytes, "a test's tables");
    tables_ = pager::RegionTables(start, bytes, memory_.bytes().data());
    has_tables_.store(true, std::memory_order_release);
    return memory_.bytes();
  }
  std::uint64_t reference_to(std::span<const std::byte> bytes) noexcept override {
    return bytes.empty() ? 0 : static_cast<std::uint64_t>(bytes.data() - stored_.data()) + 1;
  }

 private:
  struct System {
    pager::Userfaultfd& faults;
    pager::Progress copy(pager::Address to, const std::byte* from, std::size_t bytes) const noexcept {
      auto answer = pager::Answer::ok;
      std::size_t done = 0;
      for (; done < bytes && answer == pager::Answer::ok; done += pager::page_bytes) {
        answer = faults.copy(to + done, from + done, pager::page_bytes);
      }
      return {answer == pager::Answer::ok ? done : done - pager::page_bytes, answer};
    }
    pager::Answer zero(pager::Address to) const noexcept { return faults.zero(to, pager::page_bytes); }
    static std::uint64_t now_ns() noexcept { return monotonic_ns(); }
    static std::uint32_t thread() noexcept { return static_cast<std::uint32_t>(::gettid()); }
    static void yield() noexcept { std::this_thread::yield(); }
    static void wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen) noexcept {
      futex_wait(word, seen, std::chrono::hours(1));
    }
    static void wake(const std::atomic<std::uint32_t>& word) noexcept { futex_wake(word, 0x7fffffff); }
  };

  static void on_signal(int /*signal*/, siginfo_t* info, void* /*context*/) {
    const int error = errno;
    const auto at = reinterpret_cast<pager::Address>(info->si_addr);
    const bool is_fault = current != nullptr && info->si_code == BUS_ADRERR;
    if (!is_fault || !current->has_tables_.load(std::memory_order_acquire) || !current->tables_.contains(at)) {
      std::abort();
    }
    static thread_local pager::RecentFaults recent;
    pager::OwnFaults<System> faults({current->faults()}, current->stored_.data(), current->tally(), current->passed_);
    if (!faults.serve(current->tables_, at, recent)) std::abort();
    errno = error;
  }

  static inline SelfServingSpace* current = nullptr;

  std::span<const std::byte> stored_;
  Mapping memory_;
  pager::RegionTables tables_;
  // Acquire and release: a thread that uses the memory already, when it becomes a region, reads the tables in its first
  // fault. Otherwise only the kernel orders the two.
  std::atomic<bool> has_tables_{false};
  pager::PassedFaults passed_;
  pager::FaultInbox inbox_{passed_, tally()};
  struct sigaction before_ {};
};

}  // namespace tonari::test
