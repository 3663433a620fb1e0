// Compiled for processors with AVX512. It must define no other function that the linker could share with other files.
#if defined(__x86_64__)
#include "pager/checksum_code.hpp"

#define XXH_INLINE_ALL
#define XXH_VECTOR XXH_AVX512
#include <xxhash.h>

namespace tonari::pager {

Checksum hash_avx512(const std::byte* page) noexcept {
  const XXH128_hash_t hash = XXH3_128bits(page, page_bytes);
  return {hash.low64, hash.high64};
}

}  // namespace tonari::pager
#endif
