#pragma once

#include "pager/region.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace tonari::pager {

/// A request from the fault thread to the movers. It counts as a user of its region until it is done.
struct Request {
  enum class What : std::uint8_t {
    block,        ///< A thread waits for `page` of this block, which is to be read at once. The block is held for it.
    block_ahead,  ///< This block will be wanted soon.
    page_ahead,   ///< This page will be wanted soon.
  };
  What what;
  Region* region;
  std::size_t block;
  std::size_t page;
  std::uint64_t read_ns = 0;  // block: when the thread's fault was read
  std::uint32_t thread = 0;   // block: the thread
  bool is_counted = false;    // block: the block's word counts its waiting, too (Fault::holds_block)
};

/// Threads: add() and ask_for_room() by any, next() by the movers.
/// Costs:   a lock, and a system call where a mover sleeps; no allocation.
class Requests {
 public:
  /// Returns false if the queue is full. For a read-ahead that does no harm.
  bool add(const Request& request) noexcept;
  /// Tells a mover that there is less room than there should be.
  void ask_for_room() noexcept;
  /// Refuses new requests; next() still returns the queued ones.
  void stop() noexcept;

  struct Work {
    std::optional<Request> request;
    bool stopped = false;
  };
  static constexpr std::chrono::milliseconds forever = std::chrono::hours(1);
  /// Returns the most urgent request. Waits for a request or for ask_for_room(), but not much longer than `patience`.
  Work next(std::chrono::milliseconds patience) noexcept;

 private:
  static constexpr std::size_t requests_max = 64;

  std::optional<Request> take(bool waited_for) noexcept;
  void wake_one() noexcept;

  // No condition variable: a forked child that destroyed it would wait for the parent's threads.
  std::atomic<std::uint32_t> doorbell_{0};        // rung when something changes while a mover sleeps
  std::mutex mutex_;                              // guards all members below
  std::array<Request, requests_max> requests_{};  // in order of arrival
  std::size_t count_ = 0;
  std::size_t asleep_ = 0;
  bool room_wanted_ = false;
  bool stopped_ = false;
};

}  // namespace tonari::pager
