#pragma once

#include "base/file_descriptor.hpp"
#include "far/control.hpp"
#include "far/file_store.hpp"
#include "far/packed_store.hpp"
#include "far/program.hpp"
#include "far/servers.hpp"
#include "far/source_part.hpp"
#include "far/store.hpp"
#include "far/tiered_store.hpp"
#include "far/working_set.hpp"
#include "pager/pager.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace tonari::far {

/// One process with far memory. Moves its pages to the servers and back.
///
/// Owns:    the connection to the process, a store, a pager with its threads, and a thread that serves the process's
///          requests.
/// Threads: one. The threads that it owns call `on_failure`.
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
    gone,   ///< Its address space has ended.
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

  [[nodiscard]] bool has_begun() const noexcept { return pager_.has_value(); }
  [[nodiscard]] std::uint64_t lost_bytes() const noexcept { return store_ ? store_->lost_bytes() : 0; }
  [[nodiscard]] Statistics statistics() const noexcept;  ///< Members about servers are 0; members about files are set.

  /// Gives the process's chunks back to the servers. Call it only once the process has ended.
  void give_all_back() noexcept;

 private:
  void begin();
  void end() noexcept;
  void page_failed(const pager::Failure& failure) noexcept;
  [[nodiscard]] bool is_of_file(const pager::Failure& failure) const noexcept;
  [[nodiscard]] std::string why_file_failed(const pager::Failure& failure) const;
  void serve_requests() noexcept;
  void count_use(std::uint64_t bytes) noexcept;
  [[nodiscard]] int answer(Request& request) noexcept;
  [[nodiscard]] int watch(pager::Address start, std::uint64_t bytes) noexcept;
  [[nodiscard]] pager::Source& source() noexcept;

  Servers& servers_;
  Order order_;
  OnFailure on_failure_;
  Program program_;
  // The order decides which exist: `file_`, `store_`, or both.
  std::optional<FileStore> file_;
  std::optional<Store> store_;
  std::optional<PackedStore> packed_;          // compressed pages in `store_`
  std::optional<TieredStore> tiered_;          // moves cold pages from `packed_` to `file_`
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
/// Returns the text that explains the loss of a page.
constexpr const char* second_copy(const Order& order) noexcept {
  return order.replicas == 1 ? "--replicas 2 keeps a second copy of every page" : "both of its copies are lost";
}

}  // namespace tonari::far
