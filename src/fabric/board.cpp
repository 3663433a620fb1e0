#include "fabric/board.hpp"

#include <algorithm>
#include <bit>
#include <mutex>

namespace tonari::fabric {

bool Board::have_all_ended(std::uint32_t round) noexcept {
  for (std::size_t member = 0; member < members_.size(); ++member) {
    if (!has_ended(member, round)) return false;
  }
  note_all_ended(round);
  return true;
}

void Board::end(std::uint32_t round) noexcept {
  const std::lock_guard guard(lock_);
  std::uint32_t ended = ended_.load(std::memory_order_relaxed);
  if (number(self_, round) != ended + 1) {
    ended_early_.push_back(number(self_, round));
    return std::push_heap(ended_early_.begin(), ended_early_.end(), is_after);
  }
  ++ended;
  while (!ended_early_.empty() && ended_early_.front() == ended + 1) {
    std::pop_heap(ended_early_.begin(), ended_early_.end(), is_after);
    ended_early_.pop_back();
    ++ended;
  }
  ended_.store(ended, std::memory_order_relaxed);
  // Sequentially consistent with a sleeper's has_ended(): either the sleeper sees this store, or this rank sees that it
  // sleeps. Release: this rank's reads come before the place is written again; pairs with has_ended().
  members_[self_].memory->ended.store(ended, std::memory_order_seq_cst);
}

bool Board::is_free() const noexcept {
  const std::uint32_t last = begun_.load(std::memory_order_relaxed);
  for (std::size_t member = 0; member < members_.size(); ++member) {
    if (!has_ended(member, last)) return false;
  }
  return true;
}

BoardPlace Boards::take() noexcept {
  std::unique_ptr<Board> done;  // freed without the lock
  const std::lock_guard guard(lock_);
  if (free_ == 0) {
    for (Closing& each : closing_) {
      if (!each.board->is_free()) continue;
      free_ |= std::uint32_t{1} << each.index;
      std::swap(each, closing_.back());
      done = std::move(closing_.back().board);
      closing_.pop_back();
      break;
    }
  }
  if (free_ == 0) return {};
  const auto index = static_cast<std::uint32_t>(std::countr_zero(free_));
  free_ &= free_ - 1;
  // `ended` is the number of the last round on this board. Only this rank writes it.
  return {index, memory_[index].ended.load(std::memory_order_relaxed)};
}

void Boards::give_back(BoardPlace place) noexcept {
  if (place.index == BoardPlace::none) return;
  const std::lock_guard guard(lock_);
  free_ |= std::uint32_t{1} << place.index;
}

void Boards::give_back(BoardPlace place, std::unique_ptr<Board> board) noexcept {
  const std::lock_guard guard(lock_);
  closing_.push_back({place.index, std::move(board)});
}

}  // namespace tonari::fabric
