#pragma once

#include "fabric/engine.hpp"
#include "share/array/page_block.hpp"
#include "share/coherence/heads.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace tonari::share {

class Array;

/// One request for adjacent pages of a block.
class Fetch final : public PendingRequest {
 public:
  static constexpr std::size_t pages_max = fabric::bulk_tail_bytes_max / page_bytes;

  Array* array = nullptr;
  std::uint64_t first = 0;
  std::size_t count = 0;
  Touch touch = Touch::read;

 private:
  void answered() noexcept override;
};

/// The fetches of one thread, some tens of them under way at once.
///
/// Threads: one, which waits as `waiter`. A program's prefetch often comes after a barrier, when other ranks are
///          prefetching too, so it waits a moment before it interrupts the ranks that it asks.
class Fetches {
 public:
  Fetches(fabric::Engine& engine, fabric::Waiter waiter) noexcept
      : engine_(engine),
        waiter_(waiter),
        wakeup_(waiter == fabric::Waiter::program ? fabric::Wakeup::later : fabric::Wakeup::now) {}
  Fetches(Fetches&&) = delete;
  ~Fetches() { wait(); }

  [[nodiscard]] fabric::Waiter waiter() const noexcept { return waiter_; }
  [[nodiscard]] fabric::Wakeup wakeup() const noexcept { return wakeup_; }
  /// Returns a free fetch; waits until there is one.
  [[nodiscard]] Fetch& next() noexcept;
  [[nodiscard]] bool are_done() const noexcept { return done() == fetches_.size(); }
  /// Waits until one more fetch is done, or all are.
  void wait_for_one() noexcept;
  /// Waits until all fetches are done.
  void wait() noexcept;

 private:
  [[nodiscard]] std::size_t done() const noexcept;
  template <class Ready>
  void wait_until(Ready ready) noexcept;
  void lose_patience() noexcept;

  fabric::Engine& engine_;
  const fabric::Waiter waiter_;
  fabric::Wakeup wakeup_;
  std::array<Fetch, 32> fetches_;
};

}  // namespace tonari::share
