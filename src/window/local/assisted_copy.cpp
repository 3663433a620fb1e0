#include "window/local/assisted_copy.hpp"

#include "fabric/wait.hpp"
#include "window/state/window_state.hpp"

namespace tonari::window {

using fabric::Head;
using fabric::TransferMemory;

namespace {

// Messages have priority for tickets: they cannot do without.
constexpr unsigned tickets_spared = fabric::tickets_max / 2;

// A sleeping target is woken by the offer, which takes some time.
template <Direction D>
bool pays(fabric::Engine& engine, const LongAccess<D>& access) noexcept {
  constexpr std::uint64_t wake_bytes_min = 64 * 1024;
  const std::uint64_t bytes = access.local.size();
  if (bytes <= fabric::alone_bytes_max || (access.mapped && bytes < copied_together_bytes_min)) return false;
  if (!engine.session().direct_copies() || access.peer == engine.session().rank()) return false;
  if (engine.session().is_paged(access.local.data(), bytes)) return false;  // the target must not touch it
  const fabric::Attention owner = engine.attention(access.peer);
  return owner == fabric::Attention::looking || (owner == fabric::Attention::asleep && bytes >= wake_bytes_min);
}

template <Direction D>
bool offer(fabric::Engine& engine, const LongAccess<D>& access, fabric::Tickets::Ticket ticket,
           std::uint64_t chunk_bytes) noexcept {
  const HelpRequest request{.offset = access.offset,
                            .address = reinterpret_cast<std::uint64_t>(access.local.data()),
                            .bytes = access.local.size(),
                            .chunk_bytes = chunk_bytes,
                            .ticket = ticket,
                            .service = D::service,
                            .reserved = {}};
  const Head head = head_of(Kind::window_help, engine.session().rank(), request, access.window);
  return engine.send(access.peer, head, fabric::Lane::request) == Status::ok;
}

}  // namespace

template <Direction D>
std::optional<Status> copy_together(fabric::Engine& engine, const LongAccess<D>& access) noexcept {
  if (!pays(engine, access)) return std::nullopt;
  const auto ticket = engine.tickets().take(tickets_spared);
  if (!ticket) return std::nullopt;
  const auto chunk_bytes = fabric::chunk_bytes_of(access.local.size(), engine.session().settings().chunk_bytes);
  if (!offer(engine, access, *ticket, chunk_bytes)) {
    engine.tickets().give_back(ticket->index);
    return std::nullopt;
  }
  TransferMemory& transfer = engine.transfer_of(engine.session().rank(), ticket->index);
  const fabric::DirectCopy copy = access.mapped ? fabric::DirectCopy::here() : engine.direct_copy(access.peer);
  (void)transfer.copy_chunks(ticket->generation, access.local.size(), chunk_bytes, [&](auto offset, auto bytes) {
    if constexpr (is_pull<D>) {
      return copy.read(access.local.data() + offset, access.there + offset, bytes);
    } else {
      return copy.write(access.there + offset, access.local.data() + offset, bytes);
    }
  });
  // The target has claimed all remaining chunks: it copies them, or dies.
  const std::uint32_t chunks = fabric::chunks_of(access.local.size(), chunk_bytes);
  // acquire: pairs with finish_chunk()
  const auto copied = [&] { return transfer.done.load(std::memory_order_acquire) >= chunks; };
  fabric::wait_until(
      engine, [&] { return copied() || !engine.session().alive(access.peer); }, job::Wait::window, access.peer);
  const Status status = copied() ? transfer.outcome() : Status::peer_gone;
  engine.tickets().give_back(ticket->index);
  return status;
}

template std::optional<Status> copy_together(fabric::Engine&, const LongAccess<Pull>&) noexcept;
template std::optional<Status> copy_together(fabric::Engine&, const LongAccess<Push>&) noexcept;

bool help(fabric::Engine& engine, const WindowState* state, const Head& head) noexcept {
  const auto request = head.as<HelpRequest>();
  const int peer = static_cast<int>(head.source);
  const bool sane = head.source < static_cast<std::uint32_t>(engine.session().size()) &&
                    request.ticket.index < fabric::tickets_max && request.chunk_bytes != 0 &&
                    request.bytes / request.chunk_bytes < 0xffffffff &&
                    (request.service == Service::pull || request.service == Service::push);
  if (state == nullptr || !sane || !engine.session().direct_copies())
    return false;  // malformed, or the window was freed
  const Rights needed = request.service == Service::pull ? Rights::read : Rights::write;
  std::byte* own = nullptr;
  if (state->parts().check_request(peer, request.offset, request.bytes, needed, own) != Status::ok) return false;
  TransferMemory& transfer = engine.transfer_of(peer, request.ticket.index);
  const fabric::DirectCopy copy = engine.direct_copy(peer);
  const auto copy_chunk = [&](std::uint64_t offset, std::uint64_t bytes) {
    return request.service == Service::pull ? copy.write(request.address + offset, own + offset, bytes)
                                            : copy.read(own + offset, request.address + offset, bytes);
  };
  const auto chunk = transfer.copy_chunk(request.ticket.generation, request.bytes, request.chunk_bytes, copy_chunk);
  if (chunk == TransferMemory::Chunk::last) engine.wake_if_asleep(peer);
  return chunk == TransferMemory::Chunk::copied;
}

}  // namespace tonari::window
