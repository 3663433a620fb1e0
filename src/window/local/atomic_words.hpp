#pragma once

#include <tonari/window.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Operations on words of a window, made by a rank that maps them, or by the target for other ranks.
namespace tonari::window {

using detail::AtomicOperation;
using detail::AtomicWords;

/// Copies aligned words whole, as Window promises.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  switch (bytes) {
    case 8: std::memcpy(to, from, 8); break;
    case 4: std::memcpy(to, from, 4); break;
    case 2: std::memcpy(to, from, 2); break;
    case 1: *to = *from; break;
    case 0: break;  // both may be at no address
    default: std::memcpy(to, from, bytes);
  }
}

/// Checks an operation from a peer or a descriptor: 4 or 8 bytes, and a known operation.
constexpr bool is_sane(const AtomicWords& words) noexcept {
  return (words.bytes == 4 || words.bytes == 8) && words.operation <= AtomicOperation::bit_xor;
}

template <class Word>
std::uint64_t apply_to(std::byte* word, const AtomicWords& words) noexcept {
  std::atomic_ref<Word> at(*reinterpret_cast<Word*>(word));
  const auto operand = static_cast<Word>(words.operand);
  auto expected = static_cast<Word>(words.expected);
  switch (words.operation) {  // all sequentially consistent: they order like a barrier
    case AtomicOperation::add: return at.fetch_add(operand);
    case AtomicOperation::swap: return at.exchange(operand);
    case AtomicOperation::compare_and_swap: at.compare_exchange_strong(expected, operand); return expected;
    case AtomicOperation::bit_and: return at.fetch_and(operand);
    case AtomicOperation::bit_or: return at.fetch_or(operand);
    case AtomicOperation::bit_xor: return at.fetch_xor(operand);
  }
  return 0;
}
/// Applies an atomic operation to an aligned word of 4 or 8 bytes. Returns the old value.
inline std::uint64_t apply_to_word(std::byte* word, const AtomicWords& words) noexcept {
  return words.bytes == 4 ? apply_to<std::uint32_t>(word, words) : apply_to<std::uint64_t>(word, words);
}

}  // namespace tonari::window
