#include "share/coherence/notice_tree.hpp"

#include "share/shared_memory.hpp"

#include <algorithm>
#include <cstring>

namespace tonari::share {

NoticeTree::Relay* NoticeTree::pass_on(Kind kind, int peer, const Words& request, std::span<const std::byte> tail) {
  const int self = shared_memory_.rank();
  // Several ranks share a bit in jobs of more than 64: the first of them tells the others.
  const bool leads = shared_memory_.size() > 64 && self < 64;
  if (request.extra == 0 && !leads) return nullptr;
  Relay& relay = free_one();
  relay.begin(peer, request);
  for_each_branch(request.extra & ~rank_bit(self),
                  [&](int rank, Ranks behind) { relay.tell(rank, behind, kind, request, tail); });
  for (int rank = self + 64; leads && rank < shared_memory_.size(); rank += 64) {
    if (static_cast<std::uint64_t>(rank) != request.first) relay.tell(rank, 0, kind, request, tail);
  }
  return &relay;
}

NoticeTree::Relay& NoticeTree::free_one() {
  const auto free = std::ranges::find_if(relays_, [](const auto& each) { return each->is_free(); });
  if (free != relays_.end()) return **free;
  return *relays_.emplace_back(std::make_unique<Relay>(shared_memory_));
}

void NoticeTree::Branch::answered() noexcept { relay.answered(*this); }

bool NoticeTree::Relay::is_free() const noexcept {
  // Acquire: pairs with end_one(). The last end_one() still reads `missed_`: if it handles a reply, is_done() is false
  // until it has returned.
  return pending_.load(std::memory_order_acquire) == 0 && std::ranges::all_of(branches_, &Branch::is_done);
}

void NoticeTree::Relay::begin(int peer, const Words& request) noexcept {
  peer_ = peer;
  reply_ = reply_to(request);
  branches_.clear();
  missed_.store(0, std::memory_order_relaxed);
  pending_.store(1, std::memory_order_relaxed);  // relaxed: no rank was told yet, so no reply can come
}

void NoticeTree::Relay::tell(int rank, Ranks behind, Kind kind, const Words& request, std::span<const std::byte> tail) {
  const Ranks all = behind | rank_bit(rank);
  Words words = request;
  words.extra = behind;
  const auto block =
      rank < shared_memory_.size() ? shared_memory_.engine().bulk().allocate(tail.size(), rank) : std::nullopt;
  if (block) {
    std::memcpy(shared_memory_.requests().at(*block), tail.data(), tail.size());
    words.tail_bytes = tail.size();
    words.tail_place = block->value;
    pending_.fetch_add(1, std::memory_order_relaxed);
    if (shared_memory_.requests().try_ask(branches_.emplace_back(*this, all), rank,
                                          head_of(kind, shared_memory_.rank(), words))) {
      return;
    }
    pending_.fetch_sub(1, std::memory_order_relaxed);
    shared_memory_.requests().give_back(*block);
  }
  missed_.fetch_or(all, std::memory_order_relaxed);
}

void NoticeTree::Relay::answered(const Branch& branch) noexcept {
  const Ranks missed = branch.status() == Status::ok ? branch.words().first & branch.ranks : branch.ranks;
  missed_.fetch_or(missed, std::memory_order_relaxed);
  end_one();
}

void NoticeTree::Relay::end_one() noexcept {
  // Release: publishes this call's part of `missed_`. Acquire: the last call sees the parts of all other calls.
  if (pending_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  reply_.first = missed_.load(std::memory_order_relaxed);
  shared_memory_.send_queue().post(peer_, head_of(Kind::share_noted, shared_memory_.rank(), reply_),
                                   fabric::Lane::reply);
}

}  // namespace tonari::share
