#pragma once

#include "random.hpp"

#include "fabric/engine.hpp"
#include "fabric/head.hpp"
#include "message/heads.hpp"

#include <tonari/message.hpp>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <span>
#include <thread>

// Makes malformed heads, which no correct rank sends: arbitrary bytes, and valid heads with changed fields.
namespace tonari::test {

/// The limits of the malformed heads. Their source is the sender itself, a rank that sends nothing, or a rank that does
/// not exist. Receivers trust the source of a head, so a head in another rank's name could cancel that rank's messages.
struct Claims {
  int self;
  int silent;
  std::span<const std::byte> readable;  ///< The source addresses of heads are in here, unless `any_address`.
  std::span<std::byte> writable;        ///< The destination addresses of heads are in here, unless `any_address`.
  bool any_address;  ///< Addresses may be wrong. Not for threads of one process, which read them directly.
};

class Liar {
 public:
  Liar(Job& job, const Claims& claims, std::uint64_t seed)
      : engine_(fabric::Engine::of(job.session())), claims_(claims), random_(seed) {}

  void tell(int victim) {
    const auto [head, lane] = lie(victim);
    while (engine_.send(victim, head, lane) == Status::again) {
      engine_.progress();
      std::this_thread::yield();
    }
    engine_.progress();  // as every rank does; otherwise the heads for this rank would pile up
  }

 private:
  using Head = fabric::Head;
  using Kind = message::Kind;
  using Lane = fabric::Lane;

  static constexpr auto kinds = {Kind{},      Kind::message_inline, Kind::message_bulk, Kind::message_announced,
                                 Kind::piece, Kind::finish,         Kind::grant,        Kind::done,
                                 Kind::late};

  std::uint64_t any() { return random_(); }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return *(choices.begin() + between(random_, 0, choices.size() - 1));
  }
  // Returns a number that is often near a power of two, or near the right value.
  std::uint64_t number(std::uint64_t right) {
    switch (between(random_, 0, 5)) {
      case 0: return any();
      case 1: return (std::uint64_t{1} << between(random_, 0, 63)) - between(random_, 0, 2);
      case 2: return right + between(random_, 0, 2) - 1;
      default: return right;
    }
  }
  std::uint32_t number32(std::uint64_t right) { return static_cast<std::uint32_t>(number(right)); }
  std::uint32_t ticket() { return number32(between(random_, 0, 8)); }
  std::uint32_t generation() { return number32(between(random_, 0, 3)); }
  // Returns an address. If addresses may not be wrong, `bytes` is reduced to the bytes that are really there.
  std::uint64_t address(std::span<const std::byte> real, std::uint64_t& bytes) {
    if (claims_.any_address) return number(reinterpret_cast<std::uint64_t>(real.data()));
    bytes = std::min<std::uint64_t>(bytes, real.size());
    return reinterpret_cast<std::uint64_t>(real.data());
  }
  std::uint64_t place(std::uint64_t bytes, int reader) {
    const auto real = engine_.bulk().allocate(std::min(bytes, fabric::bulk_tail_bytes_max), reader);
    return real ? number(real->value) : number(any() & 0x1ff);
  }

  std::pair<Head, Lane> lie(int victim) {
    Head head;
    for (std::byte& each : head.payload) each = static_cast<std::byte>(any());
    head.kind = chance(random_, 90) ? one_of(kinds) : static_cast<Kind>(any() & 0xff);
    head.inline_bytes = static_cast<std::uint8_t>(number(between(random_, 0, fabric::inline_bytes_max)));
    const auto none = static_cast<std::uint32_t>(engine_.session().size()) + number32(0);
    head.source = static_cast<std::uint32_t>(one_of<std::uint64_t>(
        {static_cast<std::uint64_t>(claims_.self), static_cast<std::uint64_t>(claims_.silent), none}));
    if (head.source < static_cast<std::uint32_t>(claims_.self)) head.source = static_cast<std::uint32_t>(claims_.self);
    // The context of the world, that of its collectives, or one that does not exist.
    head.context = static_cast<std::uint32_t>(one_of<std::uint64_t>({0, 0, 0, 1, any() | 0x80000000}));
    head.tag = number32(between(random_, 0, 2));
    fill(head, victim);
    const bool is_reply = head.kind == Kind::grant || head.kind == Kind::done;
    return {head, is_reply != chance(random_, 5) ? Lane::reply : Lane::request};
  }

  void fill(Head& head, int victim) {
    std::uint64_t bytes = number(between(random_, 0, 40000));
    switch (head.kind.to<Kind>()) {
      case Kind::message_bulk: return head.set(fabric::Tail{bytes, place(bytes, victim)});
      case Kind::message_announced: {
        const std::uint64_t from = address(claims_.readable, bytes);
        // Sometimes the ticket is real, and the receiver may claim its chunks.
        const auto real = chance(random_, 20) ? engine_.tickets().take(8) : std::nullopt;
        if (real) return head.set(message::Announced{bytes, from, real->index, real->generation});
        return head.set(message::Announced{bytes, from, ticket(), generation()});
      }
      case Kind::piece:
      case Kind::late: return head.set(message::Piece{bytes, place(bytes, victim), number(0), ticket(), generation()});
      case Kind::grant: {
        const std::uint64_t to = address(claims_.writable, bytes);
        return head.set(message::Grant{ticket(), generation(), to, bytes,
                                       static_cast<message::Road>(number32(between(random_, 1, 2))),
                                       number32(std::uint64_t{4096} << between(random_, 0, 6))});
      }
      case Kind::finish:
      case Kind::done: return head.set(message::Outcome{ticket(), generation(), number32(0), number32(0)});
      default: return;  // arbitrary bytes
    }
  }

  fabric::Engine& engine_;
  Claims claims_;
  Random random_;
};

}  // namespace tonari::test
