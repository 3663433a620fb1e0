#pragma once

#include "base/mapping.hpp"
#include "fabric/engine.hpp"
#include "job/group.hpp"
#include "window/locks/local_locks.hpp"
#include "window/remote/copies.hpp"
#include "window/remote/target.hpp"
#include "window/state/layout.hpp"
#include "window/sync/host_barrier.hpp"

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

/// What a member gives: the arguments of Window's constructors.
struct Offer {
  std::uint64_t bytes = 0;
  std::byte* memory = nullptr;  // of its program; null: tonari's
  bool in_program = false;
  WindowOptions options{};
  bool present = true;  // false: it gives nothing, and reaches what another has
};

/// A window as this host has it.
struct Place {
  std::shared_ptr<Mapping> memory;
  std::uint32_t number;   // of the window, on all hosts
  std::uint32_t granule;  // of the host's pool; 0: none, it is another host's
};

/// A rank's way to a window: the three tables of MLC-1. `parts_` says for a global address where its bytes are reached
/// from here: at a pointer, if they are mapped, else by copies between programs or by the owner. `check` is what guards
/// each access.
///
/// Owns:    a share of the mapping, the pins of its part, the locks' queues.
/// Threads: any, but for construction and destruction.
/// Costs:   an access to mapped memory makes no system call and takes no lock.
class WindowState {
 public:
  /// Of a window in the pool whose header is made. Completes this rank's line of it, unless the offer is none.
  WindowState(WindowRuntime& runtime, Group group, Place place, const Offer& offer);
  WindowState(WindowState&&) = delete;
  ~WindowState();  // frees the part: waits for accesses to it that are under way
  /// Keeps this rank's part in memory. Throws SetupError.
  void pin();
  /// What a rank of another host has told of its part. Before open().
  void tell(int rank, const RemotePart& told) noexcept;
  /// Once all members' lines are complete.
  void open();

