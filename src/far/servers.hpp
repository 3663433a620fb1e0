#pragma once

#include "far/peak_count.hpp"
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

/// The memory that ranks of a job lend in their parts of a window, in chunks of 2 MiB. Knows which chunks are free and
/// which servers have died.
///
/// Owns:    the table of free chunks; the window outlives it.
/// Threads: any.
/// Costs:   a lock when a chunk is taken or given back.
class Servers {
 public:
  static constexpr unsigned replicas_max = 2;

  // Server number plus 1 in the upper half, the number of its chunk in the lower half; 0: no copy.
  using Copy = std::uint64_t;
  using Copies = std::array<Copy, replicas_max>;

  /// `ranks` are the servers, at least `replicas` of them.
  Servers(Window& window, const std::vector<int>& ranks, unsigned replicas);

  /// Takes a chunk on as many servers as there are replicas, or on the only server that is left. Returns nullopt if no
  /// server has room.
  [[nodiscard]] std::optional<Copies> take() noexcept;
  void give_back(const Copies& copies) noexcept;

  [[nodiscard]] Window& window() const noexcept { return window_; }
  [[nodiscard]] GlobalAddress address_of(Copy copy, std::uint64_t offset) const noexcept {
    return window_.at(JobRank{server_of(copy).rank}, (copy & 0xffffffff) * pager::block_bytes + offset);
  }
  [[nodiscard]] bool is_alive(Copy copy) const noexcept {
    return copy != 0 && server_of(copy).alive.load(std::memory_order_relaxed);
  }

  /// Records that this server has died: it is not used any more.
  void died(int rank) noexcept;
  /// Stops using the server of this copy, because its copy is older than another one.
  void no_longer_ask(Copy copy) noexcept { server_of(copy).alive.store(false, std::memory_order_relaxed); }

  [[nodiscard]] std::uint64_t lent_bytes() const noexcept;      ///< of all servers, dead ones included
  [[nodiscard]] std::uint64_t capacity_bytes() const noexcept;  ///< how much data fits, with all replicas kept
  [[nodiscard]] std::uint64_t used_bytes() const noexcept;      ///< in whole chunks
  [[nodiscard]] std::uint64_t used_peak_bytes() const noexcept;

  /// Call these for pages that are stored in chunks, and dropped again, if each has its own place there.
  void count_stored(std::uint64_t pages) noexcept { pages_.add(pages); }
  void count_dropped(std::uint64_t pages) noexcept { pages_.subtract(pages); }
  /// Returns the size of these pages. It may be far below used_bytes() if the program's data are sparse.
  [[nodiscard]] std::uint64_t data_bytes() const noexcept { return pages_.now() * pager::page_bytes; }
  [[nodiscard]] std::uint64_t data_peak_bytes() const noexcept { return pages_.peak() * pager::page_bytes; }

 private:
  struct Server {
    int rank = 0;
    std::atomic<bool> alive{true};  // relaxed: an access to a dead server returns an error anyway
    std::uint32_t chunks = 0;
    std::uint32_t never_used = 0;  // chunks from here on; under the lock, as is `free`
    std::vector<std::uint32_t> free{};
  };

  [[nodiscard]] Server& server_of(Copy copy) const noexcept { return (*servers_)[(copy >> 32) - 1]; }
  [[nodiscard]] unsigned copies_now() const noexcept;
  Server* roomiest(const Server* other_than) noexcept;
  Copy chunk_of(Server& server) noexcept;

  Window& window_;
  unsigned replicas_;
  std::unique_ptr<std::vector<Server>> servers_;
  PeakCount used_;    // chunks
  PeakCount pages_;   // with a place of their own
  std::mutex mutex_;  // guards `never_used` and `free` of the servers
};

}  // namespace tonari::far
