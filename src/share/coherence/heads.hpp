#pragma once

#include "fabric/head.hpp"
#include "fabric/transfer.hpp"
#include "share/kind.hpp"

#include <cstddef>
#include <cstdint>

namespace tonari::share {

/// The payload of each head of this layer. The head's kind determines which fields have a meaning.
struct Words {
  std::uint64_t tail_bytes = 0;  // length of the tail, if the kind has one
  std::uint64_t tail_place = 0;
  std::uint32_t ticket = 0;  // names the request; its reply repeats it
  std::uint32_t generation = 0;
  std::uint32_t object = 0;  // the array's number, the same in all ranks
  std::uint32_t count = 0;
  std::uint64_t first = 0;
  std::uint64_t extra = 0;
};
static_assert(sizeof(Words) == fabric::inline_bytes_max);
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
  reply.generation = request.generation;
  return reply;
}

}  // namespace tonari::share
