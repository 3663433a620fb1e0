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

/// What the fault thread asks of the movers. Each request counts as a user of its region until it is done.
struct Request {
  enum class What : std::uint8_t {
    block,        ///< A thread waits for `page` of this block, which is to come at once. The block is held for it.
    block_ahead,  ///< This block will be wanted soon.
    page_ahead,   ///< This page will.
  };
  What what;
  Region* region;
  std::size_t block;
  std::size_t page;
};

/// Threads: add() and ask_for_room() by any, next() by the movers.
/// Costs:   a lock, and a system call where a mover sleeps; no allocation.
class Requests {
 public:
  /// False: there is no room for it, which for what is read ahead does not matter.
  bool add(const Request& request) noexcept;
  /// There is less room than there should be.
  void ask_for_room() noexcept;
  /// Takes no more; those that are there are still given out.
  void stop() noexcept;

  struct Work {
    std::optional<Request> request;
    bool stopped = false;
  };
  static constexpr std::chrono::milliseconds forever = std::chrono::hours(1);
  /// The most urgent. Waits for one, or for ask_for_room(), but not much longer than that.
  Work next(std::chrono::milliseconds patience) noexcept;

 private:
  static constexpr std::size_t requests_max = 64;

  std::optional<Request> take(bool waited_for) noexcept;
  void wake_one() noexcept;

  // No condition variable: to destroy one in a forked child would wait for the parent's threads.
  std::atomic<std::uint32_t> doorbell_{0};  // rung when something changes while a mover sleeps; read before it sleeps
  std::mutex mutex_;                        // of all that follows
  std::array<Request, requests_max> requests_{};  // in order of arrival
  std::size_t count_ = 0;
  std::size_t asleep_ = 0;
  bool room_wanted_ = false;
  bool stopped_ = false;
};

}  // namespace tonari::pager
