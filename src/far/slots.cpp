#include "far/slots.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace tonari::far {

using pager::block_bytes;

void Slots::List::append(Chunk& chunk) noexcept {
  chunk.previous = last;
  chunk.next = nullptr;
  (last != nullptr ? last->next : first) = &chunk;
  last = &chunk;
}

void Slots::List::remove(Chunk& chunk) noexcept {
  (chunk.previous != nullptr ? chunk.previous->next : first) = chunk.next;
  (chunk.next != nullptr ? chunk.next->previous : last) = chunk.previous;
}

Slots::Slots(Store& store)
    : store_(store),
      chunk_memory_(Mapping::of_sparse_zeros(store.chunks() * sizeof(Chunk), "the slots of far memory")),
      chunks_(reinterpret_cast<Chunk*>(chunk_memory_.bytes().data())) {}

std::optional<std::uint64_t> Slots::take(std::size_t slot_bytes) noexcept {
  assert(slot_bytes % unit_bytes == 0 && slot_bytes != 0 && slot_bytes <= slot_bytes_max);
  const std::lock_guard guard(mutex_);
  List& list = with_room(slot_bytes);
  if (list.first == nullptr && !add_chunk(static_cast<std::uint32_t>(slot_bytes))) return std::nullopt;

  Chunk& chunk = *list.first;
  while (chunk.bits[chunk.full_words] == ~0ULL) ++chunk.full_words;
  std::uint64_t& word = chunk.bits[chunk.full_words];
  const auto bit = static_cast<std::uint64_t>(std::countr_one(word));
  word |= 1ULL << bit;
  if (++chunk.taken == chunk.slots()) list.remove(chunk);
  taken_bytes_.fetch_add(slot_bytes, std::memory_order_relaxed);
  return place_of(chunk) + (chunk.full_words * 64 + bit) * slot_bytes;
}

// The two counts are not read together, so their difference may be wrong for a moment.
std::uint64_t Slots::free_bytes() const noexcept {
  const std::uint64_t held = chunks_of_store_.load(std::memory_order_relaxed) * block_bytes;
  return held - std::min(held, taken_bytes());
}

std::uint64_t Slots::spares_max() const noexcept { return std::min<std::uint64_t>((in_use_ + 7) / 8, 8); }

bool Slots::add_chunk(std::uint32_t slot_bytes) noexcept {
  Chunk* chunk = spare_.first;
  if (chunk != nullptr) {
    spare_.remove(*chunk);
    --spares_;
  } else if ((chunk = chunk_of_store()) == nullptr) {
    return false;
  }
  chunk->slot_bytes = slot_bytes;
  with_room(slot_bytes).append(*chunk);
  ++in_use_;
  return true;
}

Slots::Chunk* Slots::chunk_of_store() noexcept {
  const bool is_new = free_.first == nullptr;
  if (is_new && never_used_ == store_.chunks()) return nullptr;
  Chunk& chunk = is_new ? chunks_[never_used_] : *free_.first;
  if (!store_.take_chunk(place_of(chunk))) return nullptr;
  chunks_of_store_.fetch_add(1, std::memory_order_relaxed);
  if (is_new) {
    ++never_used_;
  } else {
    free_.remove(chunk);
  }
  return &chunk;
}

void Slots::give_back(std::uint64_t place) noexcept {
  if (!clear(chunks_[place / block_bytes], place % block_bytes)) return;
  while (Chunk* const each = superfluous_chunk()) {
    store_.give_back_chunk(place_of(*each));
    chunks_of_store_.fetch_sub(1, std::memory_order_relaxed);
    const std::lock_guard guard(mutex_);
    free_.append(*each);
  }
}

// Returns true if the chunk is empty now.
bool Slots::clear(Chunk& chunk, std::uint64_t offset) noexcept {
  const std::lock_guard guard(mutex_);
  const std::uint64_t slot = offset / chunk.slot_bytes;
  assert((chunk.bits[slot / 64] >> slot % 64 & 1) != 0);
  chunk.bits[slot / 64] &= ~(1ULL << slot % 64);
  chunk.full_words = std::min(chunk.full_words, slot / 64);
  List& list = with_room(chunk.slot_bytes);
  // after the chunks that are being filled: it may become empty
  if (chunk.taken-- == chunk.slots()) list.append(chunk);
  taken_bytes_.fetch_sub(chunk.slot_bytes, std::memory_order_relaxed);
  if (chunk.taken != 0) return false;
  list.remove(chunk);
  spare_.append(chunk);
  --in_use_;
  ++spares_;
  return true;
}

Slots::Chunk* Slots::superfluous_chunk() noexcept {
  const std::lock_guard guard(mutex_);
  if (spares_ <= spares_max()) return nullptr;
  Chunk* const chunk = spare_.first;
  spare_.remove(*chunk);
  --spares_;
  return chunk;
}

}  // namespace tonari::far
