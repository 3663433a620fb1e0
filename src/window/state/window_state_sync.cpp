#include "fabric/wait.hpp"
#include "job/group.hpp"
#include "window/state/window_state.hpp"
#include "window/window_runtime.hpp"

#include <utility>

// Notifications, flushes and barriers.
namespace tonari::window {

Status WindowState::push_notified(GlobalAddress to, std::span<const std::byte> from,
                                  std::uint32_t notification) noexcept {
  const Part* part = nullptr;
  const Status allowed = check(to, from.size(), Rights::write, part);
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
  if (notification >= remote_[part.member].notifications) return Status::bounds;
  if (from.data() == nullptr && !from.empty()) return Status::invalid;
  if (from.size() > remote_notified_bytes_max) {
    const Status status = push(to, from);
    if (status != Status::ok) return status;
    from = {};
  }
  RemoteCopies<Push> copies(engine_.session(), runtime_.client(), place_.number);
  copies.start_notified(target_of(part, to), from, notification + 1);
  return copies.end();
}

// Called after this rank has stored the push of a rank of another host.
void WindowState::count_notification(std::uint32_t notification) noexcept {
  // Release: the data. Sequentially consistent with this rank's falling asleep.
  layout_.notification(layout_.member(self_), notification).fetch_add(1, std::memory_order_seq_cst);
  engine_.wake_self();
}

std::uint64_t WindowState::notified(std::uint32_t notification) const noexcept {
  const Member& own = layout_.member(self_);
  if (notification >= own.notifications) return 0;
  // A thread that polls here may be the only one that looks at the network.
  if (remote_ != nullptr && !engine_.session().settings().service_thread) engine_.progress();
  return layout_.notification(own, notification).load(std::memory_order_acquire);  // acquire: the data
}

Status WindowState::wait_notified(std::uint32_t notification, std::uint64_t count) noexcept {
  const Member& own = layout_.member(self_);
  if (notification >= own.notifications) return Status::bounds;
  const std::atomic<std::uint64_t>& counted = layout_.notification(own, notification);
  // Each death is returned once, also if it came before the call: the dead rank may be the one that wanted to notify.
  const std::size_t told = gone_told_.load(std::memory_order_relaxed);
  const auto has_come = [&counted, count] { return counted.load(std::memory_order_seq_cst) >= count; };
  fabric::wait_until(
      engine_, [this, has_come, told] { return has_come() || count_gone() > told; }, job::Wait::notification, -1);
  if (has_come()) return Status::ok;
  gone_told_.store(count_gone(), std::memory_order_relaxed);  // threads that wait at the same time all get it
  return Status::peer_gone;
}

// Within a host, all pushes were made by this processor: they only have to be ordered before later accesses.
Status WindowState::flush() noexcept {
  flushes_.fetch_add(1, std::memory_order_seq_cst);
  return Status::ok;
}

Status WindowState::flush(int rank) noexcept {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= parts_.size() || parts_[index].state == nullptr) return Status::bounds;
  if (!engine_.session().alive(rank)) return Status::peer_gone;
  return flush();
}

Status WindowState::begin_barrier(Meeting& meeting) noexcept {
  if (layout_.header().alone != 0) return Status::invalid;
  meeting = {.round = ++barriers_};
  // Release: everything this rank did. Sequentially consistent with a sleeper's look: either it sees this, or this rank
  // sees it asleep.
  layout_.arrival(self_).store(meeting.round, std::memory_order_seq_cst);
  wake_others();
  return Status::ok;
}

bool WindowState::barrier_ready(const Meeting& meeting) const noexcept {
  if (meeting.next < here_.size()) {
    const std::size_t member = here_[meeting.next];
    // Acquire: everything that rank did before.
    return layout_.arrival(member).load(std::memory_order_seq_cst) >= meeting.round || is_gone(member);
  }
  if (!is_leader()) return released(meeting.round) || is_gone(here_.front());
  if (meeting.exchange >= host_barrier_.exchanges()) return true;
  const int rank = host_barrier_.awaited(meeting.exchange);
  return round_of(host_barrier_.heard(meeting.exchange, meeting.round)) >= meeting.round ||
         is_gone(static_cast<std::size_t>(job::position_in(group_, rank)));
}

bool WindowState::step_barrier(Meeting& meeting) noexcept {
  // With several hosts, only the leaders check that all ranks of their host have come.
  if (remote_ != nullptr && !is_leader()) meeting.next = here_.size();
  return step_barrier_here(meeting) && (remote_ == nullptr || step_barrier_between_hosts(meeting));
}

bool WindowState::step_barrier_here(Meeting& meeting) const noexcept {
  for (; meeting.next < here_.size(); ++meeting.next) {
    if (!barrier_ready(meeting)) return false;
    // Looks again: the rank may have come, and gone then.
    if (layout_.arrival(here_[meeting.next]).load(std::memory_order_seq_cst) < meeting.round) {
      meeting.status = Status::peer_gone;
    }
  }
  return true;
}

bool WindowState::step_barrier_between_hosts(Meeting& meeting) noexcept {
  std::atomic<std::uint64_t>& all_have_come = layout_.header().released;
  if (!is_leader()) {
    if (!barrier_ready(meeting)) return false;
    // Looks again, as above. A member that is told of a later round instead of this one was taken for gone.
    const bool told = all_have_come.load(std::memory_order_seq_cst) == met_of(meeting.round, false);
    if (!told) meeting.status = Status::peer_gone;
    return true;
  }
  for (; meeting.exchange < host_barrier_.exchanges(); ++meeting.exchange, meeting.told = false) {
    const bool gone = meeting.status != Status::ok;
    if (!std::exchange(meeting.told, true)) host_barrier_.tell(meeting.exchange, meeting.round, gone);
    if (!barrier_ready(meeting)) return false;
    const bool told = host_barrier_.heard(meeting.exchange, meeting.round) == met_of(meeting.round, false);
    if (!told) meeting.status = Status::peer_gone;
  }
  // Release: everything that all ranks had pushed. Sequentially consistent with the others' falling asleep.
  all_have_come.store(met_of(meeting.round, meeting.status != Status::ok), std::memory_order_seq_cst);
  wake_others();
  return true;
}

// Returns the rank that a barrier waits for.
int WindowState::awaited(const Meeting& meeting) const noexcept {
  if (meeting.next < here_.size()) return rank_of(here_[meeting.next]);
  return is_leader() ? host_barrier_.awaited(meeting.exchange) : rank_of(here_.front());
}

Status WindowState::barrier() noexcept {
  Meeting meeting;
  const Status begun = begin_barrier(meeting);
  if (begun != Status::ok) return begun;
  while (!step_barrier(meeting)) {
    fabric::wait_until(
        engine_, [&] { return barrier_ready(meeting); }, job::Wait::barrier, awaited(meeting));
  }
  return meeting.status;
}

Status WindowState::barrier_with_multicast(std::uint64_t offset, std::span<const std::byte> from) noexcept {
  if (layout_.header().alone != 0) return Status::invalid;
  const Status given = from.empty() ? Status::ok : multicast_to_all(offset, from);
  const Status met = barrier();
  return given == Status::ok ? met : given;
}

}  // namespace tonari::window
