#include "window/local/diff.hpp"

#include <atomic>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tonari::window {

namespace {

constexpr std::size_t block_bytes = DifferenceMap::block_bytes;
constexpr std::size_t group_blocks = 4;
constexpr std::size_t group_bytes = group_blocks * block_bytes;

// A level offers two functions: whether a group of blocks is the same, and a mask with one bit per byte of a block that
// differs. Code for a processor other than the build's can be inlined only into code for the same processor. So the
// entry functions below inline everything, and nothing in between may be forced inline.

struct Words {
  static bool is_same(const std::byte* data, const std::byte* twin) noexcept {
    std::uint64_t changes = 0;
    for (unsigned at = 0; at < group_bytes; at += sizeof(std::uint64_t)) changes |= word(data + at) ^ word(twin + at);
    return changes == 0;
  }
  static std::uint64_t differing(const std::byte* data, const std::byte* twin) noexcept {
    static_assert(std::endian::native == std::endian::little);
    constexpr std::uint64_t low_bits = 0x7f7f7f7f7f7f7f7f;
    std::uint64_t mask = 0;
    for (unsigned at = 0; at < block_bytes; at += sizeof(std::uint64_t)) {
      const std::uint64_t change = word(data + at) ^ word(twin + at);
      const std::uint64_t high = (change | ((change & low_bits) + low_bits)) & ~low_bits;  // of each byte that differs
      mask |= (high >> 7) * 0x0102040810204080 >> 56 << at;                                // gathers the eight bits
    }
    return mask;
  }