  [[nodiscard]] std::uint32_t number() const noexcept { return place_.number; }
  [[nodiscard]] const Group& group() const noexcept { return group_; }
  [[nodiscard]] WindowRuntime& runtime() const noexcept { return runtime_; }
  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::size_t self() const noexcept { return self_; }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(group_.size()); }
  [[nodiscard]] std::span<std::byte> local() const noexcept;
  [[nodiscard]] std::uint64_t bytes(int rank) const noexcept;
  [[nodiscard]] bool contains(GlobalAddress address, std::uint64_t bytes) const noexcept;
  [[nodiscard]] std::optional<GlobalAddress> global(const void* pointer) const noexcept;
  [[nodiscard]] std::byte* direct(GlobalAddress address, std::uint64_t bytes) const noexcept;

  // copies.cpp
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

  // meeting.cpp
  Status push_notified(GlobalAddress to, std::span<const std::byte> from, std::uint32_t notification) noexcept;
  [[nodiscard]] std::uint64_t notified(std::uint32_t notification) const noexcept;
  Status wait_notified(std::uint32_t notification, std::uint64_t count) noexcept;
  Status flush(int rank) noexcept;
  Status flush() noexcept;
  Status barrier() noexcept;
  Status barrier_with_multicast(std::uint64_t offset, std::span<const std::byte> from) noexcept;
  /// A barrier that this rank has come to, and as far as it has seen the others come.
  struct Meeting {
    std::uint64_t round = 0;
    std::size_t next = 0;      // of the members of this host
    std::size_t exchange = 0;  // with other hosts; the next
    bool told = false;         // it has begun
    Status status = Status::ok;
  };
  /// Answers ok, or invalid: this window has none.
  Status begin_barrier(Meeting& meeting) noexcept;
  /// True when all have come, or are gone.
  bool step_barrier(Meeting& meeting) noexcept;
  [[nodiscard]] bool barrier_ready(const Meeting& meeting) const noexcept;

  /// Of a rank whose part is mapped in its program alone.
  [[nodiscard]] bool is_elsewhere(GlobalAddress address) const noexcept {
    return address.rank.index() < parts_.size() && parts_[address.rank.index()].mapped == nullptr;
  }
  /// A copy that takes long, or needs the owner's help.
  [[nodiscard]] bool is_long(GlobalAddress address, std::uint64_t bytes) const noexcept;
  [[nodiscard]] Locks& locks() noexcept { return locks_; }

  /// It has ranks of other hosts.
  [[nodiscard]] bool spans_hosts() const noexcept { return remote_ != nullptr; }

  // What ranks of other hosts have said
  void take_freed(int rank) noexcept;
  void take_met(int rank, const Met& met) noexcept { host_barrier_.take(rank, met); }
  /// Another host wants to reach this rank's window alone.
  Status admit(int rank, Reached& reached) noexcept;
  [[nodiscard]] bool has_notification(std::uint32_t notification) const noexcept {
    return notification < layout_.member(self_).notifications;
  }
  void count_notification(std::uint32_t notification) noexcept;
  /// What GivenKeys::give() answers. Empty, too, where not all may read and write this rank's part.
  [[nodiscard]] std::vector<std::byte> key_for(int peer);
  void key_not_given(int peer) noexcept;
  /// Of a remote rank's part, for this rank.
  [[nodiscard]] PartKey& key_of(int rank) noexcept {
    return remote_[static_cast<std::size_t>(job::position_in(group_, rank))].key;
  }
  /// This rank's own part is its program's memory.
  [[nodiscard]] bool is_in_program() const noexcept { return own_in_program_; }
  /// Its locks, as remote ranks are to use them.
  [[nodiscard]] std::unique_ptr<LockHome> make_lock_home() const;

  /// For rank `peer` of another host, whose rights count: a push to a member of this host. Nothing where this rank may
  /// not do it, or only with that member's help.
  std::optional<Status> push_for(int peer, GlobalAddress to, std::span<const std::byte> from) noexcept;
  /// For the service: whether rank `peer` may do that to this rank's own part, and where it is.
  Status check_request(int peer, std::uint64_t offset, std::uint64_t bytes, Rights needed,
                       std::byte*& there) const noexcept;

 private:
  /// A part as this rank reaches it.
  struct Part {
    std::byte* mapped = nullptr;                    // null: it is not
    std::uint64_t bytes = 0;                        // 0: this rank has none
    const std::atomic<PartState>* state = nullptr;  // null: as before
    std::uint64_t address = 0;                      // in its program, when it is not mapped
    bool far = false;                               // on another host
    std::size_t member = 0;                         // whose it is
    Rights rights = Rights::none;                   // this rank's
  };

  Status check(GlobalAddress address, std::uint64_t bytes, Rights needed, const Part*& part) const noexcept;
  static Status check_regions(std::span<const Region> regions, std::size_t bytes) noexcept;
  [[nodiscard]] std::byte* place(const Part& part, GlobalAddress address) const noexcept {
    return part.mapped + address.offset;
  }
  template <class Copy>
  Status reach_program(GlobalAddress address, const Part& part, Copy copy) noexcept;
  std::optional<Status> copy_mapped(Service service, const Part& part, GlobalAddress address, std::byte* local,
                                    std::uint64_t bytes) noexcept;
  Status copy_remote(Service service, const Part& part, GlobalAddress address, std::byte* local,
                     std::span<const Region> regions) noexcept;
  [[nodiscard]] RemoteCopies::Target target_of(const Part& part, GlobalAddress address) const noexcept {
    return {address.rank.value(), address.offset, remote_[part.member].in_program};
  }
  [[nodiscard]] bool copies_directly(const Part& part, std::span<const std::byte> local) const noexcept {
    return part.mapped == nullptr && !part.far && engine_.session().direct_copies() &&
           !engine_.session().is_paged(local.data(), local.size());
  }
  Status push_notified_remote(const Part& part, GlobalAddress to, std::span<const std::byte> from,
                              std::uint32_t notification) noexcept;
  Status copy_elsewhere(Service service, const Part& part, GlobalAddress address, std::byte* local,
                        std::uint64_t bytes) noexcept;
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

  // Construction and its undoing
  void find_hosts();
  void complete_own_line(const Offer& offer);
  void set_rights(const WindowOptions& options, Member& own);
  void protect_parts();
  void open_near(std::size_t index, Part& part) const noexcept;
  void open_remote(std::size_t index, Part& part) const noexcept;
  void free_part() noexcept;
  void wait_for_accesses() const noexcept;
  void tell_remote_ranks_freed() noexcept;
  void close_keys() noexcept;
  void let_go() noexcept;

  [[nodiscard]] int rank_of(std::size_t member) const noexcept {
    return job::rank_at(group_, static_cast<int>(member));
  }
  [[nodiscard]] bool is_gone(std::size_t member) const noexcept;
  [[nodiscard]] bool is_leader() const noexcept { return here_.front() == self_; }
  [[nodiscard]] int awaited(const Meeting& meeting) const noexcept;
  bool step_barrier_here(Meeting& meeting) const noexcept;
  bool step_barrier_between_hosts(Meeting& meeting) noexcept;
  [[nodiscard]] bool released(std::uint64_t round) const noexcept {
    return round_of(layout_.header().released.load(std::memory_order_seq_cst)) >= round;
  }
  /// Members that have died.
  [[nodiscard]] std::size_t count_gone() const noexcept;
  void wake_others() noexcept;

  WindowRuntime& runtime_;
  fabric::Engine& engine_;
  const Group group_;
  const std::size_t self_;  // position in the group
  Place place_;
  Layout layout_;
  std::vector<Part> parts_;                 // by rank of the job
  std::atomic<bool> is_open_{false};        // release: the parts; for who serves, perhaps before
  std::vector<std::size_t> here_;           // members of this host
  std::unique_ptr<RemoteMember[]> remote_;  // by member; null: all are of this host
  HostBarrier host_barrier_;
  // This rank's own part, kept here: what others can write by mistake, its line, is not believed.
  std::byte* own_ = nullptr;
  std::uint64_t own_bytes_ = 0;
  bool own_in_program_ = false;
  std::vector<Rights> given_;  // by member
  std::span<const std::byte> pinned_;
  Locks locks_;
  std::uint64_t barriers_ = 0;             // that this rank has come to; one at a time
  std::atomic<std::size_t> gone_told_{0};  // relaxed: deaths that wait_notified() has answered
  std::atomic<std::uint64_t> flushes_{0};  // for its order alone: see flush()
};

/// Short pulls, or pushes, of one rank's memory that is mapped in its program alone: together they are one call of the
/// system, in which they are copied in their order.
class WindowState::Batch {
 public:
  /// `needed`: read for pulls, write for pushes.
  Batch(WindowState& access, Rights needed) noexcept : access_(access), needed_(needed) {}
  /// False: it is no such copy, or does not fit with those that are there.
  bool add(GlobalAddress address, std::span<std::byte> local) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  /// Answers how many were copied, from the first on, until one failed.
  std::size_t copy() noexcept;

 private:
  WindowState& access_;
  Rights needed_;
  const Part* part_ = nullptr;
  GlobalAddress first_{};
  std::size_t count_ = 0;
  std::uint64_t bytes_ = 0;
  std::array<iovec, fabric::DirectCopy::stretches_max> here_;
  std::array<iovec, fabric::DirectCopy::stretches_max> there_;
};

}  // namespace tonari::window
