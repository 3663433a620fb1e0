#include "share/array/array.hpp"
#include "share/coherence/notice_tree.hpp"
#include "share/coherence/release.hpp"
#include "share/shared_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>
#include <utility>

// The second half of a release: tells the ranks with copies, and then tells the homes that they were told.
namespace tonari::share {

void Release::tell_copies() {
  const auto many = std::partition(copied_.begin(), copied_.end(), [](const Copied& each) {
    return static_cast<std::size_t>(std::popcount(each.entry.ranks)) <= branches_max;
  });
  tell_each({copied_.begin(), many}, ~Ranks{0});
  tell_by_tree({many, copied_.end()});
  finish_all();
  if (missed_ != 0) {  // not reached by a tree: this rank tells each itself; one that cannot be reached is dead
    tell_each(copied_, missed_);
    finish_all();
    missed_ = 0;
  }
  std::erase_if(copied_,
                [](const Copied& each) { return each.bytes != 0; });  // updated copies stay valid, and in the copysets
}

// Tells each of the ranks `some` of the pages that it has copies of.
void Release::tell_each(std::span<Copied> copied, Ranks some) {
  const auto key = [](const Copied& each) {
    return std::tuple(each.array->number(), each.bytes != 0, each.entry.page);
  };
  std::ranges::sort(copied, {}, key);
  for (int rank = 0; rank < shared_memory_.size(); ++rank) {
    if (rank == shared_memory_.rank() || (some & rank_bit(rank)) == 0) continue;
    for (const Copied& each : copied) {
      if ((each.entry.ranks & rank_bit(rank)) == 0) continue;
      if (!telling_.add(each, changes_.data())) {
        send_telling(rank, 0);
        telling_.clear();
        (void)telling_.add(each, changes_.data());
      }
    }
    send_telling(rank, 0);
    telling_.clear();
  }
}

// Sends pages that the same ranks have copies of together, down a tree.
void Release::tell_by_tree(std::span<Copied> copied) {
  const auto key = [](const Copied& each) {
    return std::tuple(each.entry.ranks, each.array->number(), each.bytes != 0, each.entry.page);
  };
  std::ranges::sort(copied, {}, key);
  for (std::size_t i = 0; i < copied.size();) {
    const Ranks ranks = copied[i].entry.ranks;
    while (i < copied.size() && copied[i].entry.ranks == ranks && telling_.add(copied[i], changes_.data())) ++i;
    // Several ranks share a bit in jobs of more than 64: the first of them tells the others. It may be this rank.
    const bool leads = shared_memory_.size() > 64 && shared_memory_.rank() < 64;
    const Ranks own = leads ? rank_bit(shared_memory_.rank()) : 0;
    for_each_branch(ranks & ~own, [this](int rank, Ranks behind) { send_telling(rank, behind); });
    for (int rank = shared_memory_.rank() + 64; (ranks & own) != 0 && rank < shared_memory_.size(); rank += 64)
      send_telling(rank, 0);
    telling_.clear();
  }
}

bool Release::Telling::add(const Copied& copied, const std::byte* all_changes) {
  const bool is_update = copied.bytes != 0;
  if (array == nullptr) {
    array = copied.array;
    updates = is_update;
  }
  if (array != copied.array || updates != is_update) return false;
  if (updates) {
    if (changes.size() + copied.bytes > fabric::bulk_tail_bytes_max) return false;
    changes.insert(changes.end(), all_changes + copied.at, all_changes + copied.at + copied.bytes);
    return true;
  }
  const std::uint64_t page = copied.entry.page;
  if (!runs.empty() && runs.back().first + runs.back().count == page) {
    ++runs.back().count;
    return true;
  }
  if (runs.size() == runs_max) return false;
  runs.push_back({page, 1});
  return true;
}

void Release::Telling::clear() noexcept {
  array = nullptr;
  changes.clear();
  runs.clear();
}

void Release::send_telling(int rank, Ranks behind) {
  if (telling_.array == nullptr || rank >= shared_memory_.size()) return;  // nothing to tell, or no such rank
  Message& message = next_message();
  message.count = 0;
  message.ranks = behind != 0 || shared_memory_.size() > 64 ? behind | rank_bit(rank) : 0;
  Words words;
  words.object = telling_.array->number();
  fabric::Requests& requests = shared_memory_.requests();
  const int self = shared_memory_.rank();
  const bool to_one = message.ranks == 0;
  if (to_one && !telling_.updates && telling_.runs.size() == 1) {
    words.first = telling_.runs[0].first;
    words.extra = telling_.runs[0].count;
    return requests.ask(message.pending, rank, head_of(Kind::share_notice, self, words), fabric::Waiter::program,
                        wakeup_);
  }
  const auto bytes =
      telling_.updates ? std::span<const std::byte>(telling_.changes) : std::as_bytes(std::span(telling_.runs));
  const fabric::BulkPlace block = requests.allocate(bytes.size(), rank);
  std::memcpy(requests.at(block), bytes.data(), bytes.size());
  words.tail_bytes = bytes.size();
  words.tail_place = block.value;
  words.first = static_cast<std::uint64_t>(self);
  words.extra = behind;
  const Kind kind = telling_.updates ? Kind::share_update : Kind::share_notices;
  requests.ask(message.pending, rank, head_of(kind, self, words), fabric::Waiter::program, wakeup_);
}

// Tells homes which ranks need not be told again. No thread waits until a home has handled it.
void Release::tell_homes() {
  const auto key = [](const Copied& each) { return std::pair(each.array->number(), each.home); };
  std::ranges::sort(copied_, [&](const Copied& one, const Copied& other) { return key(one) < key(other); });
  fabric::Requests& requests = shared_memory_.requests();
  for (std::size_t first = 0; first < copied_.size();) {
    const Copied& begin = copied_[first];
    std::size_t end = first;
    while (end < copied_.size() && key(copied_[end]) == key(begin) && end - first < entries_max) ++end;
    if (begin.home == shared_memory_.rank()) {
      for (std::size_t i = first; i < end; ++i) begin.array->told(copied_[i].entry);
    } else {
      Words words;
      words.object = begin.array->number();
      words.tail_bytes = (end - first) * sizeof(Entry);
      const fabric::BulkPlace block = requests.allocate(words.tail_bytes, begin.home);
      words.tail_place = block.value;
      std::byte* to = requests.at(block);
      for (std::size_t i = first; i < end; ++i, to += sizeof(Entry)) std::memcpy(to, &copied_[i].entry, sizeof(Entry));
      requests.tell(begin.home, head_of(Kind::share_told, shared_memory_.rank(), words), wakeup_);
    }
    first = end;
  }
}

}  // namespace tonari::share
