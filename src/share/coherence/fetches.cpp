#include "share/coherence/fetches.hpp"

#include "fabric/wait.hpp"
#include "share/array/array.hpp"

#include <algorithm>
#include <cstdint>

namespace tonari::share {

void Fetch::answered() noexcept {
  array->arrived(*this);
  array->users().fetch_sub(1, std::memory_order_release);  // publishes the changes to the array
}

Fetch& Fetches::next() noexcept {
  for (;;) {
    const auto free = std::ranges::find_if(fetches_, &Fetch::is_done);
    if (free != fetches_.end()) return *free;
    wait_for_one();
  }
}

std::size_t Fetches::done() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(fetches_, &Fetch::is_done));
}

template <class Ready>
void Fetches::wait_until(Ready ready) noexcept {
  constexpr std::uint64_t patience_ns = 20'000;
  if (waiter_ == fabric::Waiter::faults) return fabric::wait_as_faults(engine_, ready);
  if (wakeup_ == fabric::Wakeup::now) return fabric::wait_until(engine_, ready, job::Wait::window, -1);
  fabric::wait_patiently(engine_, ready, job::Wait::window, -1, patience_ns, [this] { lose_patience(); });
}

void Fetches::lose_patience() noexcept {
  wakeup_ = fabric::Wakeup::now;
  for (const Fetch& each : fetches_) {
    if (!each.is_done()) engine_.wake_peer(each.peer());
  }
}

void Fetches::wait_for_one() noexcept {
  wait_until([this, before = done()] { return done() != before || are_done(); });
}

void Fetches::wait() noexcept {
  if (!are_done()) wait_until([this] { return are_done(); });
}

}  // namespace tonari::share