 private:
  static std::uint64_t word(const std::byte* from) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
};

#if defined(__x86_64__)

struct Sse2 {
  static __m128i load(const std::byte* from) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  static bool is_same(const std::byte* data, const std::byte* twin) noexcept {
    __m128i changes = _mm_setzero_si128();
    for (unsigned at = 0; at < group_bytes; at += sizeof changes) {
      changes = _mm_or_si128(changes, _mm_xor_si128(load(data + at), load(twin + at)));
    }
    return _mm_movemask_epi8(_mm_cmpeq_epi8(changes, _mm_setzero_si128())) == 0xffff;
  }
  static std::uint64_t same(const std::byte* data, const std::byte* twin, unsigned at) noexcept {
    const int mask = _mm_movemask_epi8(_mm_cmpeq_epi8(load(data + at), load(twin + at)));
    return std::uint64_t{static_cast<std::uint32_t>(mask)} << at;
  }
  static std::uint64_t differing(const std::byte* data, const std::byte* twin) noexcept {
    return ~(same(data, twin, 0) | same(data, twin, 16) | same(data, twin, 32) | same(data, twin, 48));
  }
};

struct Avx2 {
  [[gnu::target("avx2")]] static __m256i load(const std::byte* from) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  [[gnu::target("avx2")]] static bool is_same(const std::byte* data, const std::byte* twin) noexcept {
    __m256i changes = _mm256_setzero_si256();
    for (unsigned at = 0; at < group_bytes; at += sizeof changes) {
      changes = _mm256_or_si256(changes, _mm256_xor_si256(load(data + at), load(twin + at)));
    }
    return _mm256_testz_si256(changes, changes) != 0;
  }
  [[gnu::target("avx2")]] static std::uint64_t same(const std::byte* data, const std::byte* twin,
                                                    unsigned at) noexcept {
    const int mask = _mm256_movemask_epi8(_mm256_cmpeq_epi8(load(data + at), load(twin + at)));
    return std::uint64_t{static_cast<std::uint32_t>(mask)} << at;
  }
  [[gnu::target("avx2")]] static std::uint64_t differing(const std::byte* data, const std::byte* twin) noexcept {
    return ~(same(data, twin, 0) | same(data, twin, 32));
  }
};

struct Avx512 {
  [[gnu::target("avx512bw")]] static bool is_same(const std::byte* data, const std::byte* twin) noexcept {
    __m512i changes = _mm512_setzero_si512();
    for (unsigned at = 0; at < group_bytes; at += sizeof changes) {
      const __m512i change = _mm512_xor_si512(_mm512_loadu_si512(data + at), _mm512_loadu_si512(twin + at));
      changes = _mm512_or_si512(changes, change);
    }
    return _mm512_test_epi64_mask(changes, changes) == 0;
  }
  [[gnu::target("avx512bw")]] static std::uint64_t differing(const std::byte* data, const std::byte* twin) noexcept {
    return _mm512_cmpneq_epi8_mask(_mm512_loadu_si512(data), _mm512_loadu_si512(twin));
  }
};

#endif

/// Compares the last block, of less than 64 bytes. `data` has `bytes` in total.
template <class Vector>
std::uint64_t differing_at_end(const std::byte* data, const std::byte* twin, std::size_t bytes) noexcept {
  const std::size_t rest = bytes % block_bytes;
  if (bytes > block_bytes) {
    const std::size_t at = bytes - block_bytes;
    return Vector::differing(data + at, twin + at) >> (block_bytes - rest);
  }
  std::array<std::byte, block_bytes> ours{};
  std::array<std::byte, block_bytes> theirs{};
  std::memcpy(ours.data(), data, rest);
  std::memcpy(theirs.data(), twin, rest);
  return Vector::differing(ours.data(), theirs.data());
}

/// One branch per group, so that equal data cost little. No branch per block of a differing group, because it could not
/// be predicted.
template <class Vector>
[[gnu::always_inline]] inline void mark_by(const std::byte* data, const std::byte* twin, std::size_t bytes,
                                           DifferenceMap& map) noexcept {
  std::uint64_t blocks = 0;
  const auto note = [&](std::size_t index, std::uint64_t differing) {
    map.bytes[index] = differing;
    blocks |= std::uint64_t{differing != 0} << index;
  };
  const auto mark_block = [&](std::size_t index) {
    note(index, Vector::differing(data + index * block_bytes, twin + index * block_bytes));
  };
  const std::size_t whole = bytes / block_bytes;
  std::size_t index = 0;
  for (; index + group_blocks <= whole; index += group_blocks) {
    if (Vector::is_same(data + index * block_bytes, twin + index * block_bytes)) continue;
    for (std::size_t i = 0; i < group_blocks; ++i) mark_block(index + i);
  }
  for (; index < whole; ++index) mark_block(index);
  if (bytes % block_bytes != 0) note(index, differing_at_end<Vector>(data, twin, bytes));
  map.blocks = blocks;
}

template <std::size_t bytes>
void copy(std::byte* to, const std::byte* from) noexcept {
  std::memcpy(to, from, bytes);
}

/// Stores aligned words where all eight bytes of a word differ, and single bytes elsewhere.
void store_block(std::byte* target, const std::byte* data, std::uint64_t differing) noexcept {
  if (differing == ~std::uint64_t{0}) return copy<block_bytes>(target, data);
  std::uint64_t words = differing & differing >> 4;
  words &= words >> 2;
  words &= words >> 1;
  words &= 0x0101010101010101;  // the first bit of each word
  for (std::uint64_t bits = differing & ~(words * 0xff); bits != 0; bits &= bits - 1) {
    const int at = std::countr_zero(bits);
    target[at] = data[at];
  }
  for (; words != 0; words &= words - 1) {
    const int at = std::countr_zero(words);
    copy<sizeof(std::uint64_t)>(target + at, data + at);
  }
}

void store_by_words(std::byte* target, const std::byte* data, const DifferenceMap& map) noexcept {
  for (std::uint64_t blocks = map.blocks; blocks != 0; blocks &= blocks - 1) {
    const auto index = static_cast<std::size_t>(std::countr_zero(blocks));
    store_block(target + index * block_bytes, data + index * block_bytes, map.bytes[index]);
  }
}

void mark_by_words(const std::byte* data, const std::byte* twin, std::size_t bytes, DifferenceMap& map) noexcept {
  mark_by<Words>(data, twin, bytes, map);
}
constexpr DiffCode code_of_words{mark_by_words, store_by_words};

#if defined(__x86_64__)

void mark_by_sse2(const std::byte* data, const std::byte* twin, std::size_t bytes, DifferenceMap& map) noexcept {
  mark_by<Sse2>(data, twin, bytes, map);
}
constexpr DiffCode code_of_sse2{mark_by_sse2, store_by_words};

[[gnu::target("avx2"), gnu::flatten]] void mark_by_avx2(const std::byte* data, const std::byte* twin, std::size_t bytes,
                                                        DifferenceMap& map) noexcept {
  mark_by<Avx2>(data, twin, bytes, map);
}
constexpr DiffCode code_of_avx2{mark_by_avx2, store_by_words};

[[gnu::target("avx512bw"), gnu::flatten]] void mark_by_avx512(const std::byte* data, const std::byte* twin,
                                                              std::size_t bytes, DifferenceMap& map) noexcept {
  mark_by<Avx512>(data, twin, bytes, map);
}
/// Bytes outside the mask are neither read nor written.
[[gnu::target("avx512bw")]] void store_by_masks(std::byte* target, const std::byte* data,
                                                const DifferenceMap& map) noexcept {
  for (std::uint64_t blocks = map.blocks; blocks != 0; blocks &= blocks - 1) {
    const auto index = static_cast<std::size_t>(std::countr_zero(blocks));
    const std::uint64_t differing = map.bytes[index];
    const auto block = _mm512_maskz_loadu_epi8(differing, data + index * block_bytes);
    _mm512_mask_storeu_epi8(target + index * block_bytes, differing, block);
  }
}
constexpr DiffCode code_of_avx512{mark_by_avx512, store_by_masks};

#endif

/// Returns the first byte at or after `from` whose bit, flipped by `turn`, is 1. Looks at longer and longer stretches,
/// so never at much more than needed.
std::size_t next_bit(const std::byte* data, const std::byte* twin, std::size_t from, std::size_t bytes,
                     std::uint64_t turn, const DiffCode& code) noexcept {
  DifferenceMap map;
  std::size_t stretch = 2 * block_bytes;
  while (from < bytes) {
    const std::size_t end = std::min(bytes, from + stretch);
    code.mark(data + from, twin + from, end - from, map);
    for (std::size_t block = 0; from < end; from += block_bytes, ++block) {
      const std::uint64_t bits = map.of(block) ^ turn;
      if (bits != 0) return std::min(bytes, from + static_cast<std::size_t>(std::countr_zero(bits)));
    }
    stretch = std::min(2 * stretch, DifferenceMap::stretch_bytes);
  }
  return bytes;
}

const DiffCode& best_code() noexcept {
  const DiffCode* best = nullptr;
  for (const DiffLevel level : diff_levels) {
    if (const DiffCode* const code = diff_code(level)) best = code;
  }
  return *best;
}

}  // namespace

