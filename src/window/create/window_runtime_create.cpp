#include "base/error.hpp"
#include "fabric/wait.hpp"
#include "job/group.hpp"
#include "job/pool.hpp"
#include "window/remote/heads.hpp"
#include "window/window_runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

// Makes windows on one host, and attaches to local windows of this host.
namespace tonari::window {

using fabric::Head;

namespace {

constexpr std::uint32_t locks_max = 1 << 20;
constexpr std::uint32_t notifications_max = 1 << 20;

// Returns the error in an offer; empty if there is none.
std::string objection(const job::Session& session, const Group& group, const Offer& offer) {
  const WindowOptions& options = offer.options;
  if (offer.in_program && session.is_paged(offer.memory, offer.bytes)) {
    return "its memory is a shared array or heap: ranks have copies of it, which pushes would not update; read and "
           "write the array itself instead";
  }
  if (offer.in_program && offer.memory == nullptr && offer.bytes != 0) return "its memory has a size but no address";
  if (offer.bytes > part_bytes_max)
    return fmt::format("its part has {} bytes: no process has so much address space", offer.bytes);
  if (options.locks > locks_max || options.notifications > notifications_max) {
    return fmt::format("it has {} locks and {} notifications: use at most {} of each", options.locks,
                       options.notifications, locks_max);
  }
  std::set<JobRank> seen;
  for (const auto& [rank, rights] : options.rights_of) {
    if (!group.position(rank)) {
      return fmt::format("its options give rights to rank {}, which is not in its group", rank.value());
    }
    if (!seen.insert(rank).second) return fmt::format("its options give rights to rank {} twice", rank.value());
  }
  return {};
}

Gift gift_of(const Join& join) noexcept {
  return {.bytes = join.bytes,
          .locks = join.locks,
          .notifications = join.notifications,
          .in_program = (join.flags & join_in_program) != 0,
          .rights_differ = (join.flags & join_rights_differ) != 0};
}

Join join_of(const Offer& offer) noexcept {
  return {
      .group = 0,
      .bytes = offer.bytes,
      .sequence = 0,
      .locks = offer.options.locks,
      .notifications = offer.options.notifications,
      .flags = (offer.in_program ? join_in_program : 0) | (offer.options.rights_of.empty() ? 0 : join_rights_differ)};
}

}  // namespace

std::shared_ptr<WindowState> WindowRuntime::make(const Group& group, const Offer& offer) {
  job::Session& session = engine_.session();
  if (job::position_in(group, session.rank()) < 0) {
    throw SetupError(fmt::format("making a window: rank {} is not in its group", session.rank()));
  }
  if (!std::ranges::all_of(group.ranks(), [&session](JobRank rank) { return rank < session.size(); })) {
    throw SetupError(fmt::format("making a window: its group has ranks beyond the job's {}", session.size()));
  }
  const Making making = begin(group);
  const LaidOut memory = make_here(making, offer, objection(engine_.session(), group, offer));
  std::shared_ptr<WindowState> state;
  try {
    RemoteParts parts;
    const std::uint32_t number = agree(making, number_of_granule(memory.granule), offer, parts);
    state = std::make_shared<WindowState>(*this, group, place_of(memory, number), offer);
    for (const auto& [rank, part] : parts) state->tell(rank, part);
    if (offer.options.pinned) state->pin();
    publish(state);
    wait_for_members(making, state->layout().header());
  } catch (...) {
    if (!state) let_go(memory);  // otherwise ~WindowState() does it
    tell_ready(making, join_refused);
    throw;
  }
  tell_ready(making, 0);
  wait_for_remote(making);
  state->open();
  return state;
}

WindowRuntime::Making WindowRuntime::begin(const Group& group) {
  Making making{group, number_of(group)};
  making.sequence = rendezvous_.next(making.name);
  for (const JobRank member : group.ranks()) {
    const int rank = member.value();
    (engine_.is_remote(rank) ? making.remote : making.here).push_back(rank);
  }
  return making;
}

// Makes the window with the ranks of this host. A rank that fails here has told all others.
WindowRuntime::LaidOut WindowRuntime::make_here(const Making& making, const Offer& offer, const std::string& wrong) {
  try {
    join(making, offer, !wrong.empty());
    const bool first = making.here.front() == engine_.session().rank();
    const LaidOut memory = first ? make_for_all(making) : wait_for_first(making);
    if (!wrong.empty()) throw SetupError("making a window: " + wrong);
    if (memory.granule != 0) return memory;
    throw_if_gone(making);
    throw SetupError("making a window: another rank failed: see its error message");
  } catch (...) {
    tell_remote(making, 0, offer, join_refused);
    throw;
  }
}

Place WindowRuntime::place_of(const LaidOut& memory, std::uint32_t number) const {
  return {engine_.session().arena().pool().map(memory.granule, memory.bytes), number, memory.granule};
}

// Lets go of a window that this rank could not hold. If not even its first lines can be mapped, the memory stays until
// the job ends.
void WindowRuntime::let_go(const LaidOut& memory) noexcept {
  job::Pool& pool = engine_.session().arena().pool();
  try {
    const Mapping lines = pool.look(memory.granule, sizeof(Header));
    // Acquire and release, as in ~WindowState().
    const bool last = Layout(lines.bytes().data()).header().holders.fetch_sub(1, std::memory_order_acq_rel) == 1;
    if (last) pool.give_back(memory.granule, memory.bytes);
  } catch (const SetupError&) {
  }
}

void WindowRuntime::join(const Making& making, const Offer& offer, bool refused) {
  Join mine = join_of(offer);
  mine.group = making.name;
  mine.sequence = making.sequence;
  if (refused) mine.flags |= join_refused;
  const Head head = head_of(Kind::window_join, engine_.session().rank(), mine);
  if (making.here.front() == engine_.session().rank()) {
    rendezvous_.receive(head);
  } else {
    send(making.here.front(), head);
  }
}

// Called by the first rank of this host: tells the others there, also if it fails.
WindowRuntime::LaidOut WindowRuntime::make_for_all(const Making& making) {
  const Group& group = making.group;
  const job::Session& session = engine_.session();
  const Rendezvous::Key key{making.name, making.sequence, Kind::window_join};
  fabric::wait_until(
      engine_, [&] { return rendezvous_.has_all(key, making.here) || first_gone(making) >= 0; }, job::Wait::window, -1);
  std::vector<Gift> gifts(static_cast<std::size_t>(group.size()), Gift{.present = false});
  bool refused = false;
  std::size_t joined = 0;
  for (const Head& head : rendezvous_.take(key, making.here)) {
    const int position = job::position_in(group, static_cast<int>(head.source));
    const auto join = head.as<Join>();
    gifts[static_cast<std::size_t>(position)] = gift_of(join);
    refused = refused || (join.flags & join_refused) != 0;
    ++joined;
  }
  LaidOut made;
  std::exception_ptr failure;
  try {
    if (joined < making.here.size()) throw_if_gone(making);
    if (!refused) made = lay_out(group, gifts, false);
  } catch (...) {
    failure = std::current_exception();
  }
  const window::Made told{
      .group = making.name, .bytes = made.bytes, .sequence = making.sequence, .granule = made.granule};
  const Head head = head_of(Kind::window_made, session.rank(), told);
  for (const int rank : making.here) {
    if (rank != session.rank()) send(rank, head);
  }
  if (failure) std::rethrow_exception(failure);
  return made;
}

WindowRuntime::LaidOut WindowRuntime::lay_out(const Group& group, std::span<const Gift> gifts, bool alone) {
  std::vector<Member> members(gifts.size());
  const std::uint64_t bytes = Layout::lay_out(gifts, members);
  if (bytes == 0 || bytes > part_bytes_max) {
    throw SetupError(
        fmt::format("making a window: the parts of its {} ranks together need more address space than a process has",
                    group.size()));
  }
  job::Pool& pool = engine_.session().arena().pool();
  const std::uint32_t granule = pool.take(bytes);
  static_cast<void>(number_of_granule(granule));  // throws if no number is left
  const std::shared_ptr<Mapping> memory = pool.map(granule, bytes);
  const Layout layout(memory->bytes().data());
  for (std::size_t i = 0; i < members.size(); ++i) {
    Member& member = layout.member(i);
    member.in_program = members[i].in_program;
    member.bytes = members[i].bytes;
    member.place = members[i].place;
    member.rights_at = members[i].rights_at;
    member.notifications_at = members[i].notifications_at;
    member.locks_at = members[i].locks_at;
    member.notifications = members[i].notifications;
    member.locks = members[i].locks;
  }
  Header& header = layout.header();
  header.here = static_cast<std::uint32_t>(std::ranges::count(gifts, true, &Gift::present));
  header.members = static_cast<std::uint32_t>(gifts.size());
  header.bytes = bytes;
  header.alone = alone ? 1 : 0;
  header.holders.store(alone ? 1 : header.here,
                       std::memory_order_relaxed);  // published by the head that announces it
  header.magic = header_magic ^ granule;
  return {granule, bytes};
}

WindowRuntime::LaidOut WindowRuntime::wait_for_first(const Making& making) {
  const Rendezvous::Key key{making.name, making.sequence, Kind::window_made};
  const std::array<int, 1> first{making.here.front()};
  fabric::wait_until(
      engine_, [&] { return rendezvous_.has_all(key, first) || first_gone(making) >= 0; }, job::Wait::window,
      first.front());
  const std::vector<Head> heads = rendezvous_.take(key, first);
  if (heads.empty()) throw_if_gone(making);
  const auto told = heads.front().as<window::Made>();
  return {told.granule, told.bytes};
}

// Announces that this rank's line is complete, and waits for the lines of the other ranks of this host.
void WindowRuntime::wait_for_members(const Making& making, Header& header) {
  // Release: this rank's line. Sequentially consistent with the others' falling asleep.
  header.ready.fetch_add(1, std::memory_order_seq_cst);
  for (const int rank : making.here) engine_.wake_if_asleep(rank);
  const auto all_are = [&header] {
    return header.ready.load(std::memory_order_seq_cst) == header.here;  // acquire: their lines
  };
  const auto one_is_not = [&] {
    const auto is_refused_by = [&](const std::vector<int>& ranks) {
      return rendezvous_.is_refused({making.name, making.sequence, Kind::window_ready}, ranks);
    };
    return is_refused_by(making.here) || is_refused_by(making.remote);
  };
  fabric::wait_until(
      engine_, [&] { return all_are() || one_is_not() || first_gone(making) >= 0; }, job::Wait::window, -1);
  if (one_is_not()) throw SetupError("making a window: another rank failed: see its error message");
  if (!all_are()) throw_if_gone(making);
}

// Returns true if the rank has died or left, so that waiting for it is useless.
bool WindowRuntime::is_gone(int rank) const noexcept {
  if (engine_.is_remote(rank)) return has_gone(rank);
  return engine_.session().arena().block(rank).phase.load(std::memory_order_acquire) >= job::Phase::leaving;
}

// Returns the first rank, on any host, that has died or left; -1 if there is none. The window cannot be made without
// it, and other ranks may have stopped waiting already.
int WindowRuntime::first_gone(const Making& making) const noexcept {
  // `left` counts dead ranks, too.
  if (engine_.session().arena().header().left.load(std::memory_order_acquire) == 0) return -1;
  const auto& ranks = making.group.ranks();
  const auto found = std::ranges::find_if(ranks, [this](JobRank rank) { return is_gone(rank.value()); });
  return found == ranks.end() ? -1 : found->value();
}

void WindowRuntime::throw_if_gone(const Making& making) const {
  const int gone = first_gone(making);
  if (gone >= 0)
    throw SetupError(fmt::format("making a window: rank {} died or left before the window was made", gone));
}

std::shared_ptr<WindowState> WindowRuntime::make_alone(const Offer& offer) {
  job::Session& session = engine_.session();
  const Group group = Group::first(session.size());
  if (const std::string wrong = objection(engine_.session(), group, offer); !wrong.empty()) {
    throw SetupError("making a window: " + wrong);
  }
  std::vector<Gift> gifts(static_cast<std::size_t>(session.size()), Gift{.present = false});
  gifts[static_cast<std::size_t>(session.rank())] = gift_of(join_of(offer));
  const LaidOut memory = lay_out(group, gifts, true);
  std::shared_ptr<WindowState> state;
  try {
    state = std::make_shared<WindowState>(*this, group, place_of(memory, number_of_granule(memory.granule)), offer);
  } catch (...) {
    let_go(memory);
    throw;
  }
  if (offer.options.pinned) state->pin();
  publish(state);
  state->open();
  return state;
}

// One state for all threads of this rank, because a rank uses each lock as one.
std::shared_ptr<WindowState> WindowRuntime::reach(GlobalAddress address) {
  const std::lock_guard guard(reached_mutex_);
  const auto found = reached_.find(address.window);
  if (found != reached_.end()) {
    auto state = found->second.lock();
    if (state && state->contains({address.window, address.rank, 0}, 0)) return state;
    while (!state && is_known(address.window)) ::sched_yield();  // another thread is just destroying it
  }
  std::erase_if(reached_, [](const auto& each) { return each.second.expired(); });
  auto state = reach_anew(address);
  reached_[address.window] = state;
  return state;
}

std::shared_ptr<WindowState> WindowRuntime::reach_anew(GlobalAddress address) {
  const job::Session& session = engine_.session();
  const bool is_rank = address.rank.index() < static_cast<std::size_t>(session.size());  // false if negative, too
  const bool is_remote = is_rank && engine_.is_remote(address.rank.value());
  return is_remote ? reach_remote(address) : reach_here(address);
}

std::shared_ptr<WindowState> WindowRuntime::reach_here(GlobalAddress address) {
  job::Session& session = engine_.session();
  job::Pool& pool = session.arena().pool();
  const std::uint32_t granule = address.window / static_cast<std::uint32_t>(session.domains());
  const auto refuse = [address](std::string_view why) {
    throw SetupError(fmt::format("reaching window {} of rank {}: {}", address.window, address.rank.value(), why));
  };
  const bool is_rank = address.rank.index() < static_cast<std::size_t>(session.size());
  const bool is_here = domain_of(address.window) == session.domain(session.rank());
  if (!pool.is_taken(granule) || !is_rank || !is_here) refuse("there is no such window");
  if (address.rank == static_cast<std::uint32_t>(session.rank()))
    refuse("it is this rank's own window: use the Window that made it");
  const Mapping first = pool.look(granule, Layout::fixed_bytes(static_cast<std::size_t>(session.size())));
  const Layout layout(first.bytes().data());
  Header& header = layout.header();
  if (header.magic != (header_magic ^ granule)) refuse("there is no such window, or it was freed");
  if (header.alone == 0) refuse("it belongs to a group: all ranks of the group make it together");
  std::uint32_t holders = header.holders.load(std::memory_order_relaxed);
  // Not if the last holder has gone, because then the memory is given back. Acquire: the complete window.
  while (holders != 0 && !header.holders.compare_exchange_weak(holders, holders + 1, std::memory_order_acquire)) {
  }
  if (holders == 0) refuse("it was freed");
  const auto let_go = [&header] { header.holders.fetch_sub(1, std::memory_order_release); };
  if (layout.member(address.rank.index()).state.load(std::memory_order_acquire) != PartState::present) {
    let_go();
    refuse("it was freed, or belongs to another rank");
  }
  std::shared_ptr<WindowState> state;
  try {
    const Place place{pool.map(granule, header.bytes), address.window, granule};
    state = std::make_shared<WindowState>(*this, Group::first(session.size()), place,
                                          Offer{.options = {}, .present = false});
  } catch (...) {
    let_go();  // later its destructor does it
    throw;
  }
  state->open();
  return state;
}

}  // namespace tonari::window
