#include "window/runtime.hpp"

#include "base/error.hpp"
#include "job/pool.hpp"
#include "window/together.hpp"
#include "window/waiting.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <vector>

namespace tonari::window {

using fabric::Head;
using fabric::Kind;

namespace {

constexpr std::size_t layer_index = 1;
constexpr std::uint64_t part_bytes_max = std::uint64_t{1} << 47;  // no process has more addresses
constexpr std::uint32_t locks_max = 1 << 20;
constexpr std::uint32_t notifications_max = 1 << 20;

// Windows lie in memory that all their ranks can map.
bool spans_hosts(fabric::Engine& engine, const Group& group) noexcept {
  const int self = engine.session().rank();
  return std::ranges::any_of(group.ranks(), [&](int rank) { return rank != self && engine.is_far(rank); });
}

// What is wrong with an offer; empty when nothing is.
std::string objection(const Group& group, const Offer& offer) {
  const WindowOptions& options = offer.options;
  if (offer.in_program && offer.memory == nullptr && offer.bytes != 0) return "a window over memory at no address";
  if (offer.bytes > part_bytes_max) return fmt::format("a window of {} bytes: no program has so many", offer.bytes);
  if (options.locks > locks_max || options.notifications > notifications_max) {
    return fmt::format("a window with {} locks and {} notifications: at most {} of each", options.locks,
                       options.notifications, locks_max);
  }
  std::set<int> seen;
  for (const auto& [rank, rights] : options.rights_of) {
    if (group.position(rank) < 0) return fmt::format("rights of rank {}, which is not in the window's group", rank);
    if (!seen.insert(rank).second) return fmt::format("rights of rank {} twice", rank);
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

// A rank that died or left, of which something is awaited; -1 when there is none.
int first_gone(const job::Session& session, const Group& group) noexcept {
  if (session.arena().header().left.load(std::memory_order_acquire) == 0) return -1;  // the dead are counted as well
  const auto found = std::ranges::find_if(group.ranks(), [&session](int rank) {
    return session.arena().block(rank).phase.load(std::memory_order_acquire) >= job::Phase::leaving;
  });
  return found == group.ranks().end() ? -1 : *found;
}

void throw_if_gone(const job::Session& session, const Group& group) {
  const int gone = first_gone(session, group);
  if (gone >= 0) throw SetupError(fmt::format("making a window: rank {} died or left meanwhile", gone));
}

template <class Payload>
Head head_of(Kind kind, int source, const Payload& payload) noexcept {
  Head head;
  head.kind = kind;
  head.inline_bytes = sizeof payload;
  head.source = static_cast<std::uint32_t>(source);
  head.set(payload);
  return head;
}

}  // namespace

Runtime& Runtime::of(job::Session& session) {
  fabric::Engine& engine = fabric::Engine::of(session);
  return engine.layer<Runtime>(layer_index, [&engine] { return std::make_unique<Runtime>(engine); });
}

std::shared_ptr<Access> Runtime::make(const Group& group, const Offer& offer) {
  job::Session& session = engine_.session();
  if (group.position(session.rank()) < 0) {
    throw SetupError(fmt::format("making a window: rank {} is not in the group that it makes it with", session.rank()));
  }
  if (!std::ranges::all_of(group.ranks(), [&session](int rank) { return rank < session.size(); })) {
    throw SetupError(fmt::format("making a window: its group has ranks that the job of {} has not", session.size()));
  }
  if (spans_hosts(engine_, group)) {  // as all of them see
    throw SetupError(
        "making a window: its ranks are on several hosts, which windows cannot span yet; make one of the "
        "ranks of each host");
  }
  const std::uint64_t name = number_of(group);
  const std::uint32_t sequence = meetings_.next(name);
  const std::string wrong = objection(group, offer);
  join(group, name, sequence, offer, !wrong.empty());
  const bool first = group.at(0) == session.rank();
  const Made made = first ? make_for_all(group, name, sequence) : wait_for_first(group, name, sequence);
  if (!wrong.empty()) throw SetupError("making a window: " + wrong);
  if (made.number == 0) throw SetupError("making a window: another rank could not take part, and says why");

  std::shared_ptr<Access> access;
  try {
    auto memory = session.arena().pool().map(made.number, made.bytes);
    access = std::make_shared<Access>(*this, group, std::move(memory), made.number, offer);
    if (offer.options.pinned) access->pin();
    publish(access);
  } catch (...) {
    give_up(group, made.number);
    throw;
  }
  Header& header = access->layout().header();
  // Release: this rank's line. Sequentially consistent with the others' falling asleep.
  header.ready.fetch_add(1, std::memory_order_seq_cst);
  wait_for_members(group, header);
  access->open();
  return access;
}

// Has the others not wait for this rank, which may not have mapped the window.
void Runtime::give_up(const Group& group, std::uint32_t number) {
  const auto bytes = Layout::fixed_bytes(static_cast<std::size_t>(group.size()));
  const Mapping first = engine_.session().arena().pool().look(number, bytes);
  Layout(first.bytes().data()).header().failed.store(1, std::memory_order_seq_cst);
  for (const int rank : group.ranks()) engine_.wake_if_asleep(rank);
}

void Runtime::join(const Group& group, std::uint64_t name, std::uint32_t sequence, const Offer& offer, bool refused) {
  Join mine = join_of(offer);
  mine.group = name;
  mine.sequence = sequence;
  if (refused) mine.flags |= join_refused;
  const Head head = head_of(Kind::window_join, engine_.session().rank(), mine);
  if (group.at(0) == engine_.session().rank()) {
    meetings_.receive(head);
  } else {
    send(group.at(0), head);
  }
}

// By the first of the group: tells the others, whatever comes of it.
Runtime::Made Runtime::make_for_all(const Group& group, std::uint64_t name, std::uint32_t sequence) {
  const auto size = static_cast<std::size_t>(group.size());
  const job::Session& session = engine_.session();
  const Meetings::Key key{name, sequence, Kind::window_join};
  wait_until(
      engine_, [&] { return meetings_.has_all(key, group.ranks()) || first_gone(session, group) >= 0; },
      job::Wait::window, -1);
  std::vector<Gift> gifts(size);
  bool refused = false;
  std::size_t joined = 0;
  for (const Head& head : meetings_.take(key, group.ranks())) {
    const int position = group.position(static_cast<int>(head.source));
    const auto join = head.as<Join>();
    gifts[static_cast<std::size_t>(position)] = gift_of(join);
    refused = refused || (join.flags & join_refused) != 0;
    ++joined;
  }
  Made made;
  std::exception_ptr failure;
  try {
    if (joined < size) throw_if_gone(session, group);
    if (!refused) made = lay_out(group, gifts, false);
  } catch (...) {
    failure = std::current_exception();
  }
  const window::Made told{.group = name, .bytes = made.bytes, .sequence = sequence, .number = made.number};
  const Head head = head_of(Kind::window_made, session.rank(), told);
  for (const int rank : group.ranks()) {
    if (rank != session.rank()) send(rank, head);
  }
  if (failure) std::rethrow_exception(failure);
  return made;
}

Runtime::Made Runtime::lay_out(const Group& group, std::span<const Gift> gifts, bool alone) {
  std::vector<Member> members(gifts.size());
  const std::uint64_t bytes = Layout::lay_out(gifts, members);
  if (bytes == 0 || bytes > part_bytes_max) {
    throw SetupError(
        fmt::format("making a window: what its {} ranks give is more than a program can reach", group.size()));
  }
  job::Pool& pool = engine_.session().arena().pool();
  const std::uint32_t number = pool.take(bytes);
  const std::shared_ptr<Mapping> memory = pool.map(number, bytes);
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
  header.number = number;
  header.members = static_cast<std::uint32_t>(gifts.size());
  header.bytes = bytes;
  header.alone = alone ? 1 : 0;
  header.holders.store(alone ? 1 : header.members,
                       std::memory_order_relaxed);  // published by the head that tells of it
  header.magic = header_magic ^ number;
  return {number, bytes};
}

Runtime::Made Runtime::wait_for_first(const Group& group, std::uint64_t name, std::uint32_t sequence) {
  const job::Session& session = engine_.session();
  const Meetings::Key key{name, sequence, Kind::window_made};
  const std::array<int, 1> first{group.at(0)};
  wait_until(
      engine_, [&] { return meetings_.has_all(key, first) || first_gone(session, group) >= 0; }, job::Wait::window,
      group.at(0));
  const std::vector<Head> heads = meetings_.take(key, first);
  if (heads.empty()) throw_if_gone(session, group);
  const auto told = heads.front().as<window::Made>();
  return {told.number, told.bytes};
}

void Runtime::wait_for_members(const Group& group, const Header& header) {
  const job::Session& session = engine_.session();
  for (const int rank : group.ranks()) engine_.wake_if_asleep(rank);
  const auto all_are = [&header] {
    return header.ready.load(std::memory_order_seq_cst) == header.members;  // acquire: their lines
  };
  const auto one_is_not = [&header] { return header.failed.load(std::memory_order_seq_cst) != 0; };
  wait_until(
      engine_, [&] { return all_are() || one_is_not() || first_gone(session, group) >= 0; }, job::Wait::window, -1);
  if (one_is_not()) throw SetupError("making a window: another rank could not take part, and says why");
  if (!all_are()) throw_if_gone(session, group);
}

std::shared_ptr<Access> Runtime::make_alone(const Offer& offer) {
  job::Session& session = engine_.session();
  const Group group = Group::first(session.size());
  if (const std::string wrong = objection(group, offer); !wrong.empty()) {
    throw SetupError("making a window: " + wrong);
  }
  std::vector<Gift> gifts(static_cast<std::size_t>(session.size()));
  gifts[static_cast<std::size_t>(session.rank())] = gift_of(join_of(offer));
  const Made made = lay_out(group, gifts, true);
  auto memory = session.arena().pool().map(made.number, made.bytes);
  auto access = std::make_shared<Access>(*this, group, std::move(memory), made.number, offer);
  if (offer.options.pinned) access->pin();
  publish(access);
  access->open();
  return access;
}

// One for all of this rank that reach it: in its locks a rank has one voice.
std::shared_ptr<Access> Runtime::reach(GlobalAddress address) {
  const std::lock_guard guard(reached_mutex_);
  std::erase_if(reached_, [](const auto& each) { return each.second.expired(); });
  const auto found = reached_.find(address.window);
  if (found != reached_.end()) {
    auto access = found->second.lock();
    if (access && access->contains({address.window, address.rank, 0}, 0)) return access;
  }
  auto access = reach_anew(address);
  reached_[address.window] = access;
  return access;
}

std::shared_ptr<Access> Runtime::reach_anew(GlobalAddress address) {
  job::Session& session = engine_.session();
  job::Pool& pool = session.arena().pool();
  const auto refuse = [address](std::string_view why) {
    throw SetupError(fmt::format("reaching window {} of rank {}: {}", address.window, address.rank, why));
  };
  const auto is_rank = address.rank < static_cast<std::uint32_t>(session.size());
  if (is_rank && engine_.is_far(static_cast<int>(address.rank))) refuse("it is on another host");
  if (!pool.is_taken(address.window) || !is_rank) {
    refuse("there is no such window");
  }
  if (address.rank == static_cast<std::uint32_t>(session.rank())) refuse("it would be this rank's own");
  const Mapping first = pool.look(address.window, Layout::fixed_bytes(static_cast<std::size_t>(session.size())));
  const Layout layout(first.bytes().data());
  Header& header = layout.header();
  if (header.magic != (header_magic ^ address.window)) refuse("there is no such window, or it was freed");
  if (header.alone == 0) refuse("it belongs to a group, whose ranks make it together");
  std::uint32_t holders = header.holders.load(std::memory_order_relaxed);
  // Not once the last has gone: then the memory is gone, too. Acquire: what was made.
  while (holders != 0 && !header.holders.compare_exchange_weak(holders, holders + 1, std::memory_order_acquire)) {
  }
  if (holders == 0) refuse("it was freed");
  const auto let_go = [&header] { header.holders.fetch_sub(1, std::memory_order_release); };
  if (layout.member(address.rank).state.load(std::memory_order_acquire) != PartState::present) {
    let_go();
    refuse("it was freed, or is another rank's");
  }
  std::shared_ptr<Access> access;
  try {
    access = std::make_shared<Access>(*this, Group::first(session.size()), pool.map(address.window, header.bytes),
                                      address.window, Offer{.options = {}, .present = false});
  } catch (...) {
    let_go();  // from here on its destructor does
    throw;
  }
  access->open();
  return access;
}

void Runtime::publish(const std::shared_ptr<Access>& access) {
  const std::lock_guard guard(known_lock_);
  known_.emplace(access->number(), Known{access.get(), 0});
}

void Runtime::remove(const Access& access) noexcept {
  for (;; ::sched_yield()) {
    const std::lock_guard guard(known_lock_);
    const auto found = known_.find(access.number());
    if (found == known_.end() || found->second.access != &access) return;
    if (found->second.users != 0) continue;  // a request is being served
    known_.erase(found);
    return;
  }
}

void Runtime::receive(std::span<const Head> heads) noexcept {
  for (const Head& head : heads) {
    switch (head.kind) {
      case Kind::window_join:
      case Kind::window_made: meetings_.receive(head); break;
      case Kind::window_access:
      case Kind::window_help: server_.receive(head); break;
      case Kind::window_done: client_.receive(head); break;
      default: break;  // a peer lies
    }
  }
}

void Runtime::run_errands() noexcept {
  const auto use = [this](std::uint32_t window, std::uint32_t users) -> Access* {
    const std::lock_guard guard(known_lock_);
    const auto found = known_.find(window);
    if (found == known_.end()) return nullptr;
    found->second.users += users;
    return found->second.access;
  };
  Head request;
  while (server_.next(request)) {
    const Access* const access = use(request.context, 1);
    const bool is_offer = request.kind == Kind::window_help;
    const bool is_more = is_offer && help(engine_, access, request);
    if (!is_offer) server_.serve(access, request);
    if (access != nullptr) use(request.context, ~std::uint32_t{0});
    if (is_more) return server_.receive(request);  // who waits looks whether it has to
  }
}

// A rank that is gone needs no head.
void Runtime::send(int peer, const Head& head) {
  struct Sending {
    fabric::Engine& engine;
    int peer;
    const Head& head;

    fabric::Step step() noexcept {
      return engine.send(peer, head, fabric::Lane::request) == Status::again ? fabric::Step::retry : fabric::Step::done;
    }
    [[nodiscard]] bool ready() const noexcept { return false; }
    bool attach(fabric::Sleeper*) noexcept { return true; }
    void slow() noexcept { engine.tell_long_wait(job::Wait::room, peer, -1); }
  } sending{engine_, peer, head};
  engine_.wait(sending);
}

}  // namespace tonari::window
