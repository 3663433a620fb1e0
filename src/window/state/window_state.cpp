#include "window/state/window_state.hpp"

#include "job/group.hpp"
#include "job/pool.hpp"
#include "window/remote/heads.hpp"
#include "window/window_runtime.hpp"

#include <sched.h>

#include <algorithm>

namespace tonari::window {

WindowState::WindowState(WindowRuntime& runtime, Group group, Place place, const Offer& offer)
    : runtime_(runtime),
      engine_(runtime.engine()),
      place_(std::move(place)),
      layout_(place_.memory->bytes().data()),
      members_(runtime, std::move(group), layout_),
      parts_(engine_, members_, layout_, place_.number),
      barrier_(engine_, runtime.send_queue(), members_, layout_, place_.number),
      locks_(engine_, runtime.send_queue(), runtime.lock_homes(), members_, layout_, place_.number) {
  if (offer.present) parts_.give(offer);
}

void WindowState::tell(int rank, const RemotePart& told) noexcept {
  RemoteMember& member = *members_.find_remote(rank);
  static_cast<RemotePart&>(member) = told;
  member.state.store(PartState::present, std::memory_order_release);
}

void WindowState::pin() {
  runtime_.pins().pin(local());
  pinned_ = local();
}

void WindowState::open() {
  parts_.open(place_.memory->bytes());
  static_cast<detail::PartTable&>(*this) = parts_.table();
}

WindowState::~WindowState() {
  if (!engine_.session().in_own_process()) {
    let_go();
    return;
  }
  runtime_.remove(*this);
  close_keys();  // first: the owners may be waiting for them, as this rank waits for its own
  free_part();
  const std::uint64_t bytes = place_.memory->bytes().size();
  // Acquire and release: the last rank sees that all others are done with it.
  const bool last = layout_.header().holders.fetch_sub(1, std::memory_order_acq_rel) == 1;
  place_.memory.reset();
  if (last && place_.granule != 0) engine_.session().arena().pool().give_back(place_.granule, bytes);
}

// Called in a forked child, which does not have the window. Keeps it for ever, because freeing would write to memory
// that is not there.
void WindowState::let_go() noexcept { new std::shared_ptr<Mapping>(std::move(place_.memory)); }

void WindowState::free_part() noexcept {
  Member& own = layout_.member(members_.self());
  if (own.state.load(std::memory_order_relaxed) != PartState::present) return;
  // Sequentially consistent with reach_program(): either it sees this, or this rank sees its access under way.
  own.state.store(PartState::freed, std::memory_order_seq_cst);
  members_.wake_others();
  if (own.in_program != 0) wait_for_accesses();
  if (members_.spans_hosts()) {
    runtime_.lock_homes().close(place_.number);
    tell_remote_ranks_freed();
    runtime_.given_keys().take_back(place_.number);
  }
  runtime_.pins().unpin(pinned_);
  pinned_ = {};
}

// Waits for ranks of this host. Accesses for ranks of other hosts are made by this process, and are over:
// WindowRuntime::remove().
void WindowState::wait_for_accesses() const noexcept {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    while (layout_.accesses(i, members_.self()).load(std::memory_order_seq_cst) != 0 &&
           engine_.session().alive(members_.rank_of(i))) {
      ::sched_yield();
    }
  }
}

void WindowState::tell_remote_ranks_freed() noexcept {
  const fabric::Head head = plain_head(Kind::window_freed, engine_.session().rank(), place_.number);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (!members_.remote(i).counts_on_us.load(std::memory_order_relaxed)) continue;
    runtime_.send_queue().post(members_.rank_of(i), head, fabric::Lane::request);
  }
}

void WindowState::close_keys() noexcept {
  if (!members_.spans_hosts()) return;
  for (std::size_t i = 0; i < members_.size(); ++i) members_.remote(i).key.close(runtime_);
}

void WindowState::take_freed(int rank) noexcept {
  RemoteMember* const member = members_.find_remote(rank);
  if (member == nullptr) return;  // malformed: drop it
  member->state.store(PartState::freed, std::memory_order_release);
  member->key.close(runtime_);
}

std::vector<std::byte> WindowState::key_for(int peer) {
  const bool for_all = std::ranges::all_of(
      parts_.given(), [](Rights rights) { return includes(rights, Rights::read) && includes(rights, Rights::write); });
  std::byte* there = nullptr;
  const Status allowed = parts_.check_request(peer, 0, parts_.own().size(), Rights::read, there);
  if (!for_all || allowed != Status::ok) return {};
  return runtime_.given_keys().give(place_.number, {there, parts_.own().size()}, peer);
}

void WindowState::key_not_given(int peer) noexcept { runtime_.given_keys().returned(place_.number, peer); }

Status WindowState::admit(int rank, Reached& reached) noexcept {
  const int position = job::position_in(group(), rank);
  const Member& own = layout_.member(members_.self());
  if (layout_.header().alone == 0 || position < 0 || !members_.spans_hosts()) return Status::bounds;
  if (!parts_.is_present()) return Status::bounds;
  const auto index = static_cast<std::size_t>(position);
  // before this rank frees it: WindowRuntime::remove()
  members_.remote(index).counts_on_us.store(true, std::memory_order_relaxed);
  reached = {.bytes = parts_.own().size(),
             .locks = own.locks,
             .notifications = own.notifications,
             .rights = parts_.given()[index],
             .in_program = parts_.own_in_program() ? std::uint8_t{1} : std::uint8_t{0},
             .reserved = {}};
  return Status::ok;
}

std::unique_ptr<LockHome> WindowState::make_lock_home() const {
  if (!members_.spans_hosts() || !parts_.is_present()) return {};
  return std::make_unique<LockHome>(engine_, runtime_.send_queue(), group(), place_.memory, place_.number,
                                    place_.granule);
}

std::span<std::byte> WindowState::local() const noexcept {
  const Member& own = layout_.member(members_.self());
  if (own.state.load(std::memory_order_relaxed) != PartState::present) return {};
  return parts_.own();
}

std::uint64_t WindowState::bytes(int rank) const noexcept {
  const Part* const part = parts_.find(JobRank{rank});
  return part != nullptr ? part->bytes : 0;
}

Status WindowState::check_regions(std::span<const Region> regions, std::size_t bytes) noexcept {
  const bool inside = std::ranges::all_of(regions, [bytes](const Region& region) {
    return region.bytes <= bytes && region.offset <= bytes - region.bytes;
  });
  return inside ? Status::ok : Status::bounds;
}

bool WindowState::contains(GlobalAddress address, std::uint64_t bytes) const noexcept {
  const Part* part = nullptr;
  return parts_.check(address, bytes, Rights::none, part) == Status::ok;
}

std::byte* WindowState::direct(GlobalAddress address, std::uint64_t bytes) const noexcept {
  const Part* part = nullptr;
  if (parts_.check(address, bytes, Rights::none, part) != Status::ok || part->mapped == nullptr) return nullptr;
  return part->rights == Rights::none ? nullptr : part->at(address.offset);
}

}  // namespace tonari::window
