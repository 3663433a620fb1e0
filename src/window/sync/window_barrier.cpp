#include "window/sync/window_barrier.hpp"

#include "fabric/wait.hpp"
#include "job/group.hpp"

#include <utility>

namespace tonari::window {

WindowBarrier::WindowBarrier(fabric::Engine& engine, fabric::SendQueue& send_queue, const Members& members,
                             const Layout& layout, std::uint32_t window)
    : engine_(engine), members_(members), layout_(layout), host_barrier_(engine, send_queue) {
  if (members.spans_hosts()) host_barrier_.open(members.leaders(), window);
}

Status WindowBarrier::begin(Meeting& meeting) noexcept {
  if (layout_.header().alone != 0) return Status::invalid;
  meeting = {.round = ++rounds_};
  // Release: everything this rank did. Sequentially consistent with a sleeper's look: either it sees this, or this rank
  // sees it asleep.
  layout_.arrival(members_.self()).store(meeting.round, std::memory_order_seq_cst);
  members_.wake_others();
  return Status::ok;
}

bool WindowBarrier::ready(const Meeting& meeting) const noexcept {
  if (meeting.next < members_.here().size()) {
    const std::size_t member = members_.here()[meeting.next];
    // Acquire: everything that rank did before.
    return layout_.arrival(member).load(std::memory_order_seq_cst) >= meeting.round || members_.is_gone(member);
  }
  if (!members_.is_leader()) return released(meeting.round) || members_.is_gone(members_.here().front());
  if (meeting.exchange >= host_barrier_.exchanges()) return true;
  const int rank = host_barrier_.awaited(meeting.exchange);
  return round_of(host_barrier_.heard(meeting.exchange, meeting.round)) >= meeting.round ||
         members_.is_gone(static_cast<std::size_t>(job::position_in(members_.group(), rank)));
}

bool WindowBarrier::step(Meeting& meeting) noexcept {
  // With several hosts, only the leaders check that all ranks of their host have come.
  if (members_.spans_hosts() && !members_.is_leader()) meeting.next = members_.here().size();
  return step_here(meeting) && (!members_.spans_hosts() || step_between_hosts(meeting));
}

bool WindowBarrier::step_here(Meeting& meeting) const noexcept {
  for (; meeting.next < members_.here().size(); ++meeting.next) {
    if (!ready(meeting)) return false;
    // Looks again: the rank may have come, and gone then.
    if (layout_.arrival(members_.here()[meeting.next]).load(std::memory_order_seq_cst) < meeting.round) {
      meeting.status = Status::peer_gone;
    }
  }
  return true;
}

bool WindowBarrier::step_between_hosts(Meeting& meeting) noexcept {
  std::atomic<std::uint64_t>& all_have_come = layout_.header().released;
  if (!members_.is_leader()) {
    if (!ready(meeting)) return false;
    // Looks again, as above. A member that is told of a later round instead of this one was taken for gone.
    const bool told = all_have_come.load(std::memory_order_seq_cst) == met_of(meeting.round, false);
    if (!told) meeting.status = Status::peer_gone;
    return true;
  }
  for (; meeting.exchange < host_barrier_.exchanges(); ++meeting.exchange, meeting.told = false) {
    const bool gone = meeting.status != Status::ok;
    if (!std::exchange(meeting.told, true)) host_barrier_.tell(meeting.exchange, meeting.round, gone);
    if (!ready(meeting)) return false;
    const bool told = host_barrier_.heard(meeting.exchange, meeting.round) == met_of(meeting.round, false);
    if (!told) meeting.status = Status::peer_gone;
  }
  // Release: everything that all ranks had pushed. Sequentially consistent with the others' falling asleep.
  all_have_come.store(met_of(meeting.round, meeting.status != Status::ok), std::memory_order_seq_cst);
  members_.wake_others();
  return true;
}

// Returns the rank that a barrier waits for.
int WindowBarrier::awaited(const Meeting& meeting) const noexcept {
  if (meeting.next < members_.here().size()) return members_.rank_of(members_.here()[meeting.next]);
  return members_.is_leader() ? host_barrier_.awaited(meeting.exchange) : members_.rank_of(members_.here().front());
}

Status WindowBarrier::wait() noexcept {
  Meeting meeting;
  const Status begun = begin(meeting);
  if (begun != Status::ok) return begun;
  while (!step(meeting)) {
    fabric::wait_until(
        engine_, [&] { return ready(meeting); }, job::Wait::barrier, awaited(meeting));
  }
  return meeting.status;
}

}  // namespace tonari::window
