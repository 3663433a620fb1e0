#include "window/sync/host_barrier.hpp"

#include "window/remote/heads.hpp"

#include <algorithm>
#include <bit>

namespace tonari::window {

void HostBarrier::open(std::vector<int> leaders, std::uint32_t window) {
  window_ = window;
  leaders_ = std::move(leaders);
  const auto self = std::ranges::find(leaders_, engine_.session().rank());
  self_ = static_cast<std::size_t>(self - leaders_.begin());
}

std::size_t HostBarrier::exchanges() const noexcept {
  return leaders_.empty() ? 0 : static_cast<std::size_t>(std::bit_width(leaders_.size() - 1));
}

void HostBarrier::tell(std::size_t exchange, std::uint64_t round, bool gone) noexcept {
  const Met met{met_of(round, gone), static_cast<std::uint32_t>(exchange), 0};
  const int to = leaders_[(self_ + (std::size_t{1} << exchange)) % leaders_.size()];
  send_queue_.post(to, head_of(Kind::window_met, engine_.session().rank(), met, window_), fabric::Lane::request);
}

void HostBarrier::take(int rank, const Met& met) noexcept {
  // malformed: drop it
  if (self_ >= leaders_.size() || met.exchange >= exchanges() || rank != awaited(met.exchange)) return;
  heard_[met.exchange][round_of(met.met) & 1].store(met.met, std::memory_order_release);
}

}  // namespace tonari::window
