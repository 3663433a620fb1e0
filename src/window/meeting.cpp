#include "window/access.hpp"
#include "window/runtime.hpp"
#include "window/waiting.hpp"

// Notifications, flushes and barriers.
namespace tonari::window {

Status Access::push_notified(GlobalAddress to, std::span<const std::byte> from, std::uint32_t notification) noexcept {
  const Part* part = nullptr;
  const Status allowed = check(to, from.size(), Rights::write, part);
  if (allowed != Status::ok) return allowed;
  const int rank = static_cast<int>(to.rank);
  const Member& owner = layout_.member(static_cast<std::size_t>(group_.position(rank)));
  if (notification >= owner.notifications) return Status::bounds;
  const Status status = push(to, from);
  if (status != Status::ok) return status;
  // Release: the data. Sequentially consistent with the owner's falling asleep: it sees the count, or we see it asleep.
  layout_.notification(owner, notification).fetch_add(1, std::memory_order_seq_cst);
  engine_.wake_if_asleep(rank);
  return Status::ok;
}

std::uint64_t Access::notified(std::uint32_t notification) const noexcept {
  const Member& own = layout_.member(self_);
  if (notification >= own.notifications) return 0;
  return layout_.notification(own, notification).load(std::memory_order_acquire);  // with the data
}

Status Access::wait_notified(std::uint32_t notification, std::uint64_t count) noexcept {
  const Member& own = layout_.member(self_);
  if (notification >= own.notifications) return Status::bounds;
  const std::atomic<std::uint64_t>& counted = layout_.notification(own, notification);
  // Each death is told once, also where it came before the call: who wanted to notify may be the one.
  const std::size_t told = gone_told_.load(std::memory_order_relaxed);
  const auto has_come = [&counted, count] { return counted.load(std::memory_order_seq_cst) >= count; };
  wait_until(
      engine_, [this, has_come, told] { return has_come() || count_gone() > told; }, job::Wait::notification, -1);
  if (has_come()) return Status::ok;
  gone_told_.store(count_gone(), std::memory_order_relaxed);  // threads that wait at once are all told
  return Status::peer_gone;
}

// In a host all pushes are made by the processor that runs this: they have only to be ordered before what comes next.
Status Access::flush() noexcept {
  flushes_.fetch_add(1, std::memory_order_seq_cst);
  return Status::ok;
}

Status Access::flush(int rank) noexcept {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= parts_.size() || parts_[index].state == nullptr) return Status::bounds;
  if (!engine_.session().alive(rank)) return Status::peer_gone;
  return flush();
}

Status Access::begin_barrier(Meeting& meeting) noexcept {
  if (layout_.header().alone != 0) return Status::invalid;
  meeting = {.round = ++barriers_};
  // Release: all that this rank did. Sequentially consistent with a sleeper's look: it sees this, or we see it asleep.
  layout_.arrival(self_).store(meeting.round, std::memory_order_seq_cst);
  wake_others();
  return Status::ok;
}

bool Access::barrier_ready(const Meeting& meeting) const noexcept {
  // Acquire: what that rank did before.
  return layout_.arrival(meeting.next).load(std::memory_order_seq_cst) >= meeting.round || is_gone(meeting.next);
}

bool Access::step_barrier(Meeting& meeting) const noexcept {
  for (; meeting.next < size(); ++meeting.next) {
    if (!barrier_ready(meeting)) return false;
    // Looked at again: it may have come, and gone then.
    if (layout_.arrival(meeting.next).load(std::memory_order_seq_cst) < meeting.round) {
      meeting.status = Status::peer_gone;
    }
  }
  return true;
}

Status Access::barrier() noexcept {
  Meeting meeting;
  const Status begun = begin_barrier(meeting);
  if (begun != Status::ok) return begun;
  while (!step_barrier(meeting)) {
    wait_until(
        engine_, [&] { return barrier_ready(meeting); }, job::Wait::barrier, group_.at(static_cast<int>(meeting.next)));
  }
  return meeting.status;
}

Status Access::barrier_with_multicast(std::uint64_t offset, std::span<const std::byte> from) noexcept {
  if (layout_.header().alone != 0) return Status::invalid;
  const Status given = from.empty() ? Status::ok : multicast_to_all(offset, from);
  const Status met = barrier();
  return given == Status::ok ? met : given;
}

}  // namespace tonari::window
