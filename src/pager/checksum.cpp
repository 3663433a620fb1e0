#include "pager/checksum.hpp"

#include "pager/checksum_code.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>

namespace tonari::pager {

Checksum hash_plain(const std::byte* page) noexcept {
  const XXH128_hash_t hash = XXH3_128bits(page, page_bytes);
  return {hash.low64, hash.high64};
}

namespace {

using Hash = Checksum (*)(const std::byte*) noexcept;

Hash fastest_hash() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return hash_avx512;
  if (__builtin_cpu_supports("avx2")) return hash_avx2;
#endif
  return hash_plain;
}

struct Hasher {
  Hash hash = fastest_hash();
  Checksum of_zeros;
  Hasher() noexcept {
    constexpr std::array<std::byte, page_bytes> zeros{};
    of_zeros = hash_plain(zeros.data());
  }
};

}  // namespace

Checksum checksum_of(const std::byte* page) noexcept {
  static const Hasher hasher;
  const Checksum found = hasher.hash(page);
  return {found.low ^ hasher.of_zeros.low, found.high ^ hasher.of_zeros.high};
}

}  // namespace tonari::pager
