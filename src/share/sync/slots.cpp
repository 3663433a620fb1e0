#include "share/sync/slots.hpp"

#include <fmt/format.h>

namespace tonari::share {

namespace {

constexpr std::uint32_t word_bits = 64;

}  // namespace

SyncSlots::SyncSlots(int ranks) : most_(static_cast<std::uint32_t>(ranks) * slots_per_rank) {}

std::uint32_t SyncSlots::take(Communicator& ranks, Window& window) {
  if (taken_ < most_) {
    const std::lock_guard guard(mutex_);
    given_.resize(taken_ / word_bits + 1);
    return static_cast<std::uint32_t>(taken_++);
  }
  if (renewed_.empty()) renew(ranks, window);
  const std::uint32_t slot = renewed_.back();
  renewed_.pop_back();
  ++taken_;
  return slot;
}

void SyncSlots::give_back(std::uint32_t slot) noexcept {
  const std::lock_guard guard(mutex_);
  given_[slot / word_bits] |= std::uint64_t{1} << slot % word_bits;
}

void SyncSlots::renew(Communicator& ranks, Window& window) {
  std::vector<std::uint64_t> given;
  {
    const std::lock_guard guard(mutex_);
    given = given_;
  }
  Status status = ranks.all_reduce(given, [](std::uint64_t one, std::uint64_t other) { return one & other; });
  if (status == Status::ok) {
    const std::lock_guard guard(mutex_);
    for (std::size_t i = 0; i < given.size(); ++i) given_[i] &= ~given[i];
  }
  const auto size = static_cast<std::uint32_t>(ranks.size());
  for (std::uint32_t slot = most_; status == Status::ok && slot-- > 0;) {
    if ((given[slot / word_bits] >> slot % word_bits & 1) == 0) continue;
    renewed_.push_back(slot);
    if (slot % size != static_cast<std::uint32_t>(ranks.rank().value())) continue;
    std::byte* const word = window.local().data() + slot / size * slot_bytes;
    atomic_word(word).store(0, std::memory_order_relaxed);  // before the barrier
  }
  if (status == Status::ok) status = window.barrier();
  if (status != Status::ok) {
    renewed_.clear();  // without the barrier they must not be used
    throw SetupError("making a mutex, flag or counter: a rank died or left meanwhile");
  }
  if (renewed_.empty()) {
    throw SetupError(
        fmt::format("making a mutex, flag or counter: a job of {} ranks has at most {} of them at once: destroy "
                    "unneeded ones in all ranks, or use one for several purposes",
                    size, most_));
  }
}

}  // namespace tonari::share
