#include "job/group.hpp"
#include "window/local/assisted_copy.hpp"
#include "window/local/checked_copy.hpp"
#include "window/local/diff.hpp"
#include "window/remote/multicast.hpp"
#include "window/remote/rdma_copies.hpp"
#include "window/state/window_state.hpp"
#include "window/window_runtime.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

// The operations that move data.
namespace tonari::window {

namespace {

// Size of the pieces of a multicast: a piece stays in a cache while it is copied to several places, and is long enough
// for a system call.
constexpr std::size_t multicast_piece_bytes = 128 * 1024;

// Longer copies take longer than waking a thread for them.
constexpr std::size_t short_copy_bytes_max = 128 * 1024;

bool is_memory(std::span<const std::byte> bytes) noexcept { return bytes.data() != nullptr || bytes.empty(); }

// Calls `copy(here, there)` with as many regions at a time as one system call takes. A push only reads `here`.
template <class Copy>
Status for_regions(const std::byte* here, std::uint64_t there, std::span<const Region> regions, Copy copy) noexcept {
  constexpr std::size_t count_max = fabric::DirectCopy::stretches_max;
  std::array<iovec, count_max> locals;
  std::array<iovec, count_max> remotes;
  Status status = Status::ok;
  while (!regions.empty() && status == Status::ok) {
    const std::size_t count = std::min(regions.size(), count_max);
    for (std::size_t i = 0; i < count; ++i) {
      locals[i] = {const_cast<std::byte*>(here) + regions[i].offset, regions[i].bytes};  // iovec knows no const
      remotes[i] = {reinterpret_cast<void*>(there + regions[i].offset), regions[i].bytes};
    }
    status = copy(std::span(locals).first(count), std::span(remotes).first(count));
    regions = regions.subspan(count);
  }
  return status;
}

}  // namespace

// Copies from or to memory that is mapped only in its own program. `copy(directly)` copies between the two programs if
// that is permitted, and otherwise with the owner's help.
template <class Copy>
Status WindowState::reach_program(GlobalAddress address, const Part& part, Copy copy) noexcept {
  std::atomic<std::uint64_t>& under_way = layout_.accesses(members_.self(), part.member);
  // Sequentially consistent with free_part(): either it sees the access under way, or this rank sees that the part is
  // freed.
  under_way.fetch_add(1, std::memory_order_seq_cst);
  Status status = Status::bounds;
  if (part.state->load(std::memory_order_seq_cst) == PartState::present) {
    status = copy(engine_.direct_copy(address.rank.value()), part.address + address.offset);
  }
  // release: the copy ends before the memory is used for something else
  under_way.fetch_sub(1, std::memory_order_release);
  return status;
}

// Copies from or to a rank of another host.
template <Direction D>
Status WindowState::copy_remote(const Part& part, GlobalAddress address, typename D::Local* local,
                                std::span<const Region> regions) noexcept {
  RemoteMember& owner = members_.remote(part.member);
  if (regions.size() == 1 && owner.key.use(runtime_, members_.rank_of(part.member), place_.number)) {
    const auto [offset, bytes] = regions.front();
    const Status status =
        copy_by_key<D>(runtime_, owner.key, address.offset + offset, {local + offset, bytes}, owner.in_program);
    owner.key.leave(runtime_);
    return status;
  }
  RemoteCopies<D> copies(engine_.session(), runtime_.origin(), place_.number);
  copies.start(target_of(part, address), local, regions);
  return copies.end();
}

// Copies between `local` and another program's memory.
template <Direction D>
Status WindowState::copy_elsewhere(const Part& part, GlobalAddress address,
                                   std::span<typename D::Local> local) noexcept {
  if (local.empty()) return Status::ok;
  if (part.is_remote) {
    const Region all{0, local.size()};
    return copy_remote<D>(part, address, local.data(), std::span(&all, 1));
  }
  const int owner = address.rank.value();
  if (!copies_directly(part, local)) {
    return runtime_.origin().copy<D>(place_.number, owner, address.offset, local);
  }
  return reach_program(address, part, [&](const fabric::DirectCopy& copy, std::uint64_t there) {
    const LongAccess<D> access{place_.number, owner, address.offset, there, false, local};
    if (const auto together = copy_together(engine_, access)) return *together;
    if constexpr (is_pull<D>) {
      return copy.read(local.data(), there, local.size());
    } else {
      return copy.write(there, local.data(), local.size());
    }
  });
}

// Makes a long access to memory that is mapped here, with the owner's help if it is offered; otherwise returns nullopt.
template <Direction D>
std::optional<Status> WindowState::copy_mapped(const Part& part, GlobalAddress address,
                                               std::span<typename D::Local> local) noexcept {
  const auto there = reinterpret_cast<std::uint64_t>(part.at(address.offset));
  return copy_together(engine_, LongAccess<D>{place_.number, address.rank.value(), address.offset, there, true, local});
}

// Copies from or to memory that is not mapped here, or makes a long access to mapped memory. Not inline, so that short
// accesses to mapped memory need not save the registers that it uses.
template <Direction D>
[[gnu::noinline]] Status WindowState::copy_far_or_long(const Part& part, GlobalAddress address,
                                                       std::span<typename D::Local> local) noexcept {
  if (part.mapped == nullptr) return copy_elsewhere<D>(part, address, local);
  if (const auto together = copy_mapped<D>(part, address, local)) return *together;
  std::byte* const there = part.at(address.offset);
  if constexpr (is_pull<D>) {
    std::memcpy(local.data(), there, local.size());
  } else {
    std::memcpy(there, local.data(), local.size());
  }
  return Status::ok;
}

Status WindowState::read(const Part& part, std::span<std::byte> to, GlobalAddress from) noexcept {
  if (part.mapped == nullptr || to.size() >= copied_together_bytes_min) [[unlikely]] {
    return copy_far_or_long<Pull>(part, from, to);
  }
  copy_bytes(to.data(), part.at(from.offset), to.size());
  return Status::ok;
}

Status WindowState::write(const Part& part, GlobalAddress to, std::span<const std::byte> from) noexcept {
  if (part.mapped == nullptr || from.size() >= copied_together_bytes_min) [[unlikely]] {
    return copy_far_or_long<Push>(part, to, from);
  }
  copy_bytes(part.at(to.offset), from.data(), from.size());
  return Status::ok;
}

bool WindowState::is_long(GlobalAddress address, std::uint64_t bytes) const noexcept {
  if (bytes > short_copy_bytes_max) return true;
  return is_elsewhere(address) && (!engine_.session().direct_copies() || engine_.is_remote(address.rank.value()));
}

Status WindowState::pull(std::span<std::byte> to, GlobalAddress from) noexcept {
  if (!is_memory(to)) return Status::invalid;
  const Part* part = nullptr;
  const Status status = parts_.check(from, to.size(), Rights::read, part);
  return status == Status::ok ? read(*part, to, from) : status;
}

Status WindowState::push(GlobalAddress to, std::span<const std::byte> from) noexcept {
  if (!is_memory(from)) return Status::invalid;
  const Part* part = nullptr;
  const Status status = parts_.check(to, from.size(), Rights::write, part);
  return status == Status::ok ? write(*part, to, from) : status;
}

Status WindowState::pull_with_twin(std::span<std::byte> to, std::span<std::byte> twin, GlobalAddress from) noexcept {
  if (!is_memory(to) || !is_memory(twin) || twin.size() != to.size()) return Status::invalid;
  const Part* part = nullptr;
  Status status = parts_.check(from, to.size(), Rights::read, part);
  if (status != Status::ok) return status;
  if (part->mapped != nullptr) {
    copy_with_twin(to.data(), twin.data(), part->at(from.offset), to.size());
    return Status::ok;
  }
  status = read(*part, to, from);
  if (status == Status::ok && !to.empty()) std::memcpy(twin.data(), to.data(), to.size());
  return status;
}

Status WindowState::pull_regions(std::span<std::byte> to, GlobalAddress from,
                                 std::span<const Region> regions) noexcept {
  if (!is_memory(to)) return Status::invalid;
  const Part* part = nullptr;
  Status status = parts_.check(from, to.size(), Rights::read, part);
  if (status == Status::ok) status = check_regions(regions, to.size());
  if (status != Status::ok) return status;
  if (part->is_remote) return copy_remote<Pull>(*part, from, to.data(), regions);
  if (copies_directly(*part, to)) {
    return reach_program(from, *part, [&](const fabric::DirectCopy& copy, std::uint64_t address) {
      return for_regions(to.data(), address, regions,
                         [&copy](auto here, auto there) { return copy.read(here, there); });
    });
  }
  for (auto region = regions.begin(); region != regions.end() && status == Status::ok; ++region) {
    status = read(*part, to.subspan(region->offset, region->bytes), from + region->offset);
  }
  return status;
}

Status WindowState::write_regions(const Part& part, GlobalAddress to, std::span<const std::byte> from,
                                  std::span<const Region> regions) noexcept {
  if (part.is_remote) return copy_remote<Push>(part, to, from.data(), regions);
  if (copies_directly(part, from)) {
    return reach_program(to, part, [&](const fabric::DirectCopy& copy, std::uint64_t address) {
      return for_regions(from.data(), address, regions,
                         [&copy](auto here, auto there) { return copy.write(here, there); });
    });
  }
  Status status = Status::ok;
  for (auto region = regions.begin(); region != regions.end() && status == Status::ok; ++region) {
    status = write(part, to + region->offset, from.subspan(region->offset, region->bytes));
  }
  return status;
}

Status WindowState::push_regions(GlobalAddress to, std::span<const std::byte> from,
                                 std::span<const Region> regions) noexcept {
  if (!is_memory(from)) return Status::invalid;
  const Part* part = nullptr;
  Status status = parts_.check(to, from.size(), Rights::write, part);
  if (status == Status::ok) status = check_regions(regions, from.size());
  return status == Status::ok ? write_regions(*part, to, from, regions) : status;
}

// Differing bytes go to another program's memory as regions, as many at a time as the stack holds.
Result<std::uint64_t> WindowState::write_difference(const Part& part, GlobalAddress to, std::span<const std::byte> from,
                                                    std::span<const std::byte> twin) noexcept {
  std::array<Region, fabric::DirectCopy::stretches_max> runs;
  std::size_t count = 0;
  Result<std::uint64_t> difference;
  const auto send = [&] {
    difference.status = write_regions(part, to, from, std::span(runs).first(count));
    count = 0;
    return difference.status == Status::ok;
  };
  for_each_run(from.data(), twin.data(), from.size(), [&](std::size_t offset, std::size_t bytes) {
    runs[count++] = {offset, bytes};
    difference.value += bytes;
    return count < runs.size() || send();
  });
  if (difference.status == Status::ok && count != 0) (void)send();
  return difference;
}

Result<std::uint64_t> WindowState::push_diff(GlobalAddress to, std::span<const std::byte> from,
                                             std::span<const std::byte> twin) noexcept {
  if (!is_memory(from) || !is_memory(twin) || twin.size() != from.size()) return {Status::invalid, 0};
  const Part* part = nullptr;
  const Status status = parts_.check(to, from.size(), Rights::write, part);
  if (status != Status::ok) return {status, 0};
  if (part->mapped == nullptr) return write_difference(*part, to, from, twin);
  return {Status::ok, store_differences(part->at(to.offset), from.data(), twin.data(), from.size())};
}

// Pushes to targets on other hosts, one request per host.
template <class Target>
Status WindowState::multicast_remote(RemoteMulticast& relays, std::size_t targets, Target target,
                                     std::span<const std::byte> from) noexcept {
  const job::Session& session = engine_.session();
  Status first_failure = Status::ok;
  for (int domain = 0; domain < session.domains(); ++domain) {
    std::array<MulticastTarget, relayed_max> together;
    std::size_t count = 0;
    bool in_program = false;
    const auto push = [&] {
      if (count != 0) relays.push(std::span(together).first(count), from, in_program);
      count = 0;
    };
    for (std::size_t i = 0; i < targets; ++i) {
      const GlobalAddress to = target(i);
      const Part* const named = parts_.find(to.rank);
      if (named == nullptr || !named->is_remote || session.domain(to.rank.value()) != domain) continue;
      const Part* part = nullptr;
      const Status status = parts_.check(to, from.size(), Rights::write, part);
      if (first_failure == Status::ok) first_failure = status;
      if (status != Status::ok) continue;
      together[count++] = {to.offset, static_cast<std::uint32_t>(to.rank.value()), 0};
      in_program = in_program || members_.remote(part->member).in_program;
      if (count == together.size()) push();
    }
    push();
  }
  return first_failure;
}

// Pushes to other hosts first. Meanwhile copies to the targets of this host piece by piece, so that the source is read
// from memory once. `target(i)`: the i-th target, or an invalid address.
template <class Target>
Status WindowState::multicast_to_each(std::size_t targets, Target target, std::span<const std::byte> from) noexcept {
  if (!is_memory(from)) return Status::invalid;
  std::optional<RemoteMulticast> relays;
  Status first_failure = Status::ok;
  if (members_.spans_hosts() && !from.empty()) {
    relays.emplace(engine_.session(), runtime_.origin(), place_.number);
    first_failure = multicast_remote(*relays, targets, target, from);
  }
  std::size_t at = 0;
  do {
    const auto piece = from.subspan(at, std::min(multicast_piece_bytes, from.size() - at));
    for (std::size_t i = 0; i < targets; ++i) {
      const GlobalAddress to = target(i);
      const Part* part = nullptr;
      Status status = parts_.check(to, from.size(), Rights::write, part);
      if (status == Status::ok && !part->is_remote) status = write(*part, to + at, piece);
      if (first_failure == Status::ok) first_failure = status;
    }
    at += piece.size();
  } while (at < from.size());
  const Status pushed = relays ? relays->end() : Status::ok;
  return first_failure == Status::ok ? pushed : first_failure;
}

// Pushes for a rank of another host.
std::optional<Status> WindowState::push_for(int peer, GlobalAddress to, std::span<const std::byte> from) noexcept {
  if (to.rank.value() == members_.rank_of(members_.self())) {
    std::byte* there = nullptr;
    const Status status = parts_.check_request(peer, to.offset, from.size(), Rights::write, there);
    if (status != Status::ok) return status;
    return store_local(engine_.session(), parts_.own_in_program(), there, from);
  }
  // other ranks may have the window a moment earlier
  if (!parts_.is_open()) return std::nullopt;
  const int position = job::position_in(group(), peer);
  const Part* part = parts_.find(to.rank);
  if (position < 0 || part == nullptr || part->state == nullptr || part->is_remote) return Status::bounds;
  const Rights rights = layout_.rights(layout_.member(part->member), static_cast<std::size_t>(position));
  if (!includes(rights, Rights::write)) return Status::denied;
  if (part->mapped == nullptr && !copies_directly(*part, from)) return std::nullopt;
  const Status status = parts_.check(to, from.size(), Rights::write, part);
  if (status == Status::denied) return std::nullopt;
  return status == Status::ok ? write(*part, to, from) : status;
}

Status WindowState::multicast(std::span<const GlobalAddress> to, std::span<const std::byte> from) noexcept {
  return multicast_to_each(
      to.size(), [to](std::size_t i) { return to[i]; }, from);
}

Status WindowState::multicast_to_all(std::uint64_t offset, std::span<const std::byte> from) noexcept {
  const auto other = [this, offset](std::size_t i) {  // starts with the next rank
    const JobRank rank = group().at(Rank{(members_.self() + 1 + i) % members_.size()});
    return GlobalAddress{place_.number, rank, offset};
  };
  return multicast_to_each(members_.size() - 1, other, from);
}

Status WindowState::multicast_regions(std::span<const GlobalAddress> to, std::span<const std::byte> from,
                                      std::span<const Region> regions) noexcept {
  if (!is_memory(from)) return to.empty() ? Status::ok : Status::invalid;
  std::optional<RemoteCopies<Push>> remote;  // made when needed; all pushes are under way together
  Status first_failure = Status::ok;
  for (const GlobalAddress& target : to) {
    const Part* part = nullptr;
    Status status = parts_.check(target, from.size(), Rights::write, part);
    if (status == Status::ok) status = check_regions(regions, from.size());
    if (status == Status::ok && part->is_remote) {
      if (!remote) remote.emplace(engine_.session(), runtime_.origin(), place_.number);
      remote->start(target_of(*part, target), from.data(), regions, true);
    } else if (status == Status::ok) {
      status = write_regions(*part, target, from, regions);
    }
    if (first_failure == Status::ok) first_failure = status;
  }
  const Status pushed = remote ? remote->end() : Status::ok;
  return first_failure == Status::ok ? pushed : first_failure;
}

bool WindowState::Batch::add(GlobalAddress address, std::span<std::byte> local) noexcept {
  if (count_ == here_.size() || local.data() == nullptr || bytes_ + local.size() > short_copy_bytes_max) return false;
  const Part* part = nullptr;
  if (state_.parts_.check(address, local.size(), needed_, part) != Status::ok) return false;
  if (!state_.copies_directly(*part, local)) return false;
  if (count_ == 0) {
    part_ = part;
    first_ = address;
  } else if (part != part_) {
    return false;
  }
  here_[count_] = {local.data(), local.size()};
  there_[count_++] = {reinterpret_cast<void*>(part->address + address.offset), local.size()};
  bytes_ += local.size();
  return true;
}

std::size_t WindowState::Batch::copy() noexcept {
  std::size_t copied = 0;
  (void)state_.reach_program(first_, *part_, [this, &copied](const fabric::DirectCopy& copy, std::uint64_t) {
    const std::span here = std::span(here_).first(count_);
    const std::span there = std::span(there_).first(count_);
    copied = needed_ == Rights::read ? copy.read_first(here, there) : copy.write_first(here, there);
    return Status::ok;
  });
  return copied;
}

Result<std::uint64_t> WindowState::apply(GlobalAddress at, const detail::AtomicWords& words) noexcept {
  if (!is_sane(words)) return {Status::invalid, 0};  // a descriptor may contain anything
  const Part* part = nullptr;
  const Status status = parts_.check(at, words.bytes, Rights::atomic, part);
  if (status != Status::ok) return {status, 0};
  if (part->mapped == nullptr) return runtime_.origin().apply(place_.number, at.rank.value(), at.offset, words);
  std::byte* const word = part->at(at.offset);
  if (reinterpret_cast<std::uintptr_t>(word) % words.bytes != 0) return {Status::invalid, 0};
  return {Status::ok, apply_to_word(word, words)};
}

}  // namespace tonari::window
