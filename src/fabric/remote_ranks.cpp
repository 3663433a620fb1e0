#include "fabric/remote_ranks.hpp"

#include "job/ending.hpp"

#include <algorithm>

namespace tonari::fabric {

namespace {

bool has_other_hosts(const job::Session& session) noexcept {
  for (int rank = 0; rank < session.size(); ++rank) {
    if (session.is_on_other_host(rank)) return true;
  }
  return false;
}

}  // namespace

RemoteRanks::RemoteRanks(job::Session& session) : session_(session), block_(session.block()) {
  if (session.network() == nullptr) return;
  for (int rank = 0; rank < session.size(); ++rank) remote_.push_back(session.is_remote(rank) ? 1 : 0);
  has_neighbours_ = std::ranges::count(remote_, 0) > 1;
  leaves_ = std::vector<std::atomic<char>>(remote_.size());
  full_told_to_ = size();
  if (has_other_hosts(session)) failure_detector_.emplace(session);
  network_ = static_cast<Network*>(session.network());
}

// Ranks of other hosts cannot read this rank's block. If there is no room for a head, the next poll continues.
void RemoteRanks::tell_full_slow() noexcept {
  const std::uint32_t full = block_.full.load(std::memory_order_relaxed);
  if (full != full_told_) [[unlikely]] {
    full_told_ = full;
    full_told_to_ = 0;
  }
  Head head{};
  head.kind = Kind::rank_full;
  head.source = static_cast<std::uint32_t>(session_.rank());
  head.tag = full_told_;
  for (; full_told_to_ < size(); ++full_told_to_) {
    const bool cannot_look = is_remote(full_told_to_) && session_.is_on_other_host(full_told_to_);
    if (cannot_look && network_->send(full_told_to_, head, Lane::request) == Status::again) return;
  }
}

void RemoteRanks::notice_gone() noexcept {
  gone_seen_ = network_->gone_count();
  for (int rank = 0; rank < session_.size(); ++rank) {
    if (!is_remote(rank) || !session_.is_on_other_host(rank) || !network_->gone(rank)) continue;
    const bool stays = session_.arena().block(rank).phase.load(std::memory_order_acquire) < job::Phase::leaving;
    if (!stays) continue;
    network_->say_if_out_of_reach(rank);
    if (failure_detector_) failure_detector_->found_dead(rank);
    session_.arena().mark_dead(rank, 0, job::Ending::unknown);
  }
}

// `rank`: as its watcher reports. Deaths on this host are found by the arena, not by heads.
void RemoteRanks::hear_of_death(std::uint32_t rank) noexcept {
  if (rank >= remote_.size() || !session_.is_on_other_host(static_cast<int>(rank))) return;  // malformed: drop it
  const auto dead = static_cast<int>(rank);
  const bool stays = session_.arena().block(dead).phase.load(std::memory_order_acquire) < job::Phase::leaving;
  if (stays) session_.arena().mark_dead(dead, 0, job::Ending::unknown);
}

void RemoteRanks::receive(const Head& head) noexcept {
  if (head.kind == Kind::rank_died) return hear_of_death(head.tag);  // from a rank of this host, too
  const auto rank = static_cast<int>(head.source);
  if (head.source >= remote_.size() || !is_remote(rank)) return;                // malformed: drop it
  if (head.kind.has_tail()) return network_->give_back(head.as<Tail>().place);  // malformed: no such kind
  const bool has_own_block = session_.is_on_other_host(rank);  // in this arena, written by this rank alone
  if (head.kind == Kind::rank_full && has_own_block) {
    session_.arena().block(rank).full.store(head.tag, std::memory_order_relaxed);  // a hint
  } else if (head.kind == Kind::rank_leaves) {
    // Release: after its earlier heads. Pairs with announced_leaving().
    leaves_[head.source].store(1, std::memory_order_release);
    if (has_own_block) session_.arena().mark_leaving(rank);
  }
}

Status RemoteRanks::send_to_all(const Head& head, int& next) noexcept {
  for (; next < size(); ++next) {
    if (is_remote(next) && network_->send(next, head, Lane::request) == Status::again) return Status::again;
  }
  return Status::ok;
}

}  // namespace tonari::fabric
