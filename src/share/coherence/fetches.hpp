#pragma once

#include "fabric/engine.hpp"
#include "share/array/page_block.hpp"
#include "share/coherence/requests.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace tonari::share {

class Array;

/// Pages that were asked for at once, neighbours of one block.
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

/// Those that one thread has begun: some tens on their way at once.
///
/// Threads: one, which waits as `waiter`. What a program's asks for ahead is asked of ranks that often do the same just
///          now, as behind a barrier: it interrupts none of them for a moment.
class Fetches {
 public:
  Fetches(fabric::Engine& engine, Waiter waiter) noexcept
      : engine_(engine),
        waiter_(waiter),
        wakeup_(waiter == Waiter::program ? fabric::Wakeup::later : fabric::Wakeup::now) {}
  Fetches(Fetches&&) = delete;
  ~Fetches() { wait(); }

  [[nodiscard]] Waiter waiter() const noexcept { return waiter_; }
  [[nodiscard]] fabric::Wakeup wakeup() const noexcept { return wakeup_; }
  /// One that is free; waits for it.
  [[nodiscard]] Fetch& next() noexcept;
  [[nodiscard]] bool are_done() const noexcept { return done() == fetches_.size(); }
  /// Until one more is done, or all are.
  void wait_for_one() noexcept;
  /// Until all are.
  void wait() noexcept;

 private:
  [[nodiscard]] std::size_t done() const noexcept;
  template <class Ready>
  void wait_until(Ready ready) noexcept;
  void lose_patience() noexcept;

  fabric::Engine& engine_;
  const Waiter waiter_;
  fabric::Wakeup wakeup_;
  std::array<Fetch, 32> fetches_;
};

}  // namespace tonari::share
