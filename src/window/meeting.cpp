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
  if (notification >= own.notifications) return Status::invalid;
  const std::atomic<std::uint64_t>& counted = layout_.notification(own, notification);
  const std::uint32_t deaths = engine_.session().arena().header().deaths.load(std::memory_order_acquire);
  const auto has_come = [&counted, count] { return counted.load(std::memory_order_seq_cst) >= count; };
  wait_until(
      engine_, [this, has_come, deaths] { return has_come() || has_lost_one_since(deaths); }, job::Wait::notification,
      -1);
  return has_come() ? Status::ok : Status::peer_gone;
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

Status Access::barrier() noexcept {
  if (layout_.header().alone != 0) return Status::invalid;
  const std::uint64_t round = ++barriers_;
  // Release: all that this rank did. Sequentially consistent with a sleeper's look: it sees this, or we see it asleep.
  layout_.arrival(self_).store(round, std::memory_order_seq_cst);
  wake_others();
  Status status = Status::ok;
  for (std::size_t i = 0; i < size(); ++i) {
    const std::atomic<std::uint64_t>& arrival = layout_.arrival(i);
    const auto has_come = [&arrival, round] { return arrival.load(std::memory_order_seq_cst) >= round; };
    wait_until(
        engine_, [this, has_come, i] { return has_come() || is_gone(i); }, job::Wait::barrier,
        group_.at(static_cast<int>(i)));
    if (!has_come()) status = Status::peer_gone;  // looked at again: it may have come and gone
  }
  return status;
}

Status Access::barrier_with_multicast(std::uint64_t offset, std::span<const std::byte> from) noexcept {
  if (layout_.header().alone != 0) return Status::invalid;
  const Status given = from.empty() ? Status::ok : multicast(offset, from);
  const Status met = barrier();
  return given == Status::ok ? met : given;
}

}  // namespace tonari::window
