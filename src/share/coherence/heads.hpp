#pragma once

#include "fabric/requests.hpp"
#include "share/kind.hpp"

#include <cstddef>
#include <cstdint>

namespace tonari::share {

/// The payload of each head of this layer. The head's kind determines which fields have a meaning.
struct Words {
  std::uint64_t tail_bytes = 0;  // length of the tail, if the kind has one
  std::uint64_t tail_place = 0;
  std::uint64_t first = 0;
  std::uint64_t extra = 0;
  std::uint32_t object = 0;  // the array's number, the same in all ranks
  std::uint32_t count = 0;
  fabric::Tickets::Ticket ticket{};
};
static_assert(fabric::carries_ticket<Words>);
static_assert(fabric::begins_with_tail(offsetof(Words, tail_bytes), offsetof(Words, tail_place)));

inline fabric::Head head_of(Kind kind, int source, const Words& words) noexcept {
  fabric::Head head;
  head.kind = kind;
  head.inline_bytes = sizeof words;
  head.source = static_cast<std::uint32_t>(source);
  head.context = 0;
  head.tag = 0;
  head.set(words);
  return head;
}

inline Words reply_to(const Words& request) noexcept {
  Words reply;
  reply.ticket = request.ticket;
  return reply;
}

/// A request of this layer.
class PendingRequest : public fabric::PendingRequest {
 public:
  // Valid once it is done with Status::ok:
  [[nodiscard]] Kind kind() const noexcept { return reply().kind.to<Kind>(); }
  [[nodiscard]] Words words() const noexcept { return reply().as<Words>(); }

 private:
  [[nodiscard]] bool accepts(fabric::HeadKind asked_for, const fabric::Head& reply) const noexcept override;
};

}  // namespace tonari::share
