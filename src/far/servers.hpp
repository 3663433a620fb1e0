#pragma once

#include "pager/page.hpp"

#include <tonari/window.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace tonari::far {

/// What ranks of a job lend in their parts of a window, in chunks of 2 MiB: which of them are free, and who has died.
///
/// Owns:    the count; the window outlives it.
/// Threads: any.
/// Costs:   a lock when a chunk is taken or given back.
class Servers {
 public:
  static constexpr unsigned replicas_max = 2;

  // Server number plus 1 in the upper half, chunk of that server in the lower; 0: none.
  using Copy = std::uint64_t;
  using Copies = std::array<Copy, replicas_max>;

  /// At least `replicas` of them.
  Servers(Window& window, const std::vector<int>& ranks, unsigned replicas);

  /// A chunk on as many servers as there are replicas, or on the one that is left. Nothing: no server has room.
  [[nodiscard]] std::optional<Copies> take() noexcept;
  void give_back(const Copies& copies) noexcept;

  [[nodiscard]] Window& window() const noexcept { return window_; }
  [[nodiscard]] GlobalAddress address_of(Copy copy, std::uint64_t offset) const noexcept {
    return window_.at(JobRank{server_of(copy).rank}, (copy & 0xffffffff) * pager::block_bytes + offset);
  }
  [[nodiscard]] bool is_alive(Copy copy) const noexcept {
    return copy != 0 && server_of(copy).alive.load(std::memory_order_relaxed);
  }

  /// No longer asked.
  void died(int rank) noexcept;
  /// Nor is the server of this copy, which has not what another has.
  void no_longer_ask(Copy copy) noexcept { server_of(copy).alive.store(false, std::memory_order_relaxed); }

  [[nodiscard]] std::uint64_t lent_bytes() const noexcept;      ///< By all that ever were.
  [[nodiscard]] std::uint64_t capacity_bytes() const noexcept;  ///< Of data, however often each is kept.
  [[nodiscard]] std::uint64_t used_bytes() const noexcept;      ///< Chunks that are taken, whole.

 private:
  struct Server {
    int rank = 0;
    std::atomic<bool> alive{true};  // relaxed: who asks a dead one is told so
    std::uint32_t chunks = 0;
    std::uint32_t never_used = 0;  // chunks from here on; under the lock, as the next
    std::vector<std::uint32_t> free{};
  };

  [[nodiscard]] Server& server_of(Copy copy) const noexcept { return (*servers_)[(copy >> 32) - 1]; }
  [[nodiscard]] unsigned copies_now() const noexcept;
  Server* roomiest(const Server* other_than) noexcept;
  Copy chunk_of(Server& server) noexcept;

  Window& window_;
  unsigned replicas_;
  std::unique_ptr<std::vector<Server>> servers_;
  std::atomic<std::uint64_t> used_{0};  // chunks; relaxed: a count
  std::mutex mutex_;                    // of what servers have free
};

}  // namespace tonari::far
