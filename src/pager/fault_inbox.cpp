#include "pager/fault_inbox.hpp"

#include "base/futex.hpp"

#include <algorithm>
#include <chrono>

namespace tonari::pager {

std::span<const Fault> FaultInbox::read() noexcept {
  std::array<PassedFaults::Fault, PassedFaults::faults_max> passed;
  const std::size_t count = passed_.take(passed);
  std::ranges::transform(std::span(passed).first(count), batch_.begin(), [](const auto& each) {
    const Address page = each.address / page_bytes * page_bytes;
    return Fault{.address = page, .thread = each.thread, .is_write = false, .holds_block = true};
  });
  return {batch_.data(), count};
}

bool FaultInbox::wait() noexcept {
  constexpr std::chrono::hours long_time{1};
  // Read before the faults: a later fault changes it, which ends the sleep below. Acquire: pairs with the release in
  // OwnFaults::ring().
  const std::uint32_t seen = passed_.doorbell.load(std::memory_order_acquire);
  if (stopped_.load(std::memory_order_relaxed)) return false;
  if (passed_.is_empty() && !tally_.has_wish()) futex_wait(passed_.doorbell, seen, long_time);
  return true;
}

void FaultInbox::stop() noexcept {
  stopped_.store(true, std::memory_order_relaxed);
  ring_doorbell(passed_.doorbell);
}

}  // namespace tonari::pager
