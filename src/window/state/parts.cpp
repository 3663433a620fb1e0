#include "window/state/parts.hpp"

#include "base/error.hpp"
#include "job/arena.hpp"
#include "job/group.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace tonari::window {

namespace {

static_assert(detail::dead_phase == job::Phase::dead);

constexpr int protection_of(Rights rights) noexcept {
  if (includes(rights, Rights::write) || includes(rights, Rights::atomic)) return PROT_READ | PROT_WRITE;
  return includes(rights, Rights::read) ? PROT_READ : PROT_NONE;
}

}  // namespace

Parts::Parts(fabric::Engine& engine, const Members& members, const Layout& layout, std::uint32_t window)
    : engine_(engine),
      members_(members),
      layout_(layout),
      window_(window),
      parts_(static_cast<std::size_t>(engine.session().size())) {}

void Parts::give(const Offer& offer) {
  Member& own = layout_.member(members_.self());
  own_ = offer.in_program ? offer.memory : layout_.at(own.place);
  own_bytes_ = offer.bytes;
  own_in_program_ = offer.in_program;
  if (offer.in_program) own.place = reinterpret_cast<std::uint64_t>(offer.memory);
  set_rights(offer.options, own);
  own.state.store(PartState::present, std::memory_order_release);  // release: publishes the line
}

void Parts::set_rights(const WindowOptions& options, Member& own) {
  own.rights = options.rights;
  given_.assign(members_.size(), options.rights);
  for (const auto& [rank, rights] : options.rights_of) {
    given_[members_.group().position(rank)->index()] = rights;
  }
  if (own.rights_at == 0) return;
  std::ranges::copy(given_, reinterpret_cast<Rights*>(layout_.at(own.rights_at)));
}

void Parts::open(std::span<std::byte> memory) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const int rank = members_.rank_of(i);
    Part& part = parts_[static_cast<std::size_t>(rank)];
    part.member = i;
    part.phase = &engine_.session().arena().block(rank).phase;
    if (engine_.is_remote(rank)) {
      open_remote(i, part);
    } else {
      open_local(i, part);
    }
  }
  protect(memory);
  is_open_.store(true, std::memory_order_release);
}

void Parts::open_local(std::size_t member, Part& part) const noexcept {
  const Member& line = layout_.member(member);
  // acquire: pairs with give()
  if (line.state.load(std::memory_order_acquire) == PartState::absent) return;
  const bool is_own = member == members_.self();
  part.bytes = line.bytes;
  part.state = &line.state;
  part.rights = is_own ? Rights::all : layout_.rights(line, members_.self());
  part.address = line.place;
  if (is_own) {
    part.mapped = own_;
  } else if (line.in_program == 0) {
    part.mapped = layout_.at(line.place);
  }  // else it is its program's memory, even in this very process: freeing it must wait for accesses under way
}

void Parts::open_remote(std::size_t member, Part& part) const noexcept {
  const RemoteMember& told = members_.remote(member);
  part.is_remote = true;
  if (told.state.load(std::memory_order_acquire) == PartState::absent) return;
  part.bytes = told.bytes;
  part.state = &told.state;
  part.rights = told.rights;
}

// Protects parts that this rank has no right to, so that it cannot access them by mistake. Ranks that are threads share
// one mapping.
void Parts::protect(std::span<std::byte> memory) const {
  ::madvise(memory.data(), memory.size(), MADV_HUGEPAGE);  // a hint
  if (engine_.session().threads()) return;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = layout_.member(i);
    const Part& part = parts_[static_cast<std::size_t>(members_.rank_of(i))];
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

Status Parts::check_request(int peer, std::uint64_t offset, std::uint64_t bytes, Rights needed,
                            std::byte*& there) const noexcept {
  const int position = job::position_in(members_.group(), peer);
  if (position < 0 || !is_present() || bytes > own_bytes_ || offset > own_bytes_ - bytes) return Status::bounds;
  if (!includes(given_[static_cast<std::size_t>(position)], needed)) return Status::denied;
  there = own_ + offset;
  return Status::ok;
}

std::optional<GlobalAddress> Parts::global(const void* pointer) const noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    // starts with this rank's own part, the most frequent case
    const JobRank rank = members_.group().at(Rank{(members_.self() + i) % members_.size()});
    const Part& part = parts_[rank.index()];
    const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(part.mapped);
    if (part.mapped != nullptr && offset < part.bytes) return GlobalAddress{window_, rank, offset};
  }
  return std::nullopt;
}

}  // namespace tonari::window