const DiffCode* diff_code(DiffLevel level) noexcept {
  switch (level) {
    case DiffLevel::words: return &code_of_words;
#if defined(__x86_64__)
    case DiffLevel::sse2: return &code_of_sse2;
    case DiffLevel::avx2: return __builtin_cpu_supports("avx2") ? &code_of_avx2 : nullptr;
    case DiffLevel::avx512: return __builtin_cpu_supports("avx512bw") ? &code_of_avx512 : nullptr;
#endif
    default: return nullptr;
  }
}

const DiffCode& diff_code() noexcept {
  static const DiffCode& best = best_code();
  return best;
}

std::size_t next_difference(const std::byte* data, const std::byte* twin, std::size_t from, std::size_t bytes,
                            const DiffCode& code) noexcept {
  return next_bit(data, twin, from, bytes, 0, code);
}

std::size_t next_equality(const std::byte* data, const std::byte* twin, std::size_t from, std::size_t bytes,
                          const DiffCode& code) noexcept {
  return next_bit(data, twin, from, bytes, ~std::uint64_t{0}, code);
}

std::size_t store_differences(std::byte* target, const std::byte* data, const std::byte* twin, std::size_t bytes,
                              const DiffCode& code) noexcept {
  DifferenceMap map;
  std::size_t stored = 0;
  for (std::size_t at = 0; at < bytes; at += map.stretch_bytes) {
    code.mark(data + at, twin + at, std::min(bytes - at, map.stretch_bytes), map);
    code.store(target + at, data + at, map);
    for (std::uint64_t blocks = map.blocks; blocks != 0; blocks &= blocks - 1) {
      stored += static_cast<std::size_t>(std::popcount(map.bytes[static_cast<std::size_t>(std::countr_zero(blocks))]));
    }
  }
  return stored;
}

void copy_with_twin(std::byte* to, std::byte* twin, const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::size_t chunk_bytes = 16 * 1024;  // still in the L1 cache for the second copy
  for (std::size_t at = 0; at < bytes; at += chunk_bytes) {
    const std::size_t chunk = std::min(bytes - at, chunk_bytes);
    std::memcpy(to + at, from + at, chunk);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler must not read the source again
    std::memcpy(twin + at, to + at, chunk);
  }
}

}  // namespace tonari::window
