#pragma once

#include "base/mapping.hpp"
#include "fabric/engine.hpp"
#include "window/locks/local_locks.hpp"
#include "window/remote/copies.hpp"
#include "window/remote/service.hpp"
#include "window/state/layout.hpp"
#include "window/state/members.hpp"
#include "window/state/parts.hpp"
#include "window/sync/window_barrier.hpp"

#include <tonari/queue.hpp>

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tonari::window {

class RemoteMulticast;
class WindowRuntime;

/// Where a window is on this host.
struct Place {
  std::shared_ptr<Mapping> memory;
  std::uint32_t number;   // of the window, the same on all hosts
  std::uint32_t granule;  // in the host's pool; 0: none, because the window is on another host
};

/// A rank's state of a window. For a global address, `parts_` says how this rank accesses its bytes: by a pointer if
/// they are mapped, otherwise by copies between programs or with the target's help. Parts::check() guards every access,
/// except the short ones that Window makes itself, which PartTable::find_mapped() guards.
///
/// Owns:    a share of the mapping, the pins of its part, the locks' queues.
/// Threads: any, except for construction and destruction.
/// Costs:   an access to mapped memory makes no system call and takes no lock.
class WindowState : public detail::PartTable {
 public:
  /// Returns the state behind a Window.
  static WindowState& of(const Window& window) noexcept { return static_cast<WindowState&>(*window.table_); }
  static std::shared_ptr<WindowState> share(const Window& window) noexcept {
    return std::static_pointer_cast<WindowState>(window.table_);
  }

  /// The window is in the pool, and its header is complete. Completes this rank's line, if the offer has a part.
  WindowState(WindowRuntime& runtime, Group group, Place place, const Offer& offer);
  WindowState(WindowState&&) = delete;
  ~WindowState();  // frees the part: waits for accesses to it that are under way
  /// Locks this rank's part in memory. Throws SetupError.
  void pin();
  /// Records what a rank of another host has told about its part. Call it before open().
  void tell(int rank, const RemotePart& told) noexcept;
  /// Call it once all members' lines are complete.
  void open();

  [[nodiscard]] std::uint32_t number() const noexcept { return place_.number; }
  [[nodiscard]] const Members& members() const noexcept { return members_; }
  [[nodiscard]] const Group& group() const noexcept { return members_.group(); }
  [[nodiscard]] WindowRuntime& runtime() const noexcept { return runtime_; }
  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] const Parts& parts() const noexcept { return parts_; }
  [[nodiscard]] std::span<std::byte> local() const noexcept;
  [[nodiscard]] std::uint64_t bytes(int rank) const noexcept;
  [[nodiscard]] bool contains(GlobalAddress address, std::uint64_t bytes) const noexcept;
  [[nodiscard]] std::optional<GlobalAddress> global(const void* pointer) const noexcept;
  [[nodiscard]] std::byte* direct(GlobalAddress address, std::uint64_t bytes) const noexcept;

  // window_state_copies.cpp
  Status pull(std::span<std::byte> to, GlobalAddress from) noexcept;
  Status pull_with_twin(std::span<std::byte> to, std::span<std::byte> twin, GlobalAddress from) noexcept;
  Status pull_regions(std::span<std::byte> to, GlobalAddress from, std::span<const Region> regions) noexcept;
  Status push(GlobalAddress to, std::span<const std::byte> from) noexcept;
  Status push_regions(GlobalAddress to, std::span<const std::byte> from, std::span<const Region> regions) noexcept;
  Result<std::uint64_t> push_diff(GlobalAddress to, std::span<const std::byte> from,
                                  std::span<const std::byte> twin) noexcept;
  Status multicast(std::span<const GlobalAddress> to, std::span<const std::byte> from) noexcept;
  Status multicast_to_all(std::uint64_t offset, std::span<const std::byte> from) noexcept;
  Status multicast_regions(std::span<const GlobalAddress> to, std::span<const std::byte> from,
                           std::span<const Region> regions) noexcept;
  Result<std::uint64_t> apply(GlobalAddress at, const detail::AtomicWords& words) noexcept;
  class Batch;

  // window_state_sync.cpp
  Status push_notified(GlobalAddress to, std::span<const std::byte> from, std::uint32_t notification) noexcept;
  [[nodiscard]] std::uint64_t notified(std::uint32_t notification) const noexcept;
  Status wait_notified(std::uint32_t notification, std::uint64_t count) noexcept;
  Status flush(int rank) noexcept;
  Status flush() noexcept;
  /// A barrier to which this rank brings data for all others.
  Status barrier_with_multicast(std::uint64_t offset, std::span<const std::byte> from) noexcept;
  [[nodiscard]] WindowBarrier& barrier() noexcept { return barrier_; }

  /// Returns true for a rank whose part is mapped only in its own program.
  [[nodiscard]] bool is_elsewhere(GlobalAddress address) const noexcept {
    const Part* const part = parts_.find(address.rank);
    return part != nullptr && part->mapped == nullptr;
  }
  /// Returns true if a copy takes long, or needs the target's help.
  [[nodiscard]] bool is_long(GlobalAddress address, std::uint64_t bytes) const noexcept;
  [[nodiscard]] Locks& locks() noexcept { return locks_; }

  // Requests and notices from ranks of other hosts
  void take_freed(int rank) noexcept;
  /// Lets a rank of another host reach this rank's local window.
  Status admit(int rank, Reached& reached) noexcept;
  [[nodiscard]] bool has_notification(std::uint32_t notification) const noexcept {
    return notification < layout_.member(members_.self()).notifications;
  }
  void count_notification(std::uint32_t notification) noexcept;
  /// Returns GivenKeys::give() for `peer`. Empty if not all ranks may read and write this rank's part.
  [[nodiscard]] std::vector<std::byte> key_for(int peer);
  void key_not_given(int peer) noexcept;
  /// Returns this rank's key of a remote rank's part.
  [[nodiscard]] PartKey& key_of(int rank) noexcept { return members_.find_remote(rank)->key; }
  /// Makes the home of this rank's locks, for remote ranks.
  [[nodiscard]] std::unique_ptr<LockHome> make_lock_home() const;

  /// Pushes to a member of this host for rank `peer` of another host, with that rank's rights. Returns nullopt if this
  /// rank may not do it, or not without that member's help.
  std::optional<Status> push_for(int peer, GlobalAddress to, std::span<const std::byte> from) noexcept;

 private:
  static Status check_regions(std::span<const Region> regions, std::size_t bytes) noexcept;
  template <class Copy>
  Status reach_program(GlobalAddress address, const Part& part, Copy copy) noexcept;
  template <Direction D>
  std::optional<Status> copy_mapped(const Part& part, GlobalAddress address,
                                    std::span<typename D::Local> local) noexcept;
  template <Direction D>
  Status copy_remote(const Part& part, GlobalAddress address, typename D::Local* local,
                     std::span<const Region> regions) noexcept;
  [[nodiscard]] RemotePlace target_of(const Part& part, GlobalAddress address) const noexcept {
    return {address.rank.value(), address.offset, members_.remote(part.member).in_program};
  }
  [[nodiscard]] bool copies_directly(const Part& part, std::span<const std::byte> local) const noexcept {
    return part.mapped == nullptr && !part.is_remote && engine_.session().direct_copies() &&
           !engine_.session().is_paged(local.data(), local.size());
  }
  Status push_notified_remote(const Part& part, GlobalAddress to, std::span<const std::byte> from,
                              std::uint32_t notification) noexcept;
  template <Direction D>
  Status copy_elsewhere(const Part& part, GlobalAddress address, std::span<typename D::Local> local) noexcept;
  template <Direction D>
  Status copy_far_or_long(const Part& part, GlobalAddress address, std::span<typename D::Local> local) noexcept;
  Status write(const Part& part, GlobalAddress to, std::span<const std::byte> from) noexcept;
  Status read(const Part& part, std::span<std::byte> to, GlobalAddress from) noexcept;
  template <class Target>
  Status multicast_remote(RemoteMulticast& relays, std::size_t targets, Target target,
                          std::span<const std::byte> from) noexcept;
  template <class Target>
  Status multicast_to_each(std::size_t targets, Target target, std::span<const std::byte> from) noexcept;
  Status write_regions(const Part& part, GlobalAddress to, std::span<const std::byte> from,
                       std::span<const Region> regions) noexcept;
  Result<std::uint64_t> write_difference(const Part& part, GlobalAddress to, std::span<const std::byte> from,
                                         std::span<const std::byte> twin) noexcept;

  // Steps of destruction
  void free_part() noexcept;
  void wait_for_accesses() const noexcept;
  void tell_remote_ranks_freed() noexcept;
  void close_keys() noexcept;
  void let_go() noexcept;

  WindowRuntime& runtime_;
  fabric::Engine& engine_;
  Place place_;
  Layout layout_;
  Members members_;
  Parts parts_;
  WindowBarrier barrier_;
  Locks locks_;
  std::span<const std::byte> pinned_;
  std::atomic<std::size_t> gone_told_{0};  // relaxed: deaths that wait_notified() has returned
  std::atomic<std::uint64_t> flushes_{0};  // only for its order: see flush()
};

/// Collects short pulls, or pushes, of one rank's memory that is mapped only in its program. One system call copies
/// them all, in their order.
class WindowState::Batch {
 public:
  /// `needed`: read for pulls, write for pushes.
  Batch(WindowState& state, Rights needed) noexcept : state_(state), needed_(needed) {}
  /// Returns false if it is no such copy, or does not fit with the others.
  bool add(GlobalAddress address, std::span<std::byte> local) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  /// Copies from the first on until one fails. Returns how many were copied.
  std::size_t copy() noexcept;

 private:
  WindowState& state_;
  Rights needed_;
  const Part* part_ = nullptr;
  GlobalAddress first_{};
  std::size_t count_ = 0;
  std::uint64_t bytes_ = 0;
  std::array<iovec, fabric::DirectCopy::stretches_max> here_;
  std::array<iovec, fabric::DirectCopy::stretches_max> there_;
};

}  // namespace tonari::window
