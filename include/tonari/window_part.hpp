#pragma once

#include <tonari/address.hpp>
#include <tonari/rank.hpp>

#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

// The table of the parts that are mapped here, and operations on their bytes, for the inline calls of Window. A program
// uses Window (window.hpp), and of this header only Rights and the concepts.
namespace tonari {

/// The operations that a rank allows on its part of a window.
enum class Rights : std::uint8_t { none = 0, read = 1, write = 2, atomic = 4, all = 7 };
constexpr Rights operator|(Rights left, Rights right) noexcept {
  return static_cast<Rights>(static_cast<std::uint8_t>(left) | static_cast<std::uint8_t>(right));
}
constexpr bool includes(Rights given, Rights needed) noexcept {
  return (static_cast<std::uint8_t>(given) & static_cast<std::uint8_t>(needed)) == static_cast<std::uint8_t>(needed);
}

/// Types of the words of atomic operations.
template <class T>
concept AtomicWord = (std::integral<T> || std::floating_point<T>)&&(sizeof(T) == 4 || sizeof(T) == 8);
template <class T>
concept AtomicInteger = AtomicWord<T> && std::integral<T>;

namespace job {
enum class Phase : std::uint32_t;
}

namespace window {
enum class PartState : std::uint32_t { absent, present, freed };
}

namespace detail {

/// The phase of a rank that has died: job::Phase::dead.
inline constexpr job::Phase dead_phase{5};

/// A member's part of the window, and how this rank accesses it. One cache line, which an access finds by a shift.
struct alignas(64) Part {
  std::byte* mapped = nullptr;                            // nullptr: it is not mapped here
  std::uint64_t bytes = 0;                                // 0: the rank has no part
  const std::atomic<window::PartState>* state = nullptr;  // nullptr: the rank has no part
  const std::atomic<job::Phase>* phase = nullptr;         // of its rank; nullptr: not in the group
  std::uint64_t address = 0;                              // in its own program, if it is not mapped here
  std::size_t member = 0;                                 // its rank's position in the group
  bool is_remote = false;                                 // it is on another host
  Rights rights = Rights::none;                           // this rank's rights

  [[nodiscard]] std::byte* at(std::uint64_t offset) const noexcept { return mapped + offset; }
  [[nodiscard]] bool contains(std::uint64_t offset, std::uint64_t length) const noexcept {
    return length <= bytes && offset <= bytes - length;
  }
};

/// The parts of one window. The library fills the table before the program has the window, and does not change it.
///
/// Threads: any.
struct PartTable {
  const Part* parts = nullptr;  // by job rank
  std::size_t ranks = 0;
  std::uint32_t window = 0;  // its number

  /// Returns the part if it is mapped here, and if the access is permitted and possible. Otherwise returns nullptr, and
  /// the library has to be asked, which knows other ways and says what is wrong: window::Parts::check() makes the same
  /// checks.
  [[nodiscard]] const Part* find_mapped(GlobalAddress address, std::uint64_t bytes, Rights needed) const noexcept {
    if (address.window != window || address.rank.index() >= ranks) return nullptr;
    const Part& part = parts[address.rank.index()];
    if (part.mapped == nullptr || !part.contains(address.offset, bytes)) return nullptr;
    if (!includes(part.rights, needed)) return nullptr;
    // Acquire: the caller then sees all that the rank did before it died or freed its part.
    if (part.phase->load(std::memory_order_acquire) == dead_phase) return nullptr;
    if (part.state->load(std::memory_order_acquire) != window::PartState::present) return nullptr;
    return &part;
  }
};

// Programs contain these layouts: a change of them, or of the enumerations above, raises the minor version.
static_assert(sizeof(Part) == 64 && sizeof(PartTable) == 24);

/// Copies of fewer bytes are made by the caller alone.
inline constexpr std::size_t copied_together_bytes_min = 512 * 1024;

/// Copies a word with one load and one store. Between them, compilers see a value of unknown origin: they would split
/// the word into the members of a struct, or load it again later.
template <std::size_t bytes>
void copy_word(std::byte* to, const std::byte* from) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, from, bytes);
  asm volatile("" : "+r"(word));
  std::memcpy(to, &word, bytes);
}

/// Copies any other number of bytes. Not inline: some compilers would copy with `rep movs`, which is slow to start, or
/// byte by byte.
void copy_long(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// Copies aligned words whole, as Window promises.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  switch (bytes) {
    case 8: return copy_word<8>(to, from);
    case 4: return copy_word<4>(to, from);
    case 2: return copy_word<2>(to, from);
    case 1: return copy_word<1>(to, from);
    case 0: return;  // both may be at no address
    default: return copy_long(to, from, bytes);
  }
}

enum class AtomicOperation : std::uint8_t { add, swap, compare_and_swap, bit_and, bit_or, bit_xor };

struct AtomicWords {
  AtomicOperation operation;
  std::uint8_t bytes;  // 4 or 8
  std::uint64_t operand;
  std::uint64_t expected;  // compare_and_swap
};

template <AtomicWord T>
std::uint64_t word_of(T value) noexcept {
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<std::uint32_t>(value);
  } else {
    return std::bit_cast<std::uint64_t>(value);
  }
}

// Always inline: where the operation is known, one instruction of it remains.
template <class Word>
[[gnu::always_inline]] inline std::uint64_t apply_to(std::byte* word, const AtomicWords& words) noexcept {
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
[[gnu::always_inline]] inline std::uint64_t apply_to_word(std::byte* word, const AtomicWords& words) noexcept {
  return words.bytes == 4 ? apply_to<std::uint32_t>(word, words) : apply_to<std::uint64_t>(word, words);
}

}  // namespace detail
}  // namespace tonari
