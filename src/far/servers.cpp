#include "far/servers.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace tonari::far {

using pager::block_bytes;

Servers::Servers(Window& window, const std::vector<int>& ranks, unsigned replicas)
    : window_(window), replicas_(replicas), servers_(std::make_unique<std::vector<Server>>(ranks.size())) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    (*servers_)[i].rank = ranks[i];
    (*servers_)[i].chunks = static_cast<std::uint32_t>(window.bytes(JobRank{ranks[i]}) / block_bytes);
    (*servers_)[i].free.reserve((*servers_)[i].chunks);  // so that give_back() allocates nothing
  }
}

// A second copy on the only server that is left would protect against nothing.
unsigned Servers::copies_now() const noexcept {
  const auto is_alive = [](const Server& each) { return each.alive.load(std::memory_order_relaxed); };
  return std::min(replicas_, static_cast<unsigned>(std::ranges::count_if(*servers_, is_alive)));
}

std::uint64_t Servers::lent_bytes() const noexcept {
  std::uint64_t chunks = 0;
  for (const Server& each : *servers_) chunks += each.chunks;
  return chunks * block_bytes;
}

std::uint64_t Servers::capacity_bytes() const noexcept {
  std::uint64_t chunks = 0;
  std::uint64_t largest = 0;
  for (const Server& each : *servers_) {
    if (!each.alive.load(std::memory_order_relaxed)) continue;
    chunks += each.chunks;
    largest = std::max<std::uint64_t>(largest, each.chunks);
  }
  return (copies_now() < 2 ? chunks : std::min(chunks / 2, chunks - largest)) * block_bytes;
}

std::uint64_t Servers::used_bytes() const noexcept { return used_.now() * block_bytes; }

std::uint64_t Servers::used_peak_bytes() const noexcept { return used_.peak() * block_bytes; }

std::optional<Servers::Copies> Servers::take() noexcept {
  const std::lock_guard guard(mutex_);
  std::array<Server*, replicas_max> chosen{};
  unsigned count = 0;
  while (count < replicas_) {
    chosen[count] = roomiest(count == 0 ? nullptr : chosen[count - 1]);
    if (chosen[count] == nullptr) break;
    ++count;
  }
  if (count == 0 || count < copies_now()) return std::nullopt;
  Copies copies{};
  for (unsigned i = 0; i < count; ++i) copies[i] = chunk_of(*chosen[i]);
  used_.add(1);
  return copies;
}

Servers::Copy Servers::chunk_of(Server& server) noexcept {
  std::uint32_t number = server.never_used;
  if (server.free.empty()) {
    ++server.never_used;
  } else {
    number = server.free.back();
    server.free.pop_back();
  }
  const auto index = static_cast<std::uint64_t>(&server - servers_->data());
  return (index + 1) << 32 | number;
}

Servers::Server* Servers::roomiest(const Server* other_than) noexcept {
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

// Memory of a server on this host goes back to the system until the chunk is taken again.
void Servers::give_back(const Copies& copies) noexcept {
  for (const Copy copy : copies) {
    if (!is_alive(copy)) continue;
    if (std::byte* const mapped = window_.direct(address_of(copy, 0), block_bytes)) {
      (void)::madvise(mapped, block_bytes, MADV_REMOVE);  // on failure it stays allocated, and is overwritten later
    }
    const std::lock_guard guard(mutex_);
    server_of(copy).free.push_back(static_cast<std::uint32_t>(copy));
  }
  used_.subtract(1);
}

void Servers::died(int rank) noexcept {
  const auto dead = std::ranges::find(*servers_, rank, &Server::rank);
  if (dead != servers_->end()) dead->alive.store(false, std::memory_order_relaxed);
}

}  // namespace tonari::far
