#include "window/state/window_state.hpp"

#include "base/error.hpp"
#include "job/group.hpp"
#include "job/pool.hpp"
#include "window/remote/heads.hpp"
#include "window/window_runtime.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>

namespace tonari::window {

namespace {

constexpr int protection_of(Rights rights) noexcept {
  if (includes(rights, Rights::write) || includes(rights, Rights::atomic)) return PROT_READ | PROT_WRITE;
  return includes(rights, Rights::read) ? PROT_READ : PROT_NONE;
}

}  // namespace

WindowState::WindowState(WindowRuntime& runtime, Group group, Place place, const Offer& offer)
    : runtime_(runtime),
      engine_(runtime.engine()),
      group_(std::move(group)),
      self_(static_cast<std::size_t>(job::position_in(group_, runtime.engine().session().rank()))),
      place_(std::move(place)),
      layout_(place_.memory->bytes().data()),
      parts_(static_cast<std::size_t>(runtime.engine().session().size())),
      host_barrier_(runtime.engine(), runtime.send_queue()),
      locks_(runtime.engine(), layout_, group_, self_) {
  find_hosts();
  if (offer.present) complete_own_line(offer);
}

// Finds the members of this host, and the leaders of the other hosts.
void WindowState::find_hosts() {
  const job::Session& session = engine_.session();
  std::vector<int> leaders;
  std::vector<int> domains;
  for (std::size_t i = 0; i < size(); ++i) {
    if (!engine_.is_remote(rank_of(i))) here_.push_back(i);
    const int domain = session.domain(rank_of(i));
    if (std::ranges::find(domains, domain) != domains.end()) continue;
    domains.push_back(domain);
    leaders.push_back(rank_of(i));
  }
  if (leaders.size() == 1) return;
  remote_ = std::make_unique<RemoteMember[]>(size());
  host_barrier_.open(std::move(leaders), place_.number);
  locks_.reach_remote(runtime_.send_queue(), runtime_.lock_homes(), place_.number, remote_.get());
  const bool alone = layout_.header().alone != 0;  // in a local window, only ranks that reach it count on it
  for (std::size_t i = 0; i < size(); ++i) {
    if (engine_.is_remote(rank_of(i))) remote_[i].counts_on_us.store(!alone, std::memory_order_relaxed);
  }
}

void WindowState::tell(int rank, const RemotePart& told) noexcept {
  RemoteMember& member = remote_[static_cast<std::size_t>(job::position_in(group_, rank))];
  static_cast<RemotePart&>(member) = told;
  member.state.store(PartState::present, std::memory_order_release);
}

void WindowState::complete_own_line(const Offer& offer) {
  Member& own = layout_.member(self_);
  own_ = offer.in_program ? offer.memory : layout_.at(own.place);
  own_bytes_ = offer.bytes;
  own_in_program_ = offer.in_program;
  if (offer.in_program) own.place = reinterpret_cast<std::uint64_t>(offer.memory);
  set_rights(offer.options, own);
  own.state.store(PartState::present, std::memory_order_release);  // release: publishes the line
}

void WindowState::set_rights(const WindowOptions& options, Member& own) {
  own.rights = options.rights;
  given_.assign(size(), options.rights);
  for (const auto& [rank, rights] : options.rights_of) {
    given_[group_.position(rank)->index()] = rights;
  }
  if (own.rights_at == 0) return;
  std::ranges::copy(given_, reinterpret_cast<Rights*>(layout_.at(own.rights_at)));
}

void WindowState::pin() {
  runtime_.pins().pin(local());
  pinned_ = local();
}

void WindowState::open() {
  for (std::size_t i = 0; i < size(); ++i) {
    Part& part = parts_[static_cast<std::size_t>(rank_of(i))];
    part.member = i;
    if (engine_.is_remote(rank_of(i))) {
      open_remote(i, part);
    } else {
      open_near(i, part);
    }
  }
  protect_parts();
  is_open_.store(true, std::memory_order_release);
}

void WindowState::open_near(std::size_t index, Part& part) const noexcept {
  const Member& member = layout_.member(index);
  // acquire: pairs with complete_own_line()
  if (member.state.load(std::memory_order_acquire) == PartState::absent) return;
  part.bytes = member.bytes;
  part.state = &member.state;
  part.rights = index == self_ ? Rights::all : layout_.rights(member, self_);
  part.address = member.place;
  if (index == self_) {
    part.mapped = own_;
  } else if (member.in_program == 0) {
    part.mapped = layout_.at(member.place);
  }  // else it is its program's memory, even in this very process: freeing it must wait for accesses under way
}

void WindowState::open_remote(std::size_t index, Part& part) const noexcept {
  const RemoteMember& member = remote_[index];
  part.is_remote = true;
  if (member.state.load(std::memory_order_acquire) == PartState::absent) return;
  part.bytes = member.bytes;
  part.state = &member.state;
  part.rights = member.rights;
}

// Protects parts that this rank has no right to, so that it cannot access them by mistake. Ranks that are threads share
// one mapping.
void WindowState::protect_parts() {
  const std::span<std::byte> all = place_.memory->bytes();
  ::madvise(all.data(), all.size(), MADV_HUGEPAGE);  // a hint
  if (engine_.session().threads()) return;
  for (std::size_t i = 0; i < size(); ++i) {
    const Member& member = layout_.member(i);
    const Part& part = parts_[static_cast<std::size_t>(rank_of(i))];
    const int protection = protection_of(part.rights);
    if (member.in_program != 0 || member.bytes == 0 || part.state == nullptr ||
        protection == (PROT_READ | PROT_WRITE)) {
      continue;
    }
    if (::mprotect(layout_.at(member.place), member.bytes, protection) != 0) {
      throw_system_error("mprotect of a part of a window",
                         "raise vm.max_map_count: each part without all rights is a "
                         "mapping of its own");
    }
  }
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
  Member& own = layout_.member(self_);
  if (own.state.load(std::memory_order_relaxed) != PartState::present) return;
  // Sequentially consistent with reach_program(): either it sees this, or this rank sees its access under way.
  own.state.store(PartState::freed, std::memory_order_seq_cst);
  wake_others();
  if (own.in_program != 0) wait_for_accesses();
  if (remote_ != nullptr) {
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
  for (std::size_t i = 0; i < size(); ++i) {
    while (layout_.accesses(i, self_).load(std::memory_order_seq_cst) != 0 && engine_.session().alive(rank_of(i))) {
      ::sched_yield();
    }
  }
}

void WindowState::tell_remote_ranks_freed() noexcept {
  const fabric::Head head = plain_head(Kind::window_freed, engine_.session().rank(), place_.number);
  for (std::size_t i = 0; i < size(); ++i) {
    if (!remote_[i].counts_on_us.load(std::memory_order_relaxed)) continue;
    runtime_.send_queue().post(rank_of(i), head, fabric::Lane::request);
  }
}

void WindowState::close_keys() noexcept {
  if (remote_ == nullptr) return;
  for (std::size_t i = 0; i < size(); ++i) remote_[i].key.close(runtime_);
}

void WindowState::take_freed(int rank) noexcept {
  const int position = job::position_in(group_, rank);
  if (remote_ == nullptr || position < 0 || !engine_.is_remote(rank)) return;  // malformed: drop it
  RemoteMember& member = remote_[static_cast<std::size_t>(position)];
  member.state.store(PartState::freed, std::memory_order_release);
  member.key.close(runtime_);
}

std::vector<std::byte> WindowState::key_for(int peer) {
  const bool for_all = std::ranges::all_of(
      given_, [](Rights rights) { return includes(rights, Rights::read) && includes(rights, Rights::write); });
  std::byte* there = nullptr;
  const Status allowed = check_request(peer, 0, own_bytes_, Rights::read, there);
  if (!for_all || allowed != Status::ok) return {};
  return runtime_.given_keys().give(place_.number, {there, own_bytes_}, peer);
}

void WindowState::key_not_given(int peer) noexcept { runtime_.given_keys().returned(place_.number, peer); }

Status WindowState::admit(int rank, Reached& reached) noexcept {
  const int position = job::position_in(group_, rank);
  const Member& own = layout_.member(self_);
  if (layout_.header().alone == 0 || position < 0 || remote_ == nullptr) return Status::bounds;
  if (own.state.load(std::memory_order_acquire) != PartState::present) return Status::bounds;
  const auto index = static_cast<std::size_t>(position);
  // before this rank frees it: WindowRuntime::remove()
  remote_[index].counts_on_us.store(true, std::memory_order_relaxed);
  reached = {.bytes = own_bytes_,
             .locks = own.locks,
             .notifications = own.notifications,
             .rights = given_[index],
             .in_program = own_in_program_ ? std::uint8_t{1} : std::uint8_t{0},
             .reserved = {}};
  return Status::ok;
}

std::unique_ptr<LockHome> WindowState::make_lock_home() const {
  if (remote_ == nullptr || layout_.member(self_).state.load(std::memory_order_acquire) != PartState::present)
    return {};
  return std::make_unique<LockHome>(engine_, runtime_.send_queue(), group_, place_.memory, place_.number,
                                    place_.granule);
}

void WindowState::wake_others() noexcept {
  for (std::size_t i = 0; i < size(); ++i) {
    if (i != self_) engine_.wake_if_asleep(job::rank_at(group_, static_cast<int>(i)));
  }
}

std::span<std::byte> WindowState::local() const noexcept {
  const Member& own = layout_.member(self_);
  if (own.state.load(std::memory_order_relaxed) != PartState::present) return {};
  return {own_, own_bytes_};
}

std::uint64_t WindowState::bytes(int rank) const noexcept {
  const auto index = static_cast<std::size_t>(rank);
  return index < parts_.size() ? parts_[index].bytes : 0;
}

Status WindowState::check(GlobalAddress address, std::uint64_t bytes, Rights needed, const Part*& part) const noexcept {
  if (address.window != place_.number || address.rank.index() >= parts_.size()) return Status::bounds;
  const Part& found = parts_[address.rank.index()];
  if (found.state == nullptr || bytes > found.bytes || address.offset > found.bytes - bytes) return Status::bounds;
  if (!includes(found.rights, needed)) return Status::denied;
  if (!engine_.session().alive(address.rank.value())) return Status::peer_gone;
  if (found.state->load(std::memory_order_acquire) != PartState::present) return Status::bounds;
  part = &found;
  return Status::ok;
}

Status WindowState::check_regions(std::span<const Region> regions, std::size_t bytes) noexcept {
  const bool inside = std::ranges::all_of(regions, [bytes](const Region& region) {
    return region.bytes <= bytes && region.offset <= bytes - region.bytes;
  });
  return inside ? Status::ok : Status::bounds;
}

Status WindowState::check_request(int peer, std::uint64_t offset, std::uint64_t bytes, Rights needed,
                                  std::byte*& there) const noexcept {
  const Member& own = layout_.member(self_);
  const int position = job::position_in(group_, peer);
  if (position < 0 || own.state.load(std::memory_order_acquire) != PartState::present || bytes > own_bytes_ ||
      offset > own_bytes_ - bytes) {
    return Status::bounds;
  }
  if (!includes(given_[static_cast<std::size_t>(position)], needed)) return Status::denied;
  there = own_ + offset;
  return Status::ok;
}

bool WindowState::contains(GlobalAddress address, std::uint64_t bytes) const noexcept {
  const Part* part = nullptr;
  return check(address, bytes, Rights::none, part) == Status::ok;
}

std::optional<GlobalAddress> WindowState::global(const void* pointer) const noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  for (std::size_t i = 0; i < size(); ++i) {
    // starts with this rank's own part, the most frequent case
    const JobRank rank = group_.at(Rank{(self_ + i) % size()});
    const Part& part = parts_[rank.index()];
    const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(part.mapped);
    if (part.mapped != nullptr && offset < part.bytes) {
      return GlobalAddress{place_.number, rank, offset};
    }
  }
  return std::nullopt;
}

std::byte* WindowState::direct(GlobalAddress address, std::uint64_t bytes) const noexcept {
  const Part* part = nullptr;
  if (check(address, bytes, Rights::none, part) != Status::ok || part->mapped == nullptr) return nullptr;
  return part->rights == Rights::none ? nullptr : place(*part, address);
}

bool WindowState::is_gone(std::size_t member) const noexcept {
  const int rank = rank_of(member);
  if (engine_.is_remote(rank)) {  // has_gone(): its heads that had arrived are handled
    return runtime_.has_gone(rank) || remote_[member].state.load(std::memory_order_acquire) == PartState::freed;
  }
  return !engine_.session().alive(rank) || runtime_.has_gone(rank) ||
         layout_.member(member).state.load(std::memory_order_acquire) == PartState::freed;
}

std::size_t WindowState::count_gone() const noexcept {
  if (engine_.session().arena().header().deaths.load(std::memory_order_acquire) == 0) return 0;
  return static_cast<std::size_t>(
      std::ranges::count_if(group_.ranks(), [this](JobRank rank) { return !engine_.session().alive(rank.value()); }));
}

}  // namespace tonari::window
