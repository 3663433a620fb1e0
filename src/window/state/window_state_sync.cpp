#include "fabric/wait.hpp"
#include "job/group.hpp"
#include "window/state/window_state.hpp"
#include "window/window_runtime.hpp"

// Notifications and flushes.
namespace tonari::window {

Status WindowState::push_notified(GlobalAddress to, std::span<const std::byte> from,
                                  std::uint32_t notification) noexcept {
  const Part* part = nullptr;
  const Status allowed = parts_.check(to, from.size(), Rights::write, part);
  if (allowed != Status::ok) return allowed;
  if (part->is_remote) return push_notified_remote(*part, to, from, notification);
  const int rank = to.rank.value();
  const Member& owner = layout_.member(part->member);
  if (notification >= owner.notifications) return Status::bounds;
  const Status status = push(to, from);
  if (status != Status::ok) return status;
  // Release: the data. Sequentially consistent with the target's falling asleep: either it sees the count, or this rank
  // sees it asleep.
  layout_.notification(owner, notification).fetch_add(1, std::memory_order_seq_cst);
  engine_.wake_if_asleep(rank);
  return Status::ok;
}

// The counter is sent with the data, or after long data.
Status WindowState::push_notified_remote(const Part& part, GlobalAddress to, std::span<const std::byte> from,
                                         std::uint32_t notification) noexcept {
  if (notification >= members_.remote(part.member).notifications) return Status::bounds;
  if (from.data() == nullptr && !from.empty()) return Status::invalid;
  if (from.size() > remote_notified_bytes_max) {
    const Status status = push(to, from);
    if (status != Status::ok) return status;
    from = {};
  }
  RemoteCopies<Push> copies(engine_.session(), runtime_.origin(), place_.number);
  copies.start_notified(target_of(part, to), from, notification + 1);
  return copies.end();
}

// Called after this rank has stored the push of a rank of another host.
void WindowState::count_notification(std::uint32_t notification) noexcept {
  // Release: the data. Sequentially consistent with this rank's falling asleep.
  layout_.notification(layout_.member(members_.self()), notification).fetch_add(1, std::memory_order_seq_cst);
  engine_.wake_self();
}

std::uint64_t WindowState::notified(std::uint32_t notification) const noexcept {
  const Member& own = layout_.member(members_.self());
  if (notification >= own.notifications) return 0;
  // A thread that polls here may be the only one that looks at the network.
  if (members_.spans_hosts() && !engine_.session().settings().service_thread) engine_.progress();
  return layout_.notification(own, notification).load(std::memory_order_acquire);  // acquire: the data
}

Status WindowState::wait_notified(std::uint32_t notification, std::uint64_t count) noexcept {
  const Member& own = layout_.member(members_.self());
  if (notification >= own.notifications) return Status::bounds;
  const std::atomic<std::uint64_t>& counted = layout_.notification(own, notification);
  // Each death is returned once, also if it came before the call: the dead rank may be the one that wanted to notify.
  const std::size_t told = gone_told_.load(std::memory_order_relaxed);
  const auto has_come = [&counted, count] { return counted.load(std::memory_order_seq_cst) >= count; };
  fabric::wait_until(
      engine_, [this, has_come, told] { return has_come() || members_.count_dead() > told; }, job::Wait::notification,
      -1);
  if (has_come()) return Status::ok;
  gone_told_.store(members_.count_dead(), std::memory_order_relaxed);  // threads that wait at the same time all get it
  return Status::peer_gone;
}

// Within a host, all pushes were made by this processor: they only have to be ordered before later accesses.
Status WindowState::flush() noexcept {
  flushes_.fetch_add(1, std::memory_order_seq_cst);
  return Status::ok;
}

Status WindowState::flush(int rank) noexcept {
  const Part* const part = parts_.find(JobRank{rank});
  if (part == nullptr || part->state == nullptr) return Status::bounds;
  if (!engine_.session().alive(rank)) return Status::peer_gone;
  return flush();
}

Status WindowState::barrier_with_multicast(std::uint64_t offset, std::span<const std::byte> from) noexcept {
  if (layout_.header().alone != 0) return Status::invalid;
  const Status given = from.empty() ? Status::ok : multicast_to_all(offset, from);
  const Status met = barrier_.wait();
  return given == Status::ok ? met : given;
}

}  // namespace tonari::window
