#include "share/guarded/guarded_home.hpp"

#include <algorithm>

namespace tonari::share {

int GuardedHome::server_of(const GuardWant& want) {
  const int rank = static_cast<int>(want.rank);
  const int last = chain_.back().rank;
  if (last == rank) return -1;
  if (want.act == GuardAct::write) chain_.push_back({rank, want.number});
  return last;
}

// News that come late change nothing: the link of an earlier request is no longer in the chain, or is its front
// already.
void GuardedHome::has(int rank, std::uint64_t number) noexcept {
  const auto found =
      std::ranges::find_if(chain_, [&](const Link& each) { return each.rank == rank && each.number == number; });
  if (found != chain_.end()) chain_.erase(chain_.begin(), found);
}

std::deque<GuardedHome::Link>::const_iterator GuardedHome::find(int rank) const noexcept {
  return std::ranges::find_if(chain_, [rank](const Link& each) { return each.rank == rank; });
}

bool GuardedHome::survives_death_of(int rank) const noexcept {
  const auto found = find(rank);
  return found == chain_.end() || (found == chain_.begin() && chain_.size() > 1);
}

bool GuardedHome::frees(int rank) noexcept {
  char& freed = freed_[static_cast<std::size_t>(rank)];
  if (freed == 0) --left_;
  freed = 1;
  return left_ == 0;
}

}  // namespace tonari::share
