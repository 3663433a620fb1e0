#include "far/store.hpp"

#include "far/blocks.hpp"

#include <algorithm>

namespace tonari::far {

using pager::block_bytes;
using pager::page_bytes;
using pager::PageSet;

namespace {

PageSet pages_at(std::uint64_t place, std::uint64_t bytes) noexcept {
  return PageSet::of(place % block_bytes / page_bytes, bytes / page_bytes);
}

}  // namespace

Store::Store(Servers& servers, std::uint64_t bytes)
    : servers_(servers),
      chunk_memory_(Mapping::of_zeros((bytes + block_bytes - 1) / block_bytes * sizeof(Chunk), "far memory's table")),
      chunks_(reinterpret_cast<Chunk*>(chunk_memory_.bytes().data())),
      count_((bytes + block_bytes - 1) / block_bytes) {}

Status Store::fetch(std::uint64_t place, std::span<std::byte> into) noexcept {
  Status status = Status::peer_gone;
  for (const auto& each : chunk_at(place).copies) {
    const Copy copy = each.load(std::memory_order_relaxed);
    if (!servers_.is_alive(copy)) continue;
    status = servers_.window().pull(into, servers_.address_of(copy, place % block_bytes));
    if (status == Status::ok) break;
  }
  return status;
}

std::span<const std::byte> Store::look(std::uint64_t place, std::uint64_t bytes) noexcept {
  return mapped(chunk_at(place), place, bytes);
}

std::span<std::byte> Store::room(std::uint64_t place, std::uint64_t bytes) noexcept {
  Chunk& chunk = chunk_at(place);
  if (!chunk.is_taken() && !take(chunk)) return {};
  return mapped(chunk, place, bytes);
}

std::span<std::byte> Store::mapped(const Chunk& chunk, std::uint64_t place, std::uint64_t bytes) const noexcept {
  for (const auto& each : chunk.copies) {
    const Copy copy = each.load(std::memory_order_relaxed);
    if (!servers_.is_alive(copy)) continue;
    if (std::byte* const found = servers_.window().direct(servers_.address_of(copy, place % block_bytes), bytes))
      return {found, bytes};
  }
  return {};
}

Status Store::store(std::uint64_t place, std::span<const std::byte> from) noexcept {
  Chunk& chunk = chunk_at(place);
  if (!chunk.is_taken() && !take(chunk)) return Status::no_memory;
  const Status status = write(place, from);
  if (status == Status::ok) set_stored(chunk, chunk.stored | pages_at(place, from.size()));
  if (chunk.stored.is_empty()) give_back(chunk);
  return status;
}

Status Store::write(std::uint64_t place, std::span<const std::byte> from) noexcept {
  Status status = Status::peer_gone;
  Copy stale = 0;
  for (const auto& each : chunk_at(place).copies) {
    const Copy copy = each.load(std::memory_order_relaxed);
    if (!servers_.is_alive(copy)) continue;
    const GlobalAddress to = servers_.address_of(copy, place % block_bytes);
    // already written there, through room()
    const bool is_there = servers_.window().direct(to, from.size()) == from.data();
    const Status answer = is_there ? Status::ok : servers_.window().push(to, from);
    if (answer != Status::ok) stale = copy;
    if (answer == Status::ok || status != Status::ok) status = answer;  // one copy is enough
  }
  if (status == Status::ok && stale != 0) servers_.no_longer_ask(stale);
  return status;
}

Status Store::discard(std::uint64_t place, std::uint64_t bytes) noexcept {
  return for_each_block(place, bytes, [this](std::uint64_t at, std::uint64_t part) {
    Chunk& chunk = chunk_at(at);
    const bool had_some = !chunk.stored.is_empty();
    set_stored(chunk, chunk.stored - pages_at(at, part));
    if (had_some && chunk.stored.is_empty()) give_back(chunk);
    return Status::ok;
  });
}

void Store::set_stored(Chunk& chunk, const PageSet& stored) noexcept {
  const std::size_t before = chunk.stored.count();
  const std::size_t now = stored.count();
  chunk.stored = stored;
  if (now > before) servers_.count_stored(now - before);
  if (now < before) servers_.count_dropped(before - now);
}

bool Store::take(Chunk& chunk) noexcept {
  const auto copies = servers_.take();
  if (!copies) return false;
  for (std::size_t i = copies->size(); i-- > 0;) {
    // (1) Copy 0 last: a thread that sees it sees the others. Pairs with (2).
    chunk.copies[i].store((*copies)[i], std::memory_order_release);
  }
  const auto end = static_cast<std::uint64_t>(&chunk - chunks_) + 1;
  for (std::uint64_t seen = end_.load(std::memory_order_relaxed); seen < end;) {
    if (end_.compare_exchange_weak(seen, end, std::memory_order_relaxed)) break;
  }
  return true;
}

void Store::give_back(Chunk& chunk) noexcept {
  Servers::Copies copies;
  for (std::size_t i = 0; i < copies.size(); ++i) copies[i] = chunk.copies[i].exchange(0, std::memory_order_relaxed);
  servers_.give_back(copies);
}

std::span<Store::Chunk> Store::ever_taken() const noexcept {
  return {chunks_, static_cast<std::size_t>(end_.load(std::memory_order_relaxed))};
}

void Store::give_all_back() noexcept {
  for (Chunk& each : ever_taken()) {
    if (!each.is_taken()) continue;
    set_stored(each, {});
    give_back(each);
  }
}

std::uint64_t Store::lost_bytes() const noexcept {
  const auto is_lost = [this](const Chunk& chunk) {
    const Copy first = chunk.copies.front().load(std::memory_order_acquire);  // (2)
    if (first == 0) return false;
    for (const auto& each : chunk.copies) {
      // Acquire: keeps the second load of copy 0 below after this one.
      if (servers_.is_alive(each.load(std::memory_order_acquire))) return false;
    }
    return chunk.copies.front().load(std::memory_order_relaxed) == first;  // if not, it was given back meanwhile
  };
  return static_cast<std::uint64_t>(std::ranges::count_if(ever_taken(), is_lost)) * block_bytes;
}

}  // namespace tonari::far
