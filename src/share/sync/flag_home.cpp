#include "share/sync/flag_home.hpp"

#include "fabric/transfer.hpp"
#include "share/sync/slots.hpp"

namespace tonari::share {

using fabric::Head;
using fabric::Lane;

void FlagHome::open(std::span<std::byte> slots) noexcept {
  const std::lock_guard guard(mutex_);
  slots_ = slots;
  const auto early = waiters_;  // requests of ranks that were faster
  for (const auto& [name, asked] : early) tell_reached(asked.first);
}

void FlagHome::close() noexcept {
  const std::lock_guard guard(mutex_);
  slots_ = {};
}

void FlagHome::receive(const Head& head) noexcept {
  const auto words = head.as<Words>();
  const int peer = static_cast<int>(head.source);
  const bool is_sane = head.source < static_cast<std::uint32_t>(engine_.session().size()) &&
                       words.first < slots_per_rank && words.ticket.index < fabric::tickets_max;
  if (!is_sane) return;  // malformed: drop it
  if (head.kind == Kind::share_set) {
    look(words.first);
    for (int rank = 0; rank < engine_.session().size(); ++rank)
      engine_.wake_if_asleep(rank);  // threads that watch the word
    return;
  }
  const std::lock_guard guard(mutex_);
  waiters_[{peer, words.ticket.index}] = words;
  tell_reached(words.first);
}

void FlagHome::look(std::uint64_t index) noexcept {
  const std::lock_guard guard(mutex_);
  tell_reached(index);
}

void FlagHome::gone(int rank) noexcept {
  const std::lock_guard guard(mutex_);
  std::erase_if(waiters_, [rank](const auto& each) { return each.first.first == rank; });
}

std::size_t FlagHome::waiting() noexcept {
  const std::lock_guard guard(mutex_);
  return waiters_.size();
}

void FlagHome::tell_reached(std::uint64_t index) noexcept {
  if (slots_.empty()) return;
  std::byte* const word = slots_.data() + index * slot_bytes;
  // Sequentially consistent: this stores the mark and reads the word, set() stores the word and reads the mark. So
  // set() sees the mark, or this sees the new word.
  atomic_word(word + awaited_at).store(1, std::memory_order_seq_cst);
  const std::uint64_t now = atomic_word(word).load(std::memory_order_seq_cst);
  std::erase_if(waiters_, [&](const auto& each) {
    const auto& [name, asked] = each;
    if (asked.first != index || asked.extra > now) return false;
    send_queue_.post(name.first, head_of(Kind::share_reached, engine_.session().rank(), reply_to(asked)), Lane::reply);
    return true;
  });
}

}  // namespace tonari::share
