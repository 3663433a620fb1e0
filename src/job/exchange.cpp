#include "base/error.hpp"
#include "base/futex.hpp"
#include "job/joining.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>

namespace tonari::job {

namespace {

constexpr std::chrono::milliseconds look_up{100};  // interval of checks for deaths

void wait_for_card(Arena& arena, int rank) {
  const RankBlock& block = arena.block(rank);
  std::atomic<std::uint32_t>& cards = arena.header().cards;
  // `bytes` pairs with (1). The count pairs with (2): a rank that sees a new count also sees the card that was counted,
  // and a card that is published after the load of the count ends the sleep.
  for (auto seen = cards.load(std::memory_order_acquire); block.card.bytes.load(std::memory_order_acquire) == 0;
       seen = cards.load(std::memory_order_acquire)) {
    // Acquire: pairs with Arena::advance(). No data but the phase itself are read.
    if (block.phase.load(std::memory_order_acquire) >= Phase::leaving) {
      throw SetupError(fmt::format("rank {} ended while joining, before it published its network address", rank));
    }
    futex_wait(cards, seen, look_up);
  }
}

}  // namespace

Addresses exchange_in_arena(Arena& arena, int rank, std::span<const std::byte> address) {
  if (address.empty() || address.size() > card_bytes_max) {
    throw SetupError(
        fmt::format("this rank's network address has {} bytes, but there is room for only {}: choose fewer devices "
                    "with TONARI_UCX_NET_DEVICES",
                    address.size(), card_bytes_max));
  }
  RankBlock::Card& own = arena.block(rank).card;
  std::ranges::copy(address, own.address.begin());
  own.bytes.store(static_cast<std::uint32_t>(address.size()), std::memory_order_release);  // (1) publishes the address
  arena.header().cards.fetch_add(1, std::memory_order_release);                            // (2) publishes the card
  futex_wake(arena.header().cards, INT_MAX);

  Addresses all;
  for (int other = 0; other < arena.ranks(); ++other) {
    wait_for_card(arena, other);
    const RankBlock::Card& card = arena.block(other).card;
    // Acquire: pairs with (1), so that the address below is complete.
    const auto bytes = std::min<std::size_t>(card.bytes.load(std::memory_order_acquire), card_bytes_max);
    all.emplace_back(card.address.begin(), card.address.begin() + static_cast<std::ptrdiff_t>(bytes));
  }
  return all;
}

}  // namespace tonari::job
