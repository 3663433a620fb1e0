#pragma once

#include "base/file_descriptor.hpp"
#include "far/control.hpp"
#include "far/page_store.hpp"
#include "far/program.hpp"
#include "far/servers.hpp"
#include "far/source_part.hpp"
#include "far/working_set.hpp"
#include "pager/pager.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace tonari::far {

/// One process with far memory. Moves its pages to the servers and back.
///
/// Owns:    the connection to the process, a store, a pager with its threads, and a thread that serves the process's
///          requests.
/// Threads: one, except for the calls that say so. The threads that it owns call `on_failure`.
class Client {
 public:
  using OnFailure = std::function<void(std::string_view why)>;

  /// The preload library of a process starts at the other end of `socket`. The servers outlive the client. Throws
  /// SetupError.
  Client(FileDescriptor socket, Servers& servers, const Order& order, const Program::Lent& lent, OnFailure on_failure);
  /// Ends the process if it is still alive.
  ~Client();
  Client(Client&&) = delete;

  enum class Heard {
    nothing,
    begun,  ///< It waits for go().
    gone,   ///< Its address space has ended, or it stays with local memory.
  };
  /// Call it when descriptor() is readable. Throws SetupError if the process cannot be served.
  Heard hear();
  [[nodiscard]] int descriptor() const noexcept { return program_.descriptor(); }
  void go() noexcept { program_.go(); }

  /// Sets how much of its far memory the process may hold locally. Call it only once the process has begun.
  void set_limit(std::uint64_t bytes) noexcept;
  [[nodiscard]] std::uint64_t touched_bytes() const noexcept;
  [[nodiscard]] std::uint64_t limit_bytes() const noexcept { return limit_.load(std::memory_order_relaxed); }
  /// Call it often. Returns a limit that the process would need, once it has been found to need it.
  [[nodiscard]] WorkingSet::Finding look_at_working_set() noexcept;
  /// Returns the most that the process has ever had allocated.
  [[nodiscard]] std::uint64_t in_use_peak_bytes() const noexcept {
    return in_use_peak_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] bool stays_local() const noexcept { return program_.stays_local(); }
  [[nodiscard]] bool has_begun() const noexcept { return pager_.has_value(); }
  [[nodiscard]] std::uint64_t lost_bytes() const noexcept { return pages_.lost_bytes(); }
  [[nodiscard]] Statistics statistics() const noexcept;  ///< Members about servers are 0; members about files are set.

  /// Call it once the process has ended: its threads in the keeper end, too. Snapshots can still be read.
  void rest() noexcept;

  // For forks. Any thread, once the process itself has sent its identity, which it knows only after it has begun.

  [[nodiscard]] std::uint64_t identity() const noexcept { return identity_; }
  /// While this gate is closed and empty, no page leaves the process.
  [[nodiscard]] Gate& leaving() noexcept { return pager_->leaving(); }
  /// Calls Pager::take_snapshot(). The client must outlive the snapshot. Throws SetupError.
  [[nodiscard]] std::shared_ptr<pager::Snapshot> take_snapshot();

 private:
  void begin();
  void end() noexcept;
  void page_failed(const pager::Failure& failure) noexcept;
  [[nodiscard]] bool is_of_file(const pager::Failure& failure) const noexcept;
  [[nodiscard]] std::string why_servers_are_full() const;
  [[nodiscard]] std::string why_file_failed(const pager::Failure& failure) const;
  void serve_requests() noexcept;
  void count_use(std::uint64_t bytes) noexcept;
  [[nodiscard]] int answer(Request& request) noexcept;
  [[nodiscard]] int watch(const Request& request) noexcept;

  Servers& servers_;
  Order order_;
  OnFailure on_failure_;
  Program program_;
  std::uint64_t identity_;  // not read from the channel, which the process may change
  PageStore pages_;
  std::atomic<std::uint64_t> in_use_{0};       // relaxed: a count
  std::atomic<std::uint64_t> in_use_peak_{0};  // relaxed: only the thread that serves requests changes it
  std::atomic<std::uint64_t> limit_{0};        // relaxed: only shown to the user
  std::list<SourcePart> parts_;                // of the source, for ranges outside the arena
  std::uint64_t parts_end_ = 0;                // the first place in the source after them
  std::optional<pager::Pager> pager_;
  WorkingSet working_set_;
  std::jthread listener_;
};

/// The least limit: with less, the pager has no room to work in.
inline constexpr std::uint64_t limit_bytes_min = 8ULL << 20;
/// The least limit of all processes together, if it is a share of the touched memory: every host has so much, and
/// programs with less data need not be slow.
inline constexpr std::uint64_t share_bytes_min = 64ULL << 20;
/// Returns the text that explains the loss of a page.
constexpr const char* second_copy(const Order& order) noexcept {
  return order.replicas == 1 ? "--replicas 2 keeps a second copy of every page" : "both of its copies are lost";
}

}  // namespace tonari::far
