#include "far/store.hpp"

#include <sys/mman.h>

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

Store::Store(Window& window, const std::vector<int>& servers, unsigned replicas, std::uint64_t bytes)
    : window_(window),
      replicas_(replicas),
      servers_(std::make_unique<std::vector<Server>>(servers.size())),
      chunk_memory_(Mapping::of_zeros((bytes + block_bytes - 1) / block_bytes * sizeof(Chunk), "far memory's table")),
      chunks_(reinterpret_cast<Chunk*>(chunk_memory_.bytes().data())),
      count_((bytes + block_bytes - 1) / block_bytes) {
  for (std::size_t i = 0; i < servers.size(); ++i) {
    (*servers_)[i].rank = servers[i];
    (*servers_)[i].chunks = static_cast<std::uint32_t>(window.bytes(servers[i]) / block_bytes);
  }
}

// As many as there are servers for: a second copy on the only one that is left guards against nothing.
unsigned Store::copies_now() const noexcept {
  const auto is_alive = [](const Server& each) { return each.alive.load(std::memory_order_relaxed); };
  return std::min(replicas_, static_cast<unsigned>(std::ranges::count_if(*servers_, is_alive)));
}

std::uint64_t Store::capacity_bytes() const noexcept {
  std::uint64_t chunks = 0;
  std::uint64_t largest = 0;
  for (const Server& each : *servers_) {
    if (!each.alive.load(std::memory_order_relaxed)) continue;
    chunks += each.chunks;
    largest = std::max<std::uint64_t>(largest, each.chunks);
  }
  return (copies_now() < 2 ? chunks : std::min(chunks / 2, chunks - largest)) * block_bytes;
}

std::uint64_t Store::used_bytes() const noexcept { return used_.load(std::memory_order_relaxed) * block_bytes; }

bool Store::is_alive(Copy copy) const noexcept {
  return copy != 0 && server_of(copy).alive.load(std::memory_order_relaxed);
}

GlobalAddress Store::address_of(Copy copy, std::uint64_t place) const noexcept {
  return window_.at(server_of(copy).rank, (copy & 0xffffffff) * block_bytes + place % block_bytes);
}

Status Store::fetch(std::uint64_t place, std::span<std::byte> into) noexcept {
  Status status = Status::peer_gone;
  for (const auto& each : chunk_at(place).copies) {
    const Copy copy = each.load(std::memory_order_relaxed);
    if (!is_alive(copy)) continue;
    status = window_.pull(into, address_of(copy, place));
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
    if (!is_alive(copy)) continue;
    if (std::byte* const found = window_.direct(address_of(copy, place), bytes)) return {found, bytes};
  }
  return {};
}

Status Store::store(std::uint64_t place, std::span<const std::byte> from) noexcept {
  Chunk& chunk = chunk_at(place);
  if (!chunk.is_taken() && !take(chunk)) return Status::no_memory;
  const Status status = write(place, from);
  if (status == Status::ok) chunk.stored |= pages_at(place, from.size());
  if (chunk.stored.is_empty()) give_back(chunk);
  return status;
}

Status Store::write(std::uint64_t place, std::span<const std::byte> from) noexcept {
  Status status = Status::peer_gone;
  for (const auto& each : chunk_at(place).copies) {
    const Copy copy = each.load(std::memory_order_relaxed);
    if (!is_alive(copy)) continue;
    const GlobalAddress to = address_of(copy, place);
    const bool is_there = window_.direct(to, from.size()) == from.data();  // written where there was room
    const Status answer = is_there ? Status::ok : window_.push(to, from);
    if (answer == Status::ok || status != Status::ok) status = answer;  // one copy is enough
  }
  return status;
}

Status Store::discard(std::uint64_t place, std::uint64_t bytes) noexcept {
  const std::uint64_t end = place + bytes;
  for (std::uint64_t at = place; at < end;) {
    const std::uint64_t until = std::min(end, (at / block_bytes + 1) * block_bytes);
    Chunk& chunk = chunk_at(at);
    const bool had_some = !chunk.stored.is_empty();
    chunk.stored -= pages_at(at, until - at);
    if (had_some && chunk.stored.is_empty()) give_back(chunk);
    at = until;
  }
  return Status::ok;
}

bool Store::take(Chunk& chunk) noexcept {
  const std::lock_guard guard(mutex_);
  std::array<Server*, replicas_max> chosen{};
  unsigned copies = 0;
  while (copies < replicas_) {
    chosen[copies] = roomiest(copies == 0 ? nullptr : chosen[copies - 1]);
    if (chosen[copies] == nullptr) break;
    ++copies;
  }
  if (copies == 0 || copies < copies_now()) return false;
  for (unsigned i = 0; i < copies; ++i) {
    Server& server = *chosen[i];
    std::uint32_t number = server.never_used;
    if (server.free.empty()) {
      ++server.never_used;
    } else {
      number = server.free.back();
      server.free.pop_back();
    }
    const auto index = static_cast<std::uint64_t>(chosen[i] - servers_->data());
    chunk.copies[i].store((index + 1) << 32 | number, std::memory_order_relaxed);
  }
  used_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

Store::Server* Store::roomiest(const Server* other_than) noexcept {
  Server* best = nullptr;
  std::size_t most = 0;
  for (Server& each : *servers_) {
    const std::size_t room = each.chunks - each.never_used + each.free.size();
    if (&each == other_than || room <= most || !each.alive.load(std::memory_order_relaxed)) continue;
    best = &each;
    most = room;
  }
  return best;
}

// Where the memory is this machine's it goes back to the system, until the chunk is taken again.
void Store::give_back(Chunk& chunk) noexcept {
  const std::lock_guard guard(mutex_);
  for (auto& each : chunk.copies) {
    const Copy copy = each.exchange(0, std::memory_order_relaxed);
    if (!is_alive(copy)) continue;
    if (std::byte* const mapped = window_.direct(address_of(copy, 0), block_bytes)) {
      (void)::madvise(mapped, block_bytes, MADV_REMOVE);  // refused: it stays taken, and is written over
    }
    server_of(copy).free.push_back(static_cast<std::uint32_t>(copy));
  }
  used_.fetch_sub(1, std::memory_order_relaxed);
}

std::uint64_t Store::server_died(int rank) noexcept {
  const auto dead = std::ranges::find(*servers_, rank, &Server::rank);
  if (dead == servers_->end()) return 0;
  dead->alive.store(false, std::memory_order_relaxed);
  std::uint64_t lost = 0;
  for (std::uint64_t i = 0; i < count_; ++i) {
    const auto has_copy = [&](auto alive) {
      return std::ranges::any_of(chunks_[i].copies, [&](const auto& each) {
        const Copy copy = each.load(std::memory_order_relaxed);
        return copy != 0 && is_alive(copy) == alive;
      });
    };
    if (has_copy(false) && !has_copy(true)) lost += block_bytes;
  }
  return lost;
}

}  // namespace tonari::far
